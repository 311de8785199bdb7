"""SQLite's log stays small, and what SQLite keeps out of its own hands is kept up."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.stores import checkpoint
from coordinator.stores.interface import Snapshot, Transaction
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from tests.stores.children import Child
from tests.stores.rows import append, append_in, event, for_ever, head_of, log_of, once, positions, put, row

BODY = "x" * 1000
MEGABYTE = 1_000_000


def write_batch(store: SqliteStore, number: int) -> None:
    """About 200 kB in rows all over the place."""

    def work(transaction: Transaction) -> None:
        first = transaction.head().position + 1
        append_in(transaction, *(event(first + n, stream=f"job/{n}", receipt=f"{number}/{n}") for n in range(100)))
        transaction.put([row(f"{n * 7919 % 1000}", rank=number, body=BODY) for n in range(number, number + 100)])

    store.write(work, still_wanted=for_ever)


def log_size(path: Path) -> int:
    return os.stat(f"{path}-wal").st_size


def test_the_log_stays_small_under_constant_writing(path: Path, sqlite: SqliteStore) -> None:
    largest = 0
    with closing(SqliteReader(path)) as reader:
        for number in range(120):
            write_batch(sqlite, number)
            reader.read(lambda snapshot: snapshot.row("jobs", "7"))
            largest = max(largest, log_size(path))

    assert 1 * MEGABYTE < largest < 10 * MEGABYTE
    assert len(log_of(sqlite)) == 12_000


def test_the_log_stays_small_when_each_commit_is_small(path: Path, sqlite: SqliteStore) -> None:
    for number in range(1500):
        put(sqlite, row(str(number * 7919 % 1000), rank=number, body=BODY))

    assert log_size(path) < 10 * MEGABYTE


def test_the_log_stays_small_under_several_writers(
    path: Path, sqlite: SqliteStore, child: Callable[..., Child]
) -> None:
    script = """
from tests.stores.test_sqlite_checkpoint import write_batch
store = SqliteStore.open(path)
say("ready")
hear()
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 25):
    write_batch(store, number)
say("done")
hear()
"""
    children = [child(script, path, 1000 * n) for n in range(3)]
    for each in children:
        assert each.hear() == "ready"

    for each in children:
        each.say()
    for each in children:
        assert each.hear() == "done"

    assert log_size(path) < 10 * MEGABYTE
    assert head_of(sqlite).position == 7500


def test_a_reader_that_stays_delays_the_moving_of_the_log_and_loses_nothing(path: Path, sqlite: SqliteStore) -> None:
    with closing(SqliteReader(path)) as reader:

        def stay(snapshot: Snapshot) -> int:
            before = snapshot.head().position
            for number in range(40):
                write_batch(sqlite, number)
            assert snapshot.head().position == before
            return before

        assert reader.read(stay) == 0

    grown = log_size(path)
    for number in range(40, 80):
        write_batch(sqlite, number)

    assert log_size(path) < grown + 10 * MEGABYTE
    assert len(log_of(sqlite)) == 8000


class Relay:
    """Readers of whom there is always one, because each begins before the one before has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading = self._begin()

    def next(self) -> None:
        before, self._reading = self._reading, self._begin()
        before.close()

    def close(self) -> None:
        self._reading.close()

    def _begin(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM head").fetchall()
        return connection


def test_the_log_stays_small_although_there_is_always_somebody_who_reads(
    path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads for long, but whenever the log could start anew there is one who still needs it."""
    with closing(Relay(path)) as relay:
        monkeypatch.setattr(checkpoint, "sleep", lambda seconds: relay.next())

        for number in range(120):
            write_batch(sqlite, number)
            relay.next()

    assert log_size(path) < 12 * MEGABYTE
    assert len(log_of(sqlite)) == 12_000


def test_for_a_reader_that_stays_writers_wait_less_and_less_often(
    path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(checkpoint, "sleep", waits.append)
    with closing(Relay(path)):
        for number in range(160):
            write_batch(sqlite, number)
        grown = log_size(path)

    assert grown > 24 * MEGABYTE
    assert 0 < len(waits) < 30
    assert sum(waits) < 1

    for number in range(160, 200):
        write_batch(sqlite, number)
    assert log_size(path) < grown + MEGABYTE  # the next checkpoint found nobody in its way


def test_starting_the_log_anew_changes_nothing_that_is_read(
    path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_in_one = event(1, stream="job/3")
    sqlite.write(lambda transaction: append_in(transaction, append_in_one), still_wanted=once)
    before = (head_of(sqlite), log_of(sqlite), stream(sqlite, 0, 9))
    monkeypatch.setattr(sqlite._checkpoints, "_too_many", 0)  # pyright: ignore[reportPrivateUsage]

    assert sqlite._checkpoints.run()  # pyright: ignore[reportPrivateUsage]

    assert (head_of(sqlite), log_of(sqlite), stream(sqlite, 0, 9)) == before
    sqlite.close()
    with closing(SqliteStore.open(path)) as again:
        assert (head_of(again), log_of(again), stream(again, 0, 9)) == before


def test_nobody_can_write_during_a_checkpoint(path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that starts the log anew at that moment corrupts the file, with every SQLite up to 3.51.2."""
    checkpoints = sqlite._checkpoints  # pyright: ignore[reportPrivateUsage]
    helper = checkpoints._helper  # pyright: ignore[reportPrivateUsage]
    put(sqlite, row("a"))

    class Helper:
        def execute(self, sql: str) -> sqlite3.Cursor:
            with (
                closing(sqlite3.connect(path, timeout=0)) as other,
                pytest.raises(sqlite3.OperationalError, match="locked"),
            ):
                other.execute("BEGIN IMMEDIATE")
            return helper.execute(sql)

    monkeypatch.setattr(checkpoints, "_helper", Helper())

    assert checkpoints.run()

    monkeypatch.undo()


def test_a_checkpoint_is_no_news(path: Path, sqlite: SqliteStore) -> None:
    with closing(SqliteReader(path)) as reader:
        put(sqlite, row("a"))
        assert reader.changed()

        assert sqlite._checkpoints.run()  # pyright: ignore[reportPrivateUsage]

        assert not reader.changed()
        assert not sqlite.changed()


def test_events_of_a_stream_are_found_before_and_after_they_are_sorted(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_FIRST_ROWS", 150)
    monkeypatch.setattr(checkpoint, "_FEWEST_ROWS", 150)
    monkeypatch.setattr(checkpoint, "_MOST_ROWS", 150)

    for number in range(7):
        sqlite.write(lambda transaction: append_some(transaction), still_wanted=once)
        end = 40 * (number + 1)
        wanted = list(range(3, end + 1, 4))

        assert stream(sqlite, 0, 1000) == wanted
        assert stream(sqlite, 90, 1000) == [position for position in wanted if position > 90]
        assert stream(sqlite, 0, 5) == wanted[:5]
        assert stream(sqlite, end - 8, 1) == wanted[-2:-1]
        assert stream(sqlite, end, 5) == []

    def sorted_up_to(_: object) -> int:
        connection = sqlite._connection  # pyright: ignore[reportPrivateUsage]
        return connection.execute("SELECT up_to FROM sorted").fetchone()[0]

    assert 0 < sqlite.read(sorted_up_to) < 280


def append_some(transaction: Transaction) -> None:
    first = transaction.head().position + 1
    append_in(transaction, *(event(n, stream=f"job/{n % 4}") for n in range(first, first + 40)))


def stream(store: SqliteStore, after: int, limit: int) -> list[int]:
    return positions(store.read(lambda snapshot: snapshot.events(after=after, limit=limit, stream="job/3")))


def test_bodies_of_one_type_are_found_before_and_after_they_are_sorted(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_FIRST_ROWS", 15)
    monkeypatch.setattr(checkpoint, "_FEWEST_ROWS", 15)
    monkeypatch.setattr(checkpoint, "_MOST_ROWS", 15)
    types = ["message.sent", "command.refused"]

    for first in range(1, 40, 10):
        append(sqlite, *(event(n, stream="topic/a", type=types[n % 2]) for n in range(first, first + 10)))

        rows = sqlite.read(lambda snapshot: snapshot.bodies("topic/a", "message.sent", after=0, limit=99))
        assert [row.position for row in rows] == list(range(2, first + 10, 2))
