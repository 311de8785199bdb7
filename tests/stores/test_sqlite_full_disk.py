"""A disk without room: what is said, what stays, and that work goes on when there is room again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.errors import Unavailable
from coordinator.stores.interface import CommitUnknown, Transaction
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from coordinator.stores.sqlite_file import prepare
from tests.disks import fill, small_disk
from tests.stores.children import Child
from tests.stores.failing import FailingConnection
from tests.stores.rows import append, append_in, event, for_ever, log_of, once, put, row

NO_ROOM = r"full \(free some space on the disk\)"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 1_000) as folder:
        yield folder


# No room in the database: SQLite's own limit, which needs no disk


def test_a_full_disk_applies_nothing_and_passes(failing: SqliteStore, connection: FailingConnection) -> None:
    append(failing, event(1))
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")

    with pytest.raises(Unavailable, match=r"full \(free some space"):
        failing.write(fill_up, still_wanted=for_ever)

    assert log_of(failing) == [1]
    connection.execute(f"PRAGMA max_page_count={pages + 1000}")
    failing.write(fill_up, still_wanted=for_ever)
    assert log_of(failing) == [1, 2]


def test_work_that_goes_on_after_a_full_disk_writes_nothing_of_the_rest(
    failing: SqliteStore, connection: FailingConnection
) -> None:
    """SQLite has rolled the transaction back by then: what came after would commit statement by statement."""
    append(failing, event(1))
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")

    def work(transaction: Transaction) -> None:
        with pytest.raises(Unavailable):
            fill_up(transaction)
        with pytest.raises(Unavailable):
            transaction.put([row("a")])
        with pytest.raises(Unavailable):
            transaction.row("jobs", "a")

    with pytest.raises(Unavailable):
        failing.write(work, still_wanted=for_ever)

    assert log_of(failing) == [1]
    assert failing.read(lambda snapshot: snapshot.row("jobs", "a")) is None


def test_a_commit_after_which_only_the_shared_memory_finds_no_room_may_have_been_applied(
    failing: SqliteStore, connection: FailingConnection
) -> None:
    """SQLite grows the file `-shm` when the whole transaction is in its log already."""
    connection.at, connection.error_code, connection.done_first = "COMMIT", sqlite3.SQLITE_IOERR_SHMSIZE, True

    with pytest.raises(CommitUnknown):
        append(failing, event(1))

    failing.reopen()
    assert log_of(failing) == [1]


def test_a_commit_for_which_there_is_no_room_was_certainly_not_applied_and_the_store_goes_on(
    failing: SqliteStore, connection: FailingConnection
) -> None:
    append(failing, event(1))
    connection.at, connection.error_code = "COMMIT", sqlite3.SQLITE_FULL

    with pytest.raises(Unavailable, match="free some space on the disk"):
        append(failing, event(2))

    assert log_of(failing) == [1]
    append(failing, event(2))


# No room on the disk itself


def test_what_was_committed_before_the_disk_was_full_stays_and_more_is_taken_when_there_is_room(disk: Path) -> None:
    with closing(SqliteStore.open(disk / "work.db")) as store:
        append(store, event(1))
        filler = fill(disk)

        for _ in range(3):
            with pytest.raises(Unavailable, match=NO_ROOM):
                store.write(fill_up, still_wanted=once)
            assert log_of(store) == [1]

        filler.unlink()
        store.write(fill_up, still_wanted=once)
        assert log_of(store) == [1, 2]

    with closing(SqliteStore.open(disk / "work.db")) as store:
        assert log_of(store) == [1, 2]


def test_a_process_that_is_killed_on_a_full_disk_leaves_exactly_what_was_committed(
    disk: Path, child: Callable[..., Child]
) -> None:
    script = """
from tests.disks import fill
from pathlib import Path
store = SqliteStore.open(path)
append(store, event(1))
fill(Path(path).parent)
committed = 1
try:
    while True:
        store.write(lambda t: append_in(t, *(event(n) for n in range(committed + 1, committed + 8))), still_wanted=once)
        committed += 7
except Unavailable as error:
    say(committed, error)
hear()
"""
    process = child(script, disk / "work.db")
    committed, said = process.hear().split(" ", 1)
    assert "full" in said
    process.kill()
    (disk / "filler").unlink()

    with closing(SqliteStore.open(disk / "work.db")) as store:
        assert log_of(store) == list(range(1, int(committed) + 1))


@pytest.mark.parametrize("there_before", [True, False])
def test_opening_on_a_full_disk_names_it_and_succeeds_when_there_is_room(disk: Path, there_before: bool) -> None:
    path = disk / "work.db"
    if there_before:
        SqliteStore.open(path).close()
    filler = fill(disk)

    with pytest.raises(Unavailable, match="free some space on the disk"):
        SqliteStore.open(path)

    filler.unlink()
    with closing(SqliteStore.open(path)) as store:
        append(store, event(1))


def test_a_log_that_cannot_be_secured_for_want_of_room_says_so(disk: Path) -> None:
    path = disk / "work.db"
    prepare(path, once)
    connection = FailingConnection(path, isolation_level=None)
    with closing(SqliteStore(path, connection)) as store, closing(SqliteReader(path)):
        put(store, *(row(str(number), body="x" * 1000) for number in range(200)))
        connection.at, connection.done_first = "COMMIT", True
        with pytest.raises(CommitUnknown):
            append(store, event(1))
        filler = fill(disk)

        with pytest.raises(Unavailable, match=f"could not be secured: .*{NO_ROOM}"):
            store.reopen(once)
        with pytest.raises(Unavailable, match=f"could not be secured: .*{NO_ROOM}"):
            log_of(store)

        filler.unlink()
        store.reopen(once)
        assert log_of(store) == [1]


def fill_up(transaction: Transaction) -> None:
    transaction.put([row(str(number), body="x" * 1000) for number in range(200)])
    append_in(transaction, event(2))
