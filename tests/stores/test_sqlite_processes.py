"""Several processes, one turn: they exclude each other, and none keeps the others out by dying or forking."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.errors import Unavailable
from coordinator.forks import INSTEAD
from coordinator.stores import line, sqlite_reader
from coordinator.stores.interface import Snapshot, Transaction, TurnTaken
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from coordinator.stores.turn import Turn
from tests.stores.children import Child
from tests.stores.rows import append, event, head_of, log_of, once, put, row

HOLD_THE_TURN = """
store = SqliteStore.open(path)

def work(transaction):
    append_in(transaction, event(transaction.head().position + 1))
    say("holding")
    hear()

write(store, work)
say("committed")
hear()
"""

NAMES_HOLDERS = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")


def test_what_one_connection_commits_is_news_to_the_others(path: Path, sqlite: SqliteStore) -> None:
    with closing(SqliteReader(path)) as reader, closing(SqliteStore.open(path)) as other:
        assert not reader.changed()
        assert not sqlite.changed()

        append(other, event(1))

        assert reader.changed()
        assert sqlite.changed()
        assert not other.changed()
        assert not reader.changed()
        assert log_of(reader) == [1]


def test_what_was_rolled_back_or_only_looked_at_is_no_news(path: Path, sqlite: SqliteStore) -> None:
    def work(transaction: Transaction) -> None:
        transaction.put([row("a")])
        raise KeyError

    with closing(SqliteReader(path)) as reader:
        with pytest.raises(KeyError):
            sqlite.write(work, still_wanted=once)
        sqlite.write(lambda transaction: transaction.head(), still_wanted=once)
        sqlite.read(lambda snapshot: snapshot.head())

        assert not reader.changed()


def test_a_reader_cannot_write(path: Path, sqlite: SqliteStore) -> None:
    with closing(SqliteReader(path)) as reader:
        connection = reader._connection  # pyright: ignore[reportPrivateUsage]

        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM events")


def test_a_reader_sees_one_state_while_others_commit(path: Path, sqlite: SqliteStore) -> None:
    append(sqlite, event(1))

    with closing(SqliteReader(path)) as reader:

        def work(snapshot: Snapshot) -> list[int]:
            before = snapshot.head().position
            append(sqlite, event(2))
            return [before, snapshot.head().position]

        assert reader.read(work) == [1, 1]
        assert reader.read(lambda snapshot: snapshot.head()).position == 2


@NAMES_HOLDERS
def test_who_does_not_get_the_turn_learns_who_has_it(
    path: Path, sqlite: SqliteStore, child: Callable[..., Child]
) -> None:
    other = child(HOLD_THE_TURN, path)
    assert other.hear() == "holding"
    begun: list[None] = []

    with pytest.raises(TurnTaken) as caught:
        sqlite.write(lambda transaction: begun.append(None), still_wanted=once)

    assert caught.value.holder == other.pid
    assert begun == []
    other.say()
    assert other.hear() == "committed"
    append(sqlite, event(2))


def test_still_wanted_is_asked_again_and_again(path: Path, sqlite: SqliteStore) -> None:
    answers = [True] * 5 + [False]

    with closing(Turn(f"{path}.turn")) as other, other.held(once), pytest.raises(TurnTaken):
        sqlite.write(lambda transaction: None, still_wanted=lambda: answers.pop(0))

    assert answers == []


def test_the_turn_comes_when_its_holder_gives_it_back(path: Path, sqlite: SqliteStore) -> None:
    with closing(Turn(f"{path}.turn")) as other:
        other.take(once)
        asked: list[None] = []

        def give_back_when_asked_again() -> bool:
            asked.append(None)
            if len(asked) == 3:
                other.give_back()
            return True

        sqlite.write(lambda transaction: transaction.put([row("a")]), still_wanted=give_back_when_asked_again)

    assert len(asked) == 3


def test_what_processes_tell_each_other_in_the_file_of_the_turn_never_grows(
    path: Path, sqlite: SqliteStore, child: Callable[..., Child]
) -> None:
    script = "store = SqliteStore.open(path)\nfor n in range(300): put(store, row(str(n)))\nsay('done')\nhear()"
    other = child(script, path)

    for number in range(300):
        put(sqlite, row(str(number)))

    assert other.hear() == "done"
    assert os.stat(f"{path}.turn").st_size <= 16 + line.SIZE


def test_a_turn_can_be_held_by_one_of_two_threads_or_processes_only(path: Path) -> None:
    with closing(Turn(str(path))) as one, closing(Turn(str(path))) as two:
        with one.held(once), pytest.raises(TurnTaken):
            two.take(once)

        with two.held(once), pytest.raises(TurnTaken):
            one.take(once)


def test_a_process_that_is_killed_gives_the_turn_back_and_leaves_nothing_half_done(
    path: Path, sqlite: SqliteStore, child: Callable[..., Child]
) -> None:
    other = child(HOLD_THE_TURN, path)
    assert other.hear() == "holding"

    other.kill()

    sqlite.write(lambda transaction: transaction.put([row("a")]), still_wanted=once)
    assert log_of(sqlite) == []


@NAMES_HOLDERS
def test_another_program_that_locks_the_file_is_waited_for_and_named(
    path: Path, sqlite: SqliteStore, child: Callable[..., Child]
) -> None:
    other = child(
        "c = sqlite3.connect(path, isolation_level=None); c.execute('BEGIN IMMEDIATE'); say('in'); hear()", path
    )
    assert other.hear() == "in"

    with pytest.raises(TurnTaken) as caught:
        sqlite.write(lambda transaction: None, still_wanted=once)

    assert caught.value.holder == other.pid
    other.kill()
    append(sqlite, event(1))


def test_reading_gives_up_on_a_file_that_another_program_keeps_to_itself(
    path: Path, child: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore.open(path).close()
    reader = SqliteReader(path)
    with closing(reader):
        monkeypatch.setattr(sqlite_reader, "patience", lambda: once)
        monkeypatch.setattr(reader, "_connection", Locked())

        with pytest.raises(Unavailable, match="locked"):
            reader.read(lambda snapshot: snapshot.head())
        assert not reader.changed()

        monkeypatch.undo()
        assert reader.read(lambda snapshot: snapshot.head()).position == 0


def test_processes_that_write_at_once_lose_nothing(path: Path, child: Callable[..., Child]) -> None:
    script = """
store = SqliteStore.open(path)
say("ready")
hear()
for n in range(50):
    def work(transaction):
        append_in(transaction, event(transaction.head().position + 1, receipt=f"{os.getpid()}/{n}"))
    write(store, work)
store.close()
say("done")
"""
    children = [child(script, path) for _ in range(4)]
    for each in children:
        assert each.hear() == "ready"

    for each in children:
        each.say()
    for each in children:
        assert each.hear() == "done"

    with closing(SqliteStore.open(path)) as store:
        assert log_of(store) == list(range(1, 201))
        assert head_of(store).position == 200
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_stores_that_close_at_once_leave_one_complete_file(path: Path, child: Callable[..., Child]) -> None:
    script = "store = SqliteStore.open(path); put(store, row(str(os.getpid()))); say('ready'); hear(); store.close()"
    children = [child(script, path) for _ in range(4)]
    for each in children:
        assert each.hear() == "ready"

    for each in children:
        each.say()
    assert [each.ended() for each in children] == [0] * 4

    assert sorted(os.listdir(path.parent)) == ["work.db", "work.db.turn"]


def test_closing_waits_for_the_turn_but_not_for_ever(
    path: Path, sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []
    monkeypatch.setattr("coordinator.stores.sqlite.patience", lambda seconds: lambda: asked.append(None))

    with closing(Turn(f"{path}.turn")) as other, other.held(once):
        sqlite.close()

    assert asked == [None]
    assert sorted(os.listdir(path.parent)) == ["work.db", "work.db.turn"]


def test_a_forked_child_is_refused(path: Path, child: Callable[..., Child]) -> None:
    script = """
store = SqliteStore.open(path)
reader = SqliteReader(path)
append(store, event(1))
if os.fork() == 0:
    for use in (lambda: put(store, row("a")), lambda: head_of(store), lambda: reader.read(lambda s: s.head()),
                store.changed, store.reopen):
        try:
            use()
            say("not refused")
        except Closed as error:
            say(error)
    store.close()
    reader.close()
    os._exit(0)
os.wait()
append(store, event(2))
say(log_of(store))
store.close()
"""
    process = child(script, path)

    said = {process.hear() for _ in range(5)}
    assert said == {f"the store belongs to the parent of this process ({INSTEAD})"}


def test_a_forked_child_does_not_keep_the_turn(path: Path, sqlite: SqliteStore, child: Callable[..., Child]) -> None:
    script = """
store = SqliteStore.open(path)

def work(transaction):
    if os.fork() == 0:
        say("forked")
        hear()
        say("still here")
        os._exit(0)
    os.wait()

write(store, work)
"""
    parent = child(script, path)
    assert parent.hear() == "forked"

    parent.kill()
    sqlite.write(lambda transaction: transaction.put([row("a")]), still_wanted=once)

    parent.say()
    assert parent.hear() == "still here"


def test_a_forked_child_that_ends_does_not_remove_the_log_of_others(path: Path, child: Callable[..., Child]) -> None:
    """SQLite in the child would take itself for the last user of the file, and what is in the log would be lost."""
    forks = child(
        """
store = SqliteStore.open(path)
put(store, row("a"))
if os.fork() == 0:
    say("forked")
    hear()
    sys.exit()  # in an orderly way, which lets go of all objects
store.close()
say("closed")
os._exit(0)
""",
        path,
    )
    assert {forks.hear(), forks.hear()} == {"forked", "closed"}
    killed = child("store = SqliteStore.open(path); append(store, event(1)); say('written'); hear()", path)
    assert killed.hear() == "written"
    killed.kill()

    forks.say()
    assert forks.hear() == ""  # the pipe is closed: the child has ended

    with closing(SqliteStore.open(path)) as store:
        assert log_of(store) == [1]


def test_a_forked_child_cannot_open_what_its_parent_has_open(path: Path, child: Callable[..., Child]) -> None:
    script = """
from coordinator.errors import Unavailable
from coordinator.forks import INSTEAD

store = SqliteStore.open(path)
if os.fork() == 0:
    for use in (SqliteStore.open, SqliteStore, SqliteReader):
        try:
            use(path)
        except Unavailable as error:
            assert "forked" in str(error)
        else:
            os._exit(1)
    os._exit(0)
status = os.wait()[1]
append(store, event(1))
say(status, log_of(store))
"""

    assert child(script, path).hear() == "0 [1]"


def test_putting_needs_no_event(path: Path, sqlite: SqliteStore) -> None:
    put(sqlite, row("a"))

    with closing(SqliteReader(path)) as reader:
        assert reader.read(lambda snapshot: snapshot.row("jobs", "a")) == "{}"


class Locked:
    """A connection to a file that another program never lets go of."""

    in_transaction = False

    def execute(self, sql: str, values: object = ()) -> object:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error
