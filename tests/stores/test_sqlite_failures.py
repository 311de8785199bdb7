"""When the disk, SQLite or COMMIT fails: what was certainly not applied, what is unknown, and how to find out."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.errors import Unavailable
from coordinator.stores.interface import CommitUnknown, Snapshot, Transaction
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from tests.stores.children import Child, preloaded
from tests.stores.failing import FailingConnection
from tests.stores.rows import append, append_in, event, head_of, log_of, once, put, row


@pytest.mark.parametrize(("done_first", "truth"), [(False, [1]), (True, [1, 2])])
def test_a_failed_commit_has_an_unknown_outcome_until_the_store_is_reopened(
    failing: SqliteStore, connection: FailingConnection, done_first: bool, truth: list[int]
) -> None:
    append(failing, event(1))
    connection.at, connection.done_first = "COMMIT", done_first

    with pytest.raises(CommitUnknown, match="disk I/O error"):
        append(failing, event(2))
    for use in (lambda: append(failing, event(3)), lambda: head_of(failing), failing.changed):
        with pytest.raises(Unavailable, match="reopen"):
            use()

    failing.reopen()
    assert log_of(failing) == truth
    assert failing.changed()
    assert not failing.changed()
    append(failing, event(len(truth) + 1))


def test_the_turn_is_free_while_the_outcome_is_unknown(
    path: Path, failing: SqliteStore, connection: FailingConnection
) -> None:
    connection.at, connection.done_first = "COMMIT", True

    with pytest.raises(CommitUnknown):
        append(failing, event(1))

    with closing(SqliteStore.open(path)) as other:
        other.write(lambda transaction: append_in(transaction, event(2)), still_wanted=once)


def test_a_commit_that_finds_the_file_locked_was_certainly_not_applied(
    failing: SqliteStore, connection: FailingConnection
) -> None:
    connection.at, connection.error_code = "COMMIT", sqlite3.SQLITE_BUSY

    with pytest.raises(Unavailable):
        append(failing, event(1))

    assert log_of(failing) == []
    append(failing, event(1))


def test_a_statement_that_fails_applies_nothing(failing: SqliteStore, connection: FailingConnection) -> None:
    connection.at = "UPDATE head"

    with pytest.raises(Unavailable, match=r"disk I/O error \(check the disk, and"):
        append(failing, event(1))

    assert log_of(failing) == []
    append(failing, event(1))


def test_a_read_that_fails_is_unavailable(failing: SqliteStore, connection: FailingConnection) -> None:
    connection.at = "SELECT body"

    with pytest.raises(Unavailable):
        failing.read(lambda snapshot: snapshot.row("jobs", "a"))

    assert failing.read(lambda snapshot: snapshot.row("jobs", "a")) is None


def test_begin_that_fails_is_unavailable_and_frees_the_turn(
    path: Path, failing: SqliteStore, connection: FailingConnection
) -> None:
    connection.at = "BEGIN IMMEDIATE"

    with pytest.raises(Unavailable):
        append(failing, event(1))

    with closing(SqliteStore.open(path)) as other:
        other.write(lambda transaction: append_in(transaction, event(1)), still_wanted=once)


def test_a_transaction_that_was_kept_cannot_be_used_any_more(sqlite: SqliteStore) -> None:
    kept = sqlite.write(lambda transaction: transaction, still_wanted=once)

    with pytest.raises(Exception, match="over"):
        kept.put([row("a")])


def test_a_value_that_sqlite_cannot_hold_fails_the_whole_transaction(sqlite: SqliteStore) -> None:
    def work(transaction: Transaction) -> None:
        transaction.put([row("a")])
        with pytest.raises(OverflowError):
            transaction.put([row("b", rank=2**63)])

    with pytest.raises(OverflowError):
        sqlite.write(work, still_wanted=once)

    assert sqlite.read(lambda snapshot: snapshot.row("jobs", "a")) is None


def test_a_value_of_the_wrong_type_is_a_mistake_of_the_program(sqlite: SqliteStore) -> None:
    with pytest.raises(RuntimeError, match="mistake"):
        put(sqlite, row("a")._replace(rank="first"))  # type: ignore[arg-type]


def test_a_commit_that_succeeded_is_not_failed_by_its_checkpoint(
    failing: SqliteStore, connection: FailingConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinator.stores.checkpoint._FIRST_ROWS", 1)
    monkeypatch.setattr("coordinator.stores.checkpoint._NOTED_ROWS", 1)

    def work(transaction: Transaction) -> None:
        append_in(transaction, event(1))
        connection.at = "BEGIN IMMEDIATE"  # the next of them is the checkpoint's

    failing.write(work, still_wanted=once)

    assert connection.at == ""
    assert log_of(failing) == [1]


def test_what_reopening_shows_does_not_depend_on_the_log_of_sqlite(
    path: Path, failing: SqliteStore, connection: FailingConnection, child: Callable[..., Child]
) -> None:
    """After a failed flush the log may be in the system's memory only, although it can be read."""
    connection.at, connection.done_first = "COMMIT", True
    with closing(SqliteReader(path)) as reader:
        with pytest.raises(CommitUnknown):
            append(failing, event(1))

        failing.reopen()

        script = """
import shutil
shutil.copy(path, path + ".copy")
say(sqlite3.connect(path + ".copy").execute("SELECT count(*) FROM events").fetchone()[0])
"""
        assert child(script, path).hear() == "1"
        assert log_of(reader) == [1]


def test_a_store_whose_log_cannot_be_secured_stays_unusable(
    path: Path, failing: SqliteStore, connection: FailingConnection
) -> None:
    append(failing, event(1))
    connection.at, connection.done_first = "COMMIT", True
    with closing(SqliteReader(path)) as reader:

        def stay(snapshot: Snapshot) -> None:
            """Somebody who reads an old state keeps the log from being moved."""
            snapshot.head()
            with pytest.raises(CommitUnknown):
                append(failing, event(2))
            with pytest.raises(Unavailable, match="secured: a reader is in the way"):
                failing.reopen(once)
            with pytest.raises(Unavailable, match="secured: a reader is in the way"):
                log_of(failing)

        reader.read(stay)

    failing.reopen(once)
    assert log_of(failing) == [1, 2]


def test_reopening_takes_as_long_as_its_caller_wants_and_lets_others_write_meanwhile(
    path: Path, failing: SqliteStore, connection: FailingConnection
) -> None:
    connection.at, connection.done_first = "COMMIT", True
    positions = [2, 3, 4]
    with closing(SqliteStore.open(path)) as other, closing(SqliteReader(path)) as reader:

        def others_write() -> bool:
            other.write(lambda transaction: append_in(transaction, event(positions.pop(0))), still_wanted=once)
            return bool(positions)

        def stay(snapshot: Snapshot) -> None:
            snapshot.head()
            with pytest.raises(CommitUnknown):
                append(failing, event(1))
            with pytest.raises(Unavailable, match="secured"):
                failing.reopen(others_write)

        reader.read(stay)

        assert positions == []
        failing.reopen(once)
        assert log_of(failing) == [1, 2, 3, 4]


def test_opening_anew_that_failed_can_be_tried_again(
    failing: SqliteStore, connection: FailingConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try closed everything, and SQLite removed its log as whoever closes last does."""
    append(failing, event(1))
    connection.at = "COMMIT"
    with pytest.raises(CommitUnknown):
        append(failing, event(2))
    with monkeypatch.context() as patch:
        patch.setattr("coordinator.stores.sqlite_reader.connect", refused)
        with pytest.raises(Unavailable, match="unable to open"):
            failing.reopen(once)

    failing.reopen(once)

    append(failing, event(2))
    assert log_of(failing) == [1, 2]


def test_reopening_does_not_accept_another_workspace(path: Path, sqlite: SqliteStore) -> None:
    path.rename(path.parent / "moved.db")
    SqliteStore.open(path).close()

    with pytest.raises(Unavailable, match="replaced"):
        sqlite.reopen()
    with pytest.raises(Unavailable):
        log_of(sqlite)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_a_flush_that_fails_is_noticed_and_the_truth_is_the_same_for_all(
    path: Path, tmp_path: Path, child: Callable[..., Child]
) -> None:
    script = """
import ctypes
store = SqliteStore.open(path)
append(store, event(1))
ctypes.CDLL(None).fail_next_flush()
try:
    append(store, event(2))
except CommitUnknown:
    say("unknown")
try:
    append(store, event(3))
except Unavailable:
    say("unavailable")
store.reopen()
say(log_of(store))
append(store, event(head_of(store).position + 1))
say(log_of(store))
hear()
"""
    process = child(script, path, environment=preloaded("failing_flushes.c", tmp_path))

    assert process.hear() == "unknown"
    assert process.hear() == "unavailable"
    truth = process.hear()
    assert truth in ("[1]", "[1, 2]")
    more = process.hear()
    assert more.startswith(truth[:-1])

    process.kill()
    with closing(SqliteStore.open(path)) as store:
        assert str(log_of(store)) == more


def refused(path: str, still_wanted: object) -> sqlite3.Connection:
    """As for want of descriptors."""
    raise sqlite3.OperationalError("unable to open database file")
