"""`coordinator audit` and `coordinator head`, as people and programs meet them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.audit.story import Tampered
from tests.audit.test_rules_of_jobs import noted
from tests.test_command_line import ROOT, TIMEOUT_S, coordinator


def head(database: Path) -> str:
    return coordinator("head", "--database", database).stdout.strip()


def test_a_log_that_holds_ends_with_status_0_and_says_how_much_was_read(database: Path) -> None:
    asked = coordinator("audit", "--database", database)

    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == "32 events: all rules hold\n"


def test_a_broken_log_ends_with_status_1_and_every_violation_on_a_line(log: Tampered) -> None:
    first, second = log.append("eve", noted()), log.append("bob", noted("done"))
    log.chain()
    log.fold()

    asked = coordinator("audit", "--file", log.path)

    assert (asked.returncode, asked.stderr) == (1, "")
    assert asked.stdout.splitlines() == [
        f"guard at {first}: job 'live': 'bob' held it, not 'eve'",
        f"guard at {second}: job 'done': nobody held it",
        f"{second} events, 2 violations",
    ]


def test_programs_get_an_object_a_line_and_the_verdict_in_the_last(log: Tampered) -> None:
    position = log.append("eve", noted())
    log.chain()
    log.fold()

    asked = coordinator("audit", "--database", log.path, "--json")

    assert asked.returncode == 1
    assert [json.loads(line) for line in asked.stdout.splitlines()] == [
        {"rule": "guard", "position": position, "problem": "job 'live': 'bob' held it, not 'eve'"},
        {"ok": False, "events": position, "violations": 1},
    ]


def test_an_audit_against_what_head_printed_notices_a_log_that_was_cut_off(log: Tampered) -> None:
    noted_down = head(log.path)
    before = coordinator("audit", "--database", log.path, "--head", noted_down)

    log.sql("DELETE FROM events WHERE position = (SELECT max(position) FROM events)")
    log.chain()
    log.fold()
    after = coordinator("audit", "--database", log.path, "--head", noted_down)

    assert (before.returncode, after.returncode) == (0, 1)
    assert after.stdout.startswith("anchor: the log ends at 31, before position 32")


def test_head_tells_programs_the_same(database: Path) -> None:
    asked = coordinator("head", "--database", database, "--json")

    told = json.loads(asked.stdout)
    assert f"{told['position']}:{told['digest']}" == head(database)


def test_what_somebody_wrote_into_a_name_cannot_touch_the_terminal(log: Tampered) -> None:
    evil = "\x1b[2J\u202e\U000e0041"
    log.sql("INSERT INTO views VALUES (?, 'k', '', 0, '{}')", evil)
    log.sql("UPDATE events SET type = ? WHERE position = 5", evil)

    for more in ([], ["--json"]):
        asked = coordinator("audit", "--database", log.path, *more)

        assert asked.returncode == 1
        assert all(line.isprintable() for line in asked.stdout.splitlines())
        assert "\\u202e" in asked.stdout


def test_a_head_that_is_none_is_a_call_that_makes_no_sense(database: Path) -> None:
    asked = coordinator("audit", "--database", database, "--head", "32:beef")

    assert (asked.returncode, asked.stdout) == (2, "")
    assert "64 hex digits" in asked.stderr


def test_what_is_no_workspace_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "garbage.db").write_bytes(b"garbage" * 1_000)

    for name in ("garbage.db", "nowhere.db"):
        for command in ("audit", "head"):
            asked = coordinator(command, "--database", tmp_path / name)

            assert (asked.returncode, asked.stdout) == (1, "")
            assert asked.stderr.startswith("coordinator: ")
            assert "Traceback" not in asked.stderr
    assert os.listdir(tmp_path) == ["garbage.db"]


def test_a_terminal_sees_how_far_it_is_and_standard_output_stays_clean(database: Path) -> None:
    ours, theirs = pty.openpty()

    asked = subprocess.run(
        [sys.executable, "-m", "coordinator", "audit", "--database", str(database)],
        cwd=ROOT,
        timeout=TIMEOUT_S,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        check=False,
    )

    os.close(theirs)
    seen = os.read(ours, 10_000).decode()
    os.close(ours)
    assert (asked.returncode, asked.stdout) == (0, "32 events: all rules hold\n")
    assert "32 of 32 events" in seen
