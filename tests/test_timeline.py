"""`coordinator timeline`: what it prints, as a command of its own, on a terminal and into pipes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coordinator.stores.sqlite import SqliteStore
from coordinator.surfaces.cli import command_line
from coordinator.surfaces.cli.shared import print_json
from tests.story import BEGIN, added, late_worker_in
from tests.support import Workspace

ROOT = Path(__file__).parents[1]
PATIENCE_S = 20
ENVIRONMENT = {**os.environ, "TZ": "UTC", "COLUMNS": "100", "PYTHONUTF8": "1"}
DAY = BEGIN.date().isoformat()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return late_worker_in(tmp_path_factory.mktemp("story") / "work.db")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """One event is of a type that nobody knows, one has no text, one is gone."""
    path = late_worker_in(tmp_path / "broken.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("""UPDATE events SET body = '{"type":"job.danced"}' WHERE position = 4""")
        connection.execute("UPDATE events SET body = CAST(x'c3' AS TEXT) WHERE position = 5")
        connection.execute("DELETE FROM events WHERE position = 9")
    return path


def command(database: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "coordinator", "timeline", "--database", str(database), *arguments]


def run(database: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    return subprocess.run(
        command(database, *arguments),
        cwd=ROOT,
        env={**ENVIRONMENT, **environment},
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def call(database: Path, *arguments: str) -> Result:
    """The command in this process, which is quicker."""
    return CliRunner().invoke(
        command_line, ["timeline", "--database", str(database), *arguments], env={"COLUMNS": "100"}
    )


def positions(database: Path, *arguments: str) -> list[int]:
    ended = call(database, "--json", *arguments)
    assert ended.exit_code == 0, ended.output
    return [json.loads(line)["position"] for line in ended.stdout.splitlines()]


def test_a_line_tells_position_time_gap_actor_subject_and_what_happened(database: Path) -> None:
    ended = run(database)

    lines = ended.stdout.splitlines()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert lines[0] == "Tuesday, 2026-12-01 (UTC+0000)"
    assert lines[1] == " 1  10:40:00.120              planner  parser        added; it is ready: task parse"
    assert lines[7] == (
        " 7  10:42:07.120     +1m 15s  –        parser        attempt 1 lapsed: ada did not renew it by 10:41:22"
    )
    assert lines[10] == (
        "10  10:42:30.620      +4.5 s  ada      parser        "
        "submit_job was refused: this is attempt 1's token; attempt 2 is bob's since 10:42:07"
    )
    assert len(lines) == 15


FILTERS: list[tuple[list[str], list[int]]] = [
    (["--job", "index"], [2, 6, 14]),
    (["--topic", "builds"], [12]),
    (["--actor", "carol", "--actor", "planner"], [1, 2, 13]),
    (["--path", "src/parser/deeper"], [1, 2, 3, 6, 7, 8, 11, 14]),
    (["--path", "SRC/PARSER"], [1, 2, 3, 6, 7, 8, 11, 14]),
    (["--path", "docs", "--refusals"], []),
    (["--type", "job.re*", "--type", "message.*"], [4, 9, 12]),
    (["--refusals"], [6, 10]),
    (["--refusals", "--job", "parser"], [10]),
    (["--since", "12"], [12, 13, 14]),
    (["--until", "2"], [1, 2]),
    (["--since", f"{DAY}T10:42:07.12Z", "--until", f"{DAY}T10:42:30Z"], [7, 8, 9]),
    (["--receipt", "claim-index"], [6, 14]),
    (["--limit", "2", "--job", "parser"], [1, 3]),
    (["--last", "2", "--job", "parser"], [11, 13]),
    (["--last", "1", "--path", "src"], [14]),
    (["--last", "0"], []),
]


@pytest.mark.parametrize(("arguments", "expected"), FILTERS, ids=lambda value: " ".join(map(str, value)))
def test_conditions_hold_together(database: Path, arguments: list[str], expected: list[int]) -> None:
    assert positions(database, *arguments) == expected


@pytest.mark.parametrize("option", ["--limit", "--last"])
def test_more_than_there_can_be_are_all(database: Path, option: str) -> None:
    assert positions(database, option, str(2**63)) == positions(database)


def test_readers_are_found_by_their_name_in_one_topic_or_in_all(tmp_path: Path) -> None:
    from coordinator.commands import OpenReader

    with closing(SqliteStore.open(tmp_path / "work.db")) as store:
        workspace = Workspace(store)
        for topic, reader in (("a/b", "x"), ("b", "x"), ("b", "y")):
            workspace.do("ada", OpenReader(topic=topic, reader=reader))

    assert positions(tmp_path / "work.db", "--reader", "x") == [1, 2]
    assert positions(tmp_path / "work.db", "--reader", "x", "--topic", "a/b") == [1]


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["--job", "nobody"], 4, "the log knows nothing of job/nobody"),
        (["--job", "a\0"], 2, "job:"),
        (["--job", "a", "--operation", "b"], 2, "name one job"),
        (["--path", "/etc"], 2, "is absolute"),
        (["--since", "soon"], 2, "is no position, no time"),
        (["--lanes", "--json"], 2, "--lanes is for people"),
        (["--lanes", "--follow"], 2, "--lanes draws what is there"),
        (["--last", "1", "--limit", "1"], 2, "choose"),
        (["--follow", "--until", "9"], 2, "--follow has no end"),
        (["--limit", "0"], 2, "x>=1"),
    ],
)
def test_a_call_that_cannot_be_answered_says_why(
    database: Path, arguments: list[str], status: int, problem: str
) -> None:
    ended = call(database, *arguments)

    assert (ended.exit_code, ended.stdout) == (status, "")
    assert problem in ended.stderr


@pytest.mark.parametrize("condition", [["--actor", "nobody"], ["--until", "0"], ["--receipt", ""]])
def test_where_nothing_fits_people_are_told_so(database: Path, condition: list[str]) -> None:
    ended = call(database, *condition)

    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "coordinator: there is no such event\n")


SCHEMA: dict[str, type | tuple[type, ...]] = {
    "position": int,
    "at": str,
    "stream": str,
    "type": str,
    "actor": (str, type(None)),
    "sentence": str,
    "command": int,
    "receipt": (str, type(None)),
    "context": (str, type(None)),
    "origin": (str, type(None)),
    "body": dict,
}


def test_json_has_one_object_a_line_with_the_same_fields_in_the_same_order(database: Path) -> None:
    objects: list[dict[str, Any]] = [json.loads(line) for line in run(database, "--json").stdout.splitlines()]

    assert len(objects) == 14
    assert {tuple(found) for found in objects} == {tuple(SCHEMA)}
    assert all(isinstance(found[field], kind) for found in objects for field, kind in SCHEMA.items())
    refused = objects[5]
    assert {field: refused[field] for field in ("at", "stream", "type", "actor", "context")} == {
        "at": "2026-12-01T10:40:52.120000Z",
        "stream": "job/index",
        "type": "command.refused",
        "actor": "dave",
        "context": "run 7",
    }
    assert refused["body"]["code"] == "path_clash"


def test_what_cannot_be_read_is_named_in_its_place_and_the_rest_is_shown(broken: Path) -> None:
    ended = run(broken)

    lines = ended.stdout.splitlines()
    assert ended.returncode == 1
    assert ended.stderr == "coordinator: 3 events cannot be read; coordinator audit tells more\n"
    assert len(lines) == 15
    assert re.fullmatch(r" 4  cannot be read: job.renewed cannot be decoded: .*job.danced.*", lines[4])
    assert re.fullmatch(r" 5  cannot be read: .*UTF-8.*", lines[5])
    assert re.fullmatch(r" 9  cannot be read: missing: .*", lines[9])
    assert lines[10].endswith("attempt 2 is bob's since 10:42:07")


def test_what_cannot_be_read_has_a_form_of_its_own_in_json(broken: Path) -> None:
    ended = call(broken, "--json", "--since", "9", "--until", "10")

    first, second = map(json.loads, ended.stdout.splitlines())
    assert ended.exit_code == 1
    assert first == {"position": 9, "last": 9, "problem": "missing: there is no such row"}
    assert tuple(second) == tuple(SCHEMA)


def test_lanes_of_a_damaged_log_are_drawn_and_the_damage_is_told(broken: Path) -> None:
    ended = call(broken, "--lanes")

    assert ended.exit_code == 1
    assert "3 events cannot be read" in ended.stderr
    assert re.search(r"^ada +┣parser 1━+╳ +!$", ended.stdout, re.MULTILINE)  # noqa: RUF001


def test_reading_does_not_write(database: Path) -> None:
    def content() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in sorted(database.parent.iterdir())}

    before = content()

    run(database)

    assert content() == before


def test_an_output_that_lacks_characters_gets_ascii(database: Path) -> None:
    lanes = run(database, "--lanes", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    lines = run(database, PYTHONUTF8="0", PYTHONIOENCODING="ascii")

    assert (lanes.returncode, lines.returncode) == (0, 0)
    assert lanes.stdout.isascii()
    assert re.search(r"^ada +\[parser 1\.=+\*=+X +!$", lanes.stdout, re.MULTILINE)
    assert re.search(r"^ 7 .* -  +parser", lines.stdout, re.MULTILINE)


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        arguments, cwd=ROOT, env={**ENVIRONMENT, "TERM": "xterm", **environment}, stdout=theirs, stdin=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how Linux says that nobody has the other end any more
                piece = b""
            if not piece:
                break
            shown += piece
        os.close(ours)
        assert process.wait(PATIENCE_S) == 0
    return shown.decode()


def test_colours_are_for_terminals_alone(database: Path) -> None:
    shown = on_a_terminal(*command(database, "--refusals"))

    assert "\x1b[31msubmit_job was refused" in shown
    assert "\x1b" not in run(database, "--refusals").stdout


@pytest.mark.parametrize(
    ("arguments", "environment"), [([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"}), (["--color", "never"], {})]
)
def test_a_terminal_that_wants_no_colours_gets_none(
    database: Path, arguments: list[str], environment: dict[str, str]
) -> None:
    assert "\x1b" not in on_a_terminal(*command(database, *arguments), **environment)


def test_colours_can_be_asked_for(database: Path) -> None:
    assert "\x1b[31m" in run(database, "--color", "always", NO_COLOR="1").stdout
    assert "\x1b[31m!\x1b[0m" in run(database, "--lanes", "--color", "always").stdout


@pytest.mark.parametrize("form", [[], ["--json"], ["--lanes"]], ids=["lines", "json", "lanes"])
def test_what_agents_wrote_cannot_steer_the_terminal(tmp_path: Path, form: list[str]) -> None:
    evil = "\x9b2J\u202e\u200b"
    with closing(SqliteStore.open(tmp_path / "work.db")) as store:
        workspace = Workspace(store)
        workspace.do("planner", added("job", text=evil))
        workspace.ask("a" + evil, added("job", text="t"), context=evil)
        workspace.ask("b" + evil, added("job " + evil, text="t"))

    ended = call(tmp_path / "work.db", *form)

    assert ended.exit_code == 0
    assert ended.stdout.replace("\n", "").isprintable()


@contextmanager
def following(database: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command(database, "--follow", *arguments),
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with closing(SqliteStore.open(tmp_path / "work.db")) as store:
        workspace = Workspace(store)
        workspace.do("ada", added("one", text="t"))
        yield workspace


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_following_shows_what_another_process_writes_until_ctrl_c(workspace: Workspace, tmp_path: Path) -> None:
    with following(tmp_path / "work.db", "--job", "two", "--json") as process:
        workspace.do("ada", added("two", text="t"))
        first = json.loads(next_line(process))
        workspace.do("ada", added("three", text="t"))
        workspace.ask("bob", added("two", text="t"))
        second = json.loads(next_line(process))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)

    assert (first["type"], second["actor"]) == ("job.added", "bob")
    assert (process.returncode, said) == (130, "")


def test_following_from_the_end_shows_only_what_is_new(workspace: Workspace, tmp_path: Path) -> None:
    with following(tmp_path / "work.db", "--last", "1", "--limit", "2") as process:
        shown = [next_line(process), next_line(process)]
        workspace.do("ada", added("two", text="t"))
        rest, _ = process.communicate(timeout=PATIENCE_S)

    assert "one" in shown[1]
    assert [line.split()[0] for line in rest.splitlines()] == ["2"]
    assert process.returncode == 0


def test_following_ends_when_nobody_reads_any_more_also_if_nothing_happens(
    workspace: Workspace, tmp_path: Path
) -> None:
    with following(tmp_path / "work.db", "--json") as process:
        next_line(process)
        assert process.stdout is not None
        process.stdout.close()
        status = process.wait(PATIENCE_S)
        assert process.stderr is not None
        said = process.stderr.read()

    assert (status, said) == (0, "")


def test_a_reader_that_has_seen_enough_ends_a_long_timeline(database: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", '"$@" | head -n 1', "sh", *command(database)],
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
    )

    assert (ended.stdout, ended.stderr) == ("Tuesday, 2026-12-01 (UTC+0000)\n", "")


def test_help_shows_every_option_and_an_example() -> None:
    shown = CliRunner().invoke(command_line, ["timeline", "--help"]).stdout

    assert "coordinator timeline --database work.db --job parser" in shown
    for option in (
        "--job --operation --topic --reader --actor --path --type --since --until --refusals --receipt --limit --last "
        "--follow --lanes --ascii --color --json"
    ).split():
        assert option in shown


def test_reading_the_log_loads_no_event_loop_and_no_engine_that_writes(database: Path) -> None:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        "from coordinator.__main__ import main; main()"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program, *command(database, "--job", "parser")[3:]],
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
    )

    loaded = set(ended.stderr.split())
    assert "coordinator.surfaces.cli.timeline" in loaded
    assert not loaded & {"asyncio", "aiosqlite", "anyio", "rich", "coordinator.coordinator", "coordinator.execute"}


def test_the_json_of_no_command_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"problem": "\x9b2J\u202e"})

    assert capsys.readouterr().out == '{"problem": "\\u009b2J\\u202e"}\n'
