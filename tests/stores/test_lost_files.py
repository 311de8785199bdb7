"""Somebody removes, replaces or moves a file of a workspace in use: nothing is acknowledged that nobody will find."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.errors import Unavailable
from coordinator.stores import open_files
from coordinator.stores.interface import CommitUnknown
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from coordinator.stores.turn import Turn
from tests.stores.children import Child
from tests.stores.failing import FailingConnection
from tests.stores.rows import append, append_in, event, head_of, log_of, once

KNOWS_WHO_LOCKS = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")

FILES = ["", "-wal", "-shm"]

WRITES = """
store = SqliteStore.open(path)
append(store, event(1), event(2))
say("written")
hear()
store.close()
say("closed")
"""


def remove(file: Path) -> None:
    file.unlink()


def replace(file: Path) -> None:
    copy = file.with_name("copy")
    copy.write_bytes(b"")
    copy.replace(file)


def swap(file: Path) -> None:
    """As a restored backup does: another file with the same contents."""
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    copy.replace(file)


@pytest.fixture
def used(path: Path, child: Callable[..., Child]) -> Child:
    """A process that has the workspace open and wrote to it, so that this one opens no file by itself."""
    process = child(WRITES, path)
    assert process.hear() == "written"
    return process


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("lose", [remove, replace, swap])
def test_whoever_has_lost_a_file_neither_writes_nor_reads(
    lose: Callable[[Path], None], suffix: str, path: Path, child: Callable[..., Child]
) -> None:
    script = """
store, reader = SqliteStore.open(path), SqliteReader(path)
append(store, event(1))
say("written")
hear()
write = lambda: append(store, event(2))
for use in (write, lambda: log_of(store), lambda: log_of(reader), store.changed, store.reopen):
    try:
        use()
        say("nothing is wrong")
    except Unavailable as error:
        say(error)
"""
    process = child(script, path)
    assert process.hear() == "written"

    lose(Path(f"{path}{suffix}"))

    process.say()
    for said in [process.hear() for _ in range(5)]:
        assert said.startswith(f"{path}{suffix}")
        assert "replaced" in said or "No such file" in said


@pytest.mark.parametrize("suffix", FILES)
def test_a_file_that_was_moved_away_can_be_put_back(suffix: str, path: Path, sqlite: SqliteStore) -> None:
    append(sqlite, event(1))
    file, elsewhere = Path(f"{path}{suffix}"), path.parent / "elsewhere"
    file.rename(elsewhere)
    with pytest.raises(Unavailable):
        append(sqlite, event(2))

    elsewhere.rename(file)

    append(sqlite, event(2))
    assert log_of(sqlite) == [1, 2]


def test_a_folder_that_was_moved_away_can_be_put_back(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    with closing(SqliteStore.open(folder / "work.db")) as store:
        append(store, event(1))
        folder.rename(elsewhere)
        for use in (lambda: append(store, event(2)), lambda: log_of(store)):
            with pytest.raises(Unavailable, match=r"No such file .*put the file and its folder back"):
                use()

        elsewhere.rename(folder)

        append(store, event(2))
        assert log_of(store) == [1, 2]


def test_a_file_that_is_replaced_while_a_write_waits_for_the_turn_takes_no_commit(
    path: Path, sqlite: SqliteStore
) -> None:
    with closing(Turn(f"{path}.turn")) as other:
        other.take(once)

        def replace_and_give_back() -> bool:
            path.rename(path.parent / "moved.db")
            other.give_back()
            return True

        with pytest.raises(Unavailable, match="No such file"):
            sqlite.write(lambda transaction: append_in(transaction, event(1)), still_wanted=replace_and_give_back)


def test_a_file_that_is_replaced_while_a_write_waits_for_another_program_takes_no_commit(
    path: Path, sqlite: SqliteStore
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")

        def replace_and_let_go() -> bool:
            path.rename(path.parent / "moved.db")
            other.execute("ROLLBACK")
            return True

        with pytest.raises(Unavailable, match="No such file"):
            sqlite.write(lambda transaction: append_in(transaction, event(1)), still_wanted=replace_and_let_go)

    (path.parent / "moved.db").rename(path)
    append(sqlite, event(1))


def test_a_store_that_must_be_opened_anew_waits_for_a_lost_file(
    path: Path, failing: SqliteStore, connection: FailingConnection
) -> None:
    """Opening would make a new log beside the old one, which others still use."""
    log, elsewhere = Path(f"{path}-wal"), path.parent / "elsewhere"
    connection.at, connection.done_first = "COMMIT", True
    with pytest.raises(CommitUnknown):
        append(failing, event(1))
    log.rename(elsewhere)

    with pytest.raises(Unavailable, match="-wal was removed"):
        failing.reopen(once)

    assert not log.exists()
    elsewhere.rename(log)
    failing.reopen(once)
    assert log_of(failing) == [1]


@KNOWS_WHO_LOCKS
@pytest.mark.parametrize("lost", [("-wal", "-shm"), ("-wal",), ("-shm",)])
def test_a_workspace_whose_log_was_removed_cannot_be_opened_until_those_who_have_it_are_gone(
    lost: tuple[str, ...], path: Path, used: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "_PATIENCE_S", 0)
    for suffix in lost:
        os.unlink(f"{path}{suffix}")

    for opening in (SqliteStore.open, SqliteReader):
        with pytest.raises(Unavailable, match=f"{lost[0]} is missing, but process {used.pid} uses the workspace"):
            opening(path)
    used.say()
    assert used.hear() == "closed"

    with closing(SqliteStore.open(path)) as store:
        assert log_of(store) == [1, 2]


@KNOWS_WHO_LOCKS
def test_nor_by_the_process_that_has_it_open(path: Path, child: Callable[..., Child]) -> None:
    script = """
from coordinator.stores import open_files
open_files._PATIENCE_S = 0
store = SqliteStore.open(path)
append(store, event(1))
os.unlink(path + "-wal")
try:
    SqliteReader(path)
except Unavailable as error:
    say(error)
store.close()
store = SqliteStore.open(path)
say(log_of(store))
"""
    process = child(script, path)

    assert f"-wal is missing, but process {process.pid} uses" in process.hear()
    assert process.hear() == "[1]"


@KNOWS_WHO_LOCKS
def test_who_opens_waits_for_somebody_who_is_just_closing(
    path: Path, child: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore.open(path).close()
    script = """
import fcntl
file = open(path, "rb")
fcntl.lockf(file, fcntl.LOCK_SH, 510, 0x40000002)  # as SQLite does
say("locked")
hear()
file.close()
say("let go")
hear()
"""
    closing_one = child(script, path)
    assert closing_one.hear() == "locked"
    waited: list[str] = []

    def let_it_close() -> None:
        closing_one.say()
        waited.append(closing_one.hear())

    monkeypatch.setattr(open_files, "pause", let_it_close)

    with closing(SqliteStore.open(path)) as store:
        assert head_of(store).position == 0
    assert waited == ["let go"]


def test_a_log_that_nobody_uses_is_no_obstacle(path: Path, used: Child) -> None:
    """What a killed process leaves may be incomplete, as in a copy: then there is nothing to wait for."""
    used.kill()
    os.unlink(f"{path}-shm")

    with closing(SqliteStore.open(path)) as store:
        assert log_of(store) == [1, 2]


def test_who_asks_whether_something_changed_hears_before_long_that_the_file_is_gone(path: Path) -> None:
    """Not each time, for that would cost more than the question."""
    SqliteStore.open(path).close()
    with closing(SqliteReader(path)) as reader:
        for _ in range(7):
            assert not reader.changed()
        path.rename(path.with_name("away"))

        with pytest.raises(Unavailable):
            _ = [reader.changed() for _ in range(25)]
        with pytest.raises(Unavailable):
            reader.changed()

        path.with_name("away").rename(path)
        assert not reader.changed()
