"""`coordinator why`, `who`, `explain`, `at` and `diff`, as real processes on a real file."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordinator import Coordinator, Refused
from tests.test_command_line import coordinator

ODD = "odd\u202ename\u200b"  # turns the direction of text, and does not show


class Made(NamedTuple):
    """A workspace, and where in it something stands."""

    database: Path
    claimed: int
    refused: int
    last: int


async def _make(database: Path) -> Made:
    async with Coordinator.open(database) as workspace:
        planner, ada, bob = (workspace.agent(name) for name in ("planner", "ada", "bob"))
        await (await ada.claim(await planner.add_job("schema", paths=["db"]))).submit()
        index = await bob.claim(await planner.add_job("index", paths=["src/index"]), lease_s=3_600)
        big = await planner.add_job("big", paths=["src"], priority=5)
        await planner.add_job("parser", paths=["src/index/a.py"], depends_on=["schema"])
        await planner.cancel_job(await planner.add_job(ODD), "not\nwanted")
        await ada.send("builds", {"n": 1})
        async with ada.reader("builds") as reader:
            await reader.read()
        with pytest.raises(Refused) as refusal:
            await ada.claim(big)
        assert refusal.value.position is not None
        return Made(database, index.fence, refusal.value.position, refusal.value.position)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return asyncio.run(_make(tmp_path_factory.mktemp("explained") / "work.db"))


def told(*arguments: str | Path) -> Any:
    """What a command prints with --json."""
    asked = coordinator(*arguments, "--json")
    assert asked.returncode == 0, asked.stderr
    assert asked.stderr == ""
    return json.loads(asked.stdout)


def test_why_tells_all_reasons_and_what_would_change_them(made: Made) -> None:
    asked = coordinator("why", "parser", "--database", made.database)

    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.startswith("`parser` cannot be claimed; it is blocked, version 1\n")
    assert "blocked by `schema`, submitted " in asked.stdout
    assert "to change it: somebody other than ada accepts or rejects `schema`" in asked.stdout
    assert "`src/index` is held by bob for job `index` until " in asked.stdout
    assert "`big`, priority 5, is ready and comes first at `src`" in asked.stdout


def test_characters_that_the_output_lacks_are_written_out(made: Made) -> None:
    latin = "sys.stdout.reconfigure(encoding='latin-1')"

    asked = coordinator("explain", str(made.claimed), "--database", made.database, before=latin)

    assert (asked.returncode, asked.stderr) == (0, "")
    assert "state ready \\u2192 claimed" in asked.stdout


def test_times_for_programs_look_the_same_in_every_command(made: Made) -> None:
    place = ("--database", made.database)
    last = str(made.last)

    times = [
        told("at", last, *place)["at"],
        told("diff", "1", last, *place)["after"]["at"],
        told("explain", last, *place)["event"]["at"],
        told("timeline", "--since", last, "--until", last, *place)["at"],
    ]

    assert times == times[:1] * 4
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", times[0])


def test_why_for_programs_has_the_same_fields_as_the_api(made: Made) -> None:
    why = told("why", "parser", "--database", made.database)

    assert set(why) == {
        "job",
        "state",
        "version",
        "at",
        "since",
        "claimable",
        "passed_over",
        "reasons",
        "more",
    }
    assert [reason["code"] for reason in why["reasons"]] == ["dependency", "path_held", "path_wanted"]
    assert set(why["reasons"][1]) == {"code", "job", "state", "since", "until", "worker", "path", "held", "remedy"}


def test_who_tells_who_holds_a_path_or_that_nobody_does(made: Made) -> None:
    below = coordinator("who", "src", "--database", made.database)
    nobody = coordinator("who", "lib", "--database", made.database)
    found = told("who", "src/index/a.py", "--database", made.database)

    assert below.stdout.startswith("src/index, below it, is held by bob for job index, attempt 1, until ")
    assert nobody.stdout == "nobody holds lib, anything above it or below it\n"
    assert found["path"] == "src/index/a.py"
    assert [set(holder) for holder in found["holders"]] == [{"path", "place", "worker", "job", "attempt", "until"}]
    assert found["holders"][0]["place"] == "above"


def test_explain_tells_what_an_event_changed_and_what_a_refusal_goes_back_to(made: Made) -> None:
    claim = coordinator("explain", str(made.claimed), "--database", made.database)
    refusal = coordinator("explain", str(made.refused), "--database", made.database)
    found = told("explain", str(made.refused), "--database", made.database)

    assert "jobs `index`: state ready → claimed" in claim.stdout
    assert "reservations `src/index` added" in claim.stdout
    assert "it changed nothing" in refusal.stdout
    assert "the claim that holds src/index" in refusal.stdout
    assert set(found) == {"event", "command", "changes", "causes"}
    assert [cause["event"]["position"] for cause in found["causes"]] == [made.claimed]
    assert set(found["event"]) == {
        "position",
        "at",
        "stream",
        "type",
        "actor",
        "origin",
        "context",
        "receipt",
        "command",
        "body",
    }


def test_at_shows_the_workspace_as_it_was(made: Made) -> None:
    before = coordinator("at", str(made.claimed - 1), "--database", made.database)
    after = told("at", str(made.claimed), "--database", made.database)
    end = told("at", "0s", "--database", made.database)

    assert "1 ready\n  index  " in before.stdout
    assert set(after) == {
        "position",
        "at",
        "counts",
        "jobs",
        "reservations",
        "topics",
        "readers",
        "operations",
        "problems",
    }
    assert [(job["id"], job["state"]) for job in after["jobs"]] == [("index", "claimed"), ("schema", "submitted")]
    assert [held["path"] for held in after["reservations"]] == ["src/index"]
    assert (end["position"], end["topics"][0]["name"], end["readers"][0]["delivered"]) == (made.last, "builds", 1)


def test_at_can_be_narrowed_to_one_job(made: Made) -> None:
    found = told("at", str(made.last), "--job", "index", "--database", made.database)
    missing = coordinator("at", "1", "--job", "index", "--database", made.database)

    assert ([job["id"] for job in found["jobs"]], found["position"]) == (["index"], made.last)
    assert (missing.returncode, missing.stdout) == (4, "")


def test_diff_shows_what_changed_between_two_moments_either_way_round(made: Made) -> None:
    words = coordinator("diff", str(made.claimed - 1), str(made.claimed), "--database", made.database)
    found = told("diff", str(made.claimed), str(made.claimed - 1), "--database", made.database)

    assert "jobs `index`: state ready → claimed, version 1 → 2" in words.stdout
    assert set(found) == {"before", "after", "changes", "problems"}
    assert found["before"]["position"] == made.claimed
    job = next(change for change in found["changes"] if change["view"] == "jobs")
    assert set(job) == {"view", "key", "change", "fields"}
    assert job["fields"]["state"] == ["claimed", "ready"]


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["why", "nowhere"], 4, "there is no job 'nowhere'"),
        (["why", "a\n"], 2, "JOB: holds a control character"),
        (["who", "/src"], 2, "PATH: is absolute"),
        (["explain", "999"], 4, "the log ends at position"),
        (["explain", "0"], 2, "0 is not in the range"),
        (["at", "999"], 4, "the log ends at position"),
        (["at", "soon"], 2, "is no position and no time"),
        (["at", "2999-01-01"], 2, "lies in the future"),
        (["at", "1", "--job", "a", "--operation", "b"], 2, "not both"),
        (["diff", "1", "999"], 4, "the log ends at position"),
    ],
)
def test_what_cannot_be_answered_is_told_by_the_exit_status(
    arguments: list[str], status: int, problem: str, made: Made
) -> None:
    asked = coordinator(*arguments, "--database", made.database)

    assert (asked.returncode, asked.stdout) == (status, "")
    assert problem in asked.stderr
    assert "Traceback" not in asked.stderr


def test_programs_are_told_of_an_error_on_standard_output_too(made: Made) -> None:
    asked = coordinator("why", "nowhere", "--database", made.database, "--json")

    assert asked.returncode == 4
    assert json.loads(asked.stdout)["error"]["code"] == "job_unknown"


@pytest.mark.parametrize("command", ["why", "explain", "at", "diff"])
def test_what_agents_wrote_cannot_touch_the_terminal(command: str, made: Made) -> None:
    arguments = {
        "why": [ODD],
        "explain": [str(made.last - 5)],
        "at": [str(made.last)],
        "diff": ["0", str(made.last)],
    }

    asked = coordinator(command, *arguments[command], "--database", made.database)

    assert asked.returncode == 0
    assert "odd\\u202ename\\u200b" in asked.stdout
    assert not {"\u202e", "\u200b"} & set(asked.stdout)


def test_the_workspace_may_be_named_by_the_environment(made: Made) -> None:
    setting = f"import os; os.environ['COORDINATOR_DATABASE'] = {str(made.database)!r}"

    assert coordinator("who", "db", before=setting).returncode == 0
    assert coordinator("who", "db").returncode == 2


def test_help_shows_an_example() -> None:
    assert "Example:\n    coordinator why parser --database work.db" in coordinator("why", "--help").stdout


def test_none_of_them_loads_an_event_loop(made: Made) -> None:
    listed = "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"

    asked = coordinator("why", "parser", "--database", made.database, before=listed)

    assert not {"asyncio", "aiosqlite", "anyio", "rich", "coordinator.coordinator"} & set(asked.stderr.split())


def test_a_lease_that_has_run_out_since_holds_nothing(made: Made, tmp_path: Path) -> None:
    """As on a machine whose clock is two hours further: the holder's lease was one hour long."""
    database = shutil.copy(made.database, tmp_path / "later.db")
    later = "import time; now = time.time_ns; time.time_ns = lambda: now() + 7_200 * 10**9"

    asked = coordinator("who", ".", "--database", database, before=later)

    assert asked.stdout == "nobody holds ., anything above it or below it\n"


def test_rows_of_newer_software_are_not_read(made: Made, tmp_path: Path) -> None:
    database = Path(shutil.copy(made.database, tmp_path / "newer.db"))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE head SET folds = folds + 1")
        connection.commit()

    asked = coordinator("why", "parser", "--database", database)

    assert (asked.returncode, asked.stdout) == (1, "")
    assert "newer than our" in asked.stderr


# Damage


def change(database: Path, sql: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(sql)
        connection.commit()


@pytest.fixture
def damaged(made: Made, tmp_path: Path) -> Path:
    """A copy in which the body of one event, and the row of one job, are broken."""
    database = Path(shutil.copy(made.database, tmp_path / "damaged.db"))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE events SET body = '{' WHERE position = ?", (made.claimed,))
        connection.execute("UPDATE views SET body = '{' WHERE view = 'jobs' AND key = 'big'")
        connection.commit()
    return database


def test_at_says_where_a_log_is_damaged_and_shows_what_can_be_read(made: Made, damaged: Path) -> None:
    before = damaged.read_bytes()

    asked = coordinator("at", str(made.last), "--database", damaged)

    assert asked.returncode == 1
    assert f"the workspace is damaged: position {made.claimed} cannot be folded" in asked.stderr
    assert "1 submitted\n  schema" in asked.stdout
    assert damaged.read_bytes() == before


def test_explain_and_diff_say_where_a_log_is_damaged(made: Made, damaged: Path) -> None:
    before = damaged.read_bytes()

    explained = coordinator("explain", str(made.claimed), "--database", damaged)
    differing = coordinator("diff", "0", str(made.last), "--database", damaged)

    assert (explained.returncode, differing.returncode) == (1, 1)
    assert "the workspace is damaged" in explained.stderr
    assert f"position {made.claimed} cannot be folded" in differing.stderr
    assert "jobs `schema` added" in differing.stdout
    assert damaged.read_bytes() == before


def test_an_event_that_is_gone_is_told_apart_from_the_end_of_the_log(made: Made, damaged: Path) -> None:
    change(damaged, f"DELETE FROM events WHERE position = {made.claimed}")

    explained = coordinator("explain", str(made.claimed), "--database", damaged)

    assert (explained.returncode, explained.stdout) == (1, "")
    assert f"the workspace is damaged: the log has no position {made.claimed}" in explained.stderr


@pytest.mark.parametrize("at", [2**63 - 1, -(2**63)])
def test_an_event_at_no_time_is_damage(at: int, made: Made, tmp_path: Path) -> None:
    database = Path(shutil.copy(made.database, tmp_path / "timeless.db"))
    change(database, f"UPDATE events SET at = {at} WHERE position = {made.claimed}")
    claimed = str(made.claimed)

    for asked in (["explain", claimed], ["at", claimed], ["at", claimed, "--job", "schema"], ["diff", "0", claimed]):
        told = coordinator(*asked, "--database", database)

        assert told.returncode == 1
        assert "the workspace is damaged" in told.stderr
        assert "Traceback" not in told.stderr


def test_why_says_that_a_row_is_damaged_and_tells_of_jobs_that_do_not_need_it(made: Made, damaged: Path) -> None:
    broken = coordinator("why", "big", "--database", damaged)
    other = coordinator("why", "schema", "--database", damaged)

    assert (broken.returncode, broken.stdout) == (1, "")
    assert "the workspace is damaged" in broken.stderr
    assert other.returncode == 0


def test_a_file_that_is_no_workspace_is_turned_down(tmp_path: Path) -> None:
    (tmp_path / "letter.db").write_text("Dear Ada")

    for command in (["why", "a"], ["at", "1"]):
        asked = coordinator(*command, "--database", tmp_path / "letter.db")

        assert (asked.returncode, asked.stdout) == (1, "")
        assert "Traceback" not in asked.stderr
