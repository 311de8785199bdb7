"""What every connection to a workspace is told, and what this process must not do while it has one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from build_hook import PACKAGES
from coordinator.stores import backup
from coordinator.stores.backup import back_up
from coordinator.stores.interface import Snapshot
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from coordinator.stores.sqlite_file import prepare
from coordinator.stores.turn import Turn
from tests.stores.children import ROOT, Child
from tests.stores.failing import FailingConnection
from tests.stores.rows import append, append_in, event, log_of, once, put, row

SETTINGS = {"synchronous": 2, "wal_autocheckpoint": 0, "busy_timeout": 0, "trusted_schema": 0}


def settings(connection: sqlite3.Connection) -> dict[str, object]:
    return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in SETTINGS}


@pytest.fixture
def backup_connection(path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """The one on which a backup was made."""
    made: list[sqlite3.Connection] = []
    connect = backup.connect
    monkeypatch.setattr(backup, "connect", lambda path: made.append(connect(path)) or made[-1])
    monkeypatch.setattr(backup, "closing", lambda connection: connection)  # its own way to end a `with` closes nothing
    back_up(str(path), str(path.parent / "copy.db"))
    yield made[0]
    made[0].close()


# What they are told


def test_the_connections_of_a_store_and_of_a_reader_flush_each_commit_and_never_checkpoint_by_themselves(
    path: Path, failing: SqliteStore, connection: FailingConnection
) -> None:
    """`failing` was handed a connection, as from aiosqlite; the others are its own."""
    with closing(SqliteReader(path)) as reader:
        found = [*failing._connections(), *reader._connections()]  # pyright: ignore[reportPrivateUsage]

        assert connection in found
        assert [settings(each) for each in found] == [SETTINGS] * 3
        assert {each.isolation_level for each in found} == {None}


def test_so_do_those_of_a_store_that_was_opened_anew_and_of_a_backup(
    sqlite: SqliteStore, backup_connection: sqlite3.Connection
) -> None:
    sqlite.reopen()

    found = [*sqlite._connections(), backup_connection]  # pyright: ignore[reportPrivateUsage]

    assert [settings(each) for each in found] == [SETTINGS] * 3


def test_a_write_keeps_other_programs_out_from_its_first_read_on(path: Path, sqlite: SqliteStore) -> None:
    """A transaction that only becomes a writing one later can meet what others wrote meanwhile, and must fail."""

    def work(transaction: object) -> None:
        with (
            closing(sqlite3.connect(path, timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("DELETE FROM views")

    sqlite.write(work, still_wanted=once)


def test_a_checkpoint_runs_while_the_turn_is_held(
    path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinator.stores.checkpoint._FIRST_ROWS", 1)
    monkeypatch.setattr("coordinator.stores.checkpoint._NOTED_ROWS", 1)
    checkpoints = sqlite._checkpoints  # pyright: ignore[reportPrivateUsage]
    run = checkpoints.run
    free: list[bool] = []

    def run_and_see() -> bool:
        with closing(Turn(f"{path}.turn")) as other:
            free.append(other._try())  # pyright: ignore[reportPrivateUsage]
        return run()

    monkeypatch.setattr(checkpoints, "run", run_and_see)

    put(sqlite, row("a"))

    assert free == [False]
    assert os.stat(path).st_size > 0


def test_a_read_that_has_ended_is_in_nobodys_way(path: Path, sqlite: SqliteStore) -> None:
    """One that stayed would keep the log from being moved into the database, and from starting anew."""
    with closing(SqliteReader(path)) as reader:
        assert log_of(reader) == []
        append(sqlite, event(1))
        with pytest.raises(KeyError):
            reader.read(refuse)
        put(sqlite, row("a"))

        assert sqlite._checkpoints.run()  # pyright: ignore[reportPrivateUsage]


def refuse(snapshot: Snapshot) -> None:
    snapshot.head()
    raise KeyError


# What this process must not do

WITH_THE_FILE_OPEN = {
    "another store": "SqliteStore.open(path).close()",
    "a reader": "SqliteReader(path).close()",
    "a backup": "back_up(path, path + '.copy')",
    "looking whether it is a workspace": "prepare(path, once)",
    "looking whether all files are there": "store._files.check()",
    "opening anew": "store.reopen()",
    "a fork that ends": "os.fork() or sys.exit(); os.wait()",
}


@pytest.mark.parametrize("use", WITH_THE_FILE_OPEN.values(), ids=WITH_THE_FILE_OPEN)
def test_nothing_makes_the_system_drop_sqlites_locks_of_this_process(
    use: str, path: Path, child: Callable[..., Child]
) -> None:
    """It does when any descriptor of the file is closed. Others then take the log for one that nobody uses."""
    script = f"""
from coordinator.stores.backup import back_up
from coordinator.stores.sqlite_file import prepare
store, reader = SqliteStore.open(path), SqliteReader(path)
append(store, event(1))
{use}
say("used")
hear()
append(store, event(3))
say("appended")
hear()
"""
    user = child(script, path)
    assert user.hear() == "used"
    other = child("store = SqliteStore.open(path); append(store, event(2)); store.close(); say('closed')", path)
    assert other.hear() == "closed"

    user.say()
    assert user.hear() == "appended"

    assert Path(f"{path}-wal").exists()
    with closing(SqliteReader(path)) as reader:
        assert log_of(reader) == [1, 2, 3]


def test_nothing_ever_interrupts_sqlite_or_loads_another_sqlite() -> None:
    """An interrupted statement rolls its whole transaction back; a second library drops the locks of the first."""
    sources = {file: file.read_text() for package in PACKAGES for file in (ROOT / package).rglob("*.py")}

    found = [
        (file.name, word)
        for file, text in sources.items()
        for word in (".interrupt(", "set_progress_handler", "pysqlite3", "apsw")
        if word in text
    ]

    assert len(sources) > 50
    assert found == []


# Backups


def test_a_backup_is_flushed_before_it_gets_its_name_and_so_is_the_folder_behind_it(
    path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(sqlite, event(1))
    done: list[object] = []
    link, fsync = os.link, os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (done.append(os.fstat(file).st_ino), fsync(file)))
    monkeypatch.setattr(os, "link", lambda source, target: (done.append("named"), link(source, target)))

    back_up(str(path), str(path.parent / "copy.db"))

    copy = path.parent / "copy.db"
    assert done == [copy.stat().st_ino, "named", path.parent.stat().st_ino]
    prepare(copy, once)
    with closing(SqliteStore(copy)) as store:
        assert log_of(store) == [1]
        store.write(lambda transaction: append_in(transaction, event(2)), still_wanted=once)
