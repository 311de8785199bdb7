"""The store on SQLite: one file, many processes, every answered commit on the disk."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from coordinator.errors import Closed, CoordinatorError, Unavailable
from coordinator.stores.checkpoint import Checkpoints
from coordinator.stores.interface import CommitUnknown, Snapshot, Transaction, TurnTaken
from coordinator.stores.sqlite_file import configure, connect, locate, prepare, reaching
from coordinator.stores.sqlite_rows import SqliteSnapshot, SqliteTransaction, explain, is_locked
from coordinator.stores.turn import Turn, lock_holder, pause

T = TypeVar("T")

_PATIENCE_S: Final = 5.0
_WRITE_LOCK_BYTE: Final = 120
"""Where in the `-shm` file SQLite keeps other writers out."""

_live: weakref.WeakSet[SqliteReader] = weakref.WeakSet()


def patience() -> Callable[[], bool]:
    """Yes for five seconds: for the steps that have no caller who could say how long to wait."""
    until = time.monotonic() + _PATIENCE_S
    return lambda: time.monotonic() < until


class SqliteReader:
    """A connection that only reads. It belongs to one thread, and to one process.

    Args:
        path: an existing workspace; `prepare` makes sure of that.
        connection: an open connection to use instead of a new one, such as aiosqlite's; it is closed with the store.
    """

    def __init__(self, path: str | os.PathLike[str], connection: sqlite3.Connection | None = None) -> None:
        self.path = locate(path)
        self._process = os.getpid()
        self._unusable: CoordinatorError | None = None
        with reaching(self.path):
            self._turn = Turn(self.path + ".turn")
        try:
            self._open(connection)
        except BaseException:
            self._turn.close()
            raise
        _live.add(self)

    @property
    def workspace(self) -> bytes:
        return self._workspace

    def read(self, work: Callable[[Snapshot], T]) -> T:
        self._check_usable()
        self._begin(("BEGIN", "SELECT 1 FROM head"), patience())
        snapshot = SqliteSnapshot(self._connection)
        try:
            return work(snapshot)
        finally:
            snapshot.end()
            self._roll_back()

    def changed(self) -> bool:
        self._check_usable()
        try:
            version = self._data_version()
        except sqlite3.Error as error:
            if is_locked(error):
                return False
            raise explain(error) from error
        changed, self._version = version != self._version, version
        return changed

    def reopen(self) -> None:
        """Close and open anew. Whoever asks `changed` next is told yes: what it knew may be wrong."""
        self._check_process()
        self._unusable = Unavailable("the store could not be opened anew", hint="reopen it again")
        self._shut()
        self._open(None)
        self._version = -1
        self._unusable = None

    def close(self) -> None:
        """Done under the turn, because the last to close moves the whole log into the database."""
        if self._process != os.getpid() or isinstance(self._unusable, Closed):
            return
        _live.discard(self)
        self._unusable = Closed("the store was closed")
        self._shut()
        self._turn.close()

    def _open(self, connection: sqlite3.Connection | None) -> None:
        with reaching(self.path), self._turn.held(patience()):
            self._connection = connection or connect(self.path)
            try:
                configure(self._connection)
                self._load()
            except BaseException:
                self._connection.close()
                raise

    def _load(self) -> None:
        """What is read once."""
        self._connection.execute("PRAGMA query_only=1")
        self._workspace = self._first("SELECT id FROM workspace")
        self._version = self._data_version()

    def _shut(self) -> None:
        """Without the turn closing is still safe for the data; only somebody who opens just now may have to wait."""
        with suppress(TurnTaken):
            self._turn.take(patience())
        try:
            self._close_connections()
        finally:
            self._turn.give_back()

    def _close_connections(self) -> None:
        self._connection.close()

    def _begin(self, statements: Sequence[str], still_wanted: Callable[[], bool]) -> None:
        """Other programs know nothing of the turn: one may hold SQLite's own locks for a while."""
        while True:
            try:
                for statement in statements:
                    self._connection.execute(statement).fetchall()
                return
            except sqlite3.Error as error:
                self._roll_back()
                if not is_locked(error):
                    raise explain(error) from error
                if not still_wanted():
                    raise TurnTaken(self._foreign_writer()) from error
            pause()

    def _roll_back(self) -> None:
        """SQLite may have done it already, for instance when the disk is full."""
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _foreign_writer(self) -> int | None:
        with suppress(OSError):
            return lock_holder("POSIX", os.stat(self.path + "-shm"), _WRITE_LOCK_BYTE)
        return None

    def _first(self, question: str) -> bytes:
        return self._connection.execute(question).fetchone()[0]

    def _data_version(self) -> int:
        return self._connection.execute("PRAGMA data_version").fetchone()[0]

    def _check_usable(self) -> None:
        self._check_process()
        if self._unusable is not None:
            raise self._unusable
        if self._connection.in_transaction:
            raise RuntimeError("a transaction is running on this store")

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise Closed("the store belongs to the parent of this process", hint="open one here")

    def _leave_to_parent(self) -> None:
        """In a forked child: never let go of the connection.

        Closing it, which Python does to whatever nobody holds, could take the parent's file for a file that nobody
        uses any more, and remove its log.
        """
        for connection in self._connections():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def _connections(self) -> Sequence[sqlite3.Connection]:
        return (self._connection,)


class SqliteStore(SqliteReader):
    """See `interface.Store`. Takes the same arguments as `SqliteReader`."""

    @classmethod
    def open(cls, path: str | os.PathLike[str], still_wanted: Callable[[], bool] | None = None) -> SqliteStore:
        """Create the workspace if need be, and open it on a plain connection. Raises what `prepare` raises."""
        prepare(path, still_wanted or patience())
        return cls(path)

    @property
    def key(self) -> bytes:
        return self._key

    def write(self, work: Callable[[Transaction], T], *, still_wanted: Callable[[], bool]) -> T:
        self._check_usable()
        self._turn.take(still_wanted)
        try:
            self._check_file()
            self._begin(("BEGIN IMMEDIATE",), still_wanted)
            transaction = SqliteTransaction(self._connection)
            try:
                answer = work(transaction)
                if transaction.failure is not None:  # and `work` swallowed it
                    raise transaction.failure
                checkpoint = self._commit(transaction) if transaction.written else False
            finally:
                transaction.end()
                self._roll_back()
            if checkpoint:
                self._checkpoints.run()
            return answer
        finally:
            self._turn.give_back()

    def reopen(self) -> None:
        super().reopen()
        self._secure()

    def _load(self) -> None:
        self._workspace = self._first("SELECT id FROM workspace")
        self._key = self._first("SELECT key FROM secret")
        self._version = self._data_version()
        self._file = self._file_now()
        self._checkpoints = Checkpoints(self.path, self._turn, self._connection)

    def _commit(self, transaction: SqliteTransaction) -> bool:
        """Returns whether a checkpoint is due."""
        checkpoint = self._checkpoints.count(transaction.written)
        if checkpoint:
            transaction.sort_streams()
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if is_locked(error) and self._connection.in_transaction:
                raise explain(error) from error
            self._unusable = Unavailable("the last commit failed", hint="reopen the store and see whether it applied")
            raise CommitUnknown(str(error)) from error
        return checkpoint

    def _secure(self) -> None:
        """What a failed flush left in the log may be in the system's memory only, and would be believed from now on.
        A checkpoint writes it into the database and flushes that, so that it is either true or an error.
        """
        still_wanted = patience()
        with self._turn.held(still_wanted):
            while not self._checkpoints.run() and still_wanted():
                pause()

    def _check_file(self) -> None:
        """A file that was moved away or replaced still takes commits, but nobody will find them."""
        with reaching(self.path):
            if self._file_now() != self._file:
                raise Unavailable(f"{self.path} was replaced by another file", hint="open it anew")

    def _file_now(self) -> tuple[int, int]:
        found = os.stat(self.path)
        return found.st_dev, found.st_ino

    def _close_connections(self) -> None:
        self._checkpoints.close()
        self._connection.close()

    def _connections(self) -> Sequence[sqlite3.Connection]:
        return (self._connection, *self._checkpoints.connections())


def _leave_all_to_parent() -> None:
    for store in list(_live):
        store._leave_to_parent()  # pyright: ignore[reportPrivateUsage]


os.register_at_fork(after_in_child=_leave_all_to_parent)
