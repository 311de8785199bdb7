"""Damage: no bit of the log or of the views turns over unnoticed, if all three checks are made.

They are SQLite's own check, the chain of digests, and the comparison of the views with the log.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Raw

from coordinator.commands import AddJob, ClaimNext, SubmitJob
from coordinator.errors import CoordinatorError
from coordinator.stores.sqlite import SqliteStore
from tests.support import Workspace

FLIPS = 120
HEADER = 100  # in which SQLite keeps counters that nobody reads

CONTENTS = (
    "SELECT * FROM events ORDER BY position",
    "SELECT * FROM views ORDER BY view, key",
    "SELECT position, digest, folds, format FROM head",
    "SELECT id FROM workspace",
)


def test_no_bit_of_the_log_or_the_views_turns_over_unnoticed(tmp_path: Path) -> None:
    path, damaged = tmp_path / "work.db", tmp_path / "damaged.db"
    write_history(path)
    sound, before = path.read_bytes(), contents(path)
    assert sqlite_is_content(path)
    assert log_and_views_are_sound(path)
    chance = random.Random(1)
    missed_by_sqlite = 0

    for _ in range(FLIPS):
        place, bit = chance.randrange(HEADER, len(sound)), chance.randrange(8)
        flipped = bytearray(sound)
        flipped[place] ^= 1 << bit
        damaged.write_bytes(flipped)

        content = sqlite_is_content(damaged)
        if content and log_and_views_are_sound(damaged):
            assert contents(damaged) == before, f"bit {bit} of byte {place}"
        elif content:
            missed_by_sqlite += 1

    assert missed_by_sqlite > FLIPS / 10


def write_history(path: Path) -> None:
    with closing(SqliteStore.open(path)) as store:
        workspace = Workspace(store)
        for number in range(30):
            name = f"job-{number}"
            payload = Raw(b'{"text":"%s"}' % (b"x" * 300))
            job = AddJob(job=name, payload=payload, paths=(name,), priority=0, max_attempts=5, review="other")
            workspace.do("ada", job)
            claim = workspace.do("bob", ClaimNext(lease_us=60_000_000))
            if number % 2:
                workspace.do("bob", SubmitJob(job=name, token_digest=claim.token.digest, result=Raw(b"{}")))


def sqlite_is_content(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
        except (sqlite3.Error, UnicodeDecodeError):  # also what it complains of may be no text
            return False


def log_and_views_are_sound(path: Path) -> bool:
    try:
        with closing(SqliteStore.open(path)) as store:
            Workspace(store).check()
    except (AssertionError, CoordinatorError, DecodeError, LookupError, UnicodeError, TypeError, ValueError):
        return False
    return True


def contents(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(question).fetchall() for question in CONTENTS]
