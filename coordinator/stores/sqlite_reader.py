"""Reading a SQLite workspace, and what reading and writing connections have in common."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, TypeVar

from coordinator.errors import AGAINST_DAMAGE, Closed, CoordinatorError, NotAWorkspace, Unavailable
from coordinator.forks import INSTEAD, this_process
from coordinator.stores.interface import Snapshot
from coordinator.stores.open_files import OpenFiles, inherit, refuse_inherited
from coordinator.stores.sqlite_file import configure, connect, locate, reaching, recognise, retry_locked
from coordinator.stores.sqlite_rows import SqliteSnapshot, explain, is_locked
from coordinator.stores.turn import patience

T = TypeVar("T")

_HEAD_FITS = """
    SELECT (head.position, head.digest) = (coalesce(last.position, 0), coalesce(last.digest, workspace.id))
    FROM head JOIN workspace LEFT JOIN (SELECT position, digest FROM events ORDER BY position DESC LIMIT 1) AS last
"""

_CHECK_EVERY = 25
"""So many times `changed` is asked before it looks again whether the files are still there: that costs more."""

_live: weakref.WeakSet[SqliteReader] = weakref.WeakSet()


class SqliteReader:
    """A connection that only reads. It belongs to one thread, and to one process.

    It needs no turn, not even to open and to close, so that a stuck writer can be looked at.

    Args:
        path: an existing workspace; `prepare` makes sure of that.
        connection: an open connection to use instead of a new one, such as aiosqlite's; it is closed with the store.
    """

    def __init__(self, path: str | os.PathLike[str], connection: sqlite3.Connection | None = None) -> None:
        self.path = locate(path)
        self._process = this_process()
        self._unusable: CoordinatorError | None = None
        self._asked = 0  # whether it changed
        self._open(connection, patience())
        _live.add(self)

    @property
    def workspace(self) -> bytes:
        return self._workspace

    def read(self, work: Callable[[Snapshot], T]) -> T:
        self._check_usable()
        try:
            self._begin_reading(patience())
        except sqlite3.Error as error:
            raise explain(error) from error
        snapshot = SqliteSnapshot(self._connection)
        try:
            self._files.check()  # or the reader would see an old state for ever
            return work(snapshot)
        finally:
            snapshot.end()
            self._roll_back()

    def changed(self) -> bool:
        self._check_usable()
        if self._asked % _CHECK_EVERY == 0:  # whoever is told of a change reads, and there they are checked too
            self._files.check()
        self._asked += 1
        try:
            version = self._data_version()
        except sqlite3.Error as error:
            if is_locked(error):
                return False
            raise explain(error) from error
        changed, self._version = version != self._version, version
        return changed

    def reopen(self, still_wanted: Callable[[], bool] | None = None) -> None:
        """Close and open anew. Whoever asks `changed` next is told yes: what it knew may be wrong."""
        self._check_process()
        self._files.check()
        self._unusable = Unavailable("the store could not be opened anew", hint="reopen it again")
        self._close_connections()
        workspace = self._workspace
        self._open(None, still_wanted or patience())
        if self._workspace != workspace:
            raise Unavailable(f"{self.path} was replaced by another workspace")
        self._version = -1
        self._unusable = None

    def close(self) -> None:
        """The last of all connections to close also moves the whole log into the database. Twice is harmless."""
        if self._process is not this_process() or isinstance(self._unusable, Closed):
            return
        _live.discard(self)
        self._unusable = Closed("the store was closed")
        self._close_connections()

    def _open(self, connection: sqlite3.Connection | None, still_wanted: Callable[[], bool]) -> None:
        refuse_inherited(self.path)
        with reaching(self.path):
            self._connection = connection or connect(self.path, still_wanted)
            try:
                configure(self._connection, self.path, still_wanted)
                self._begin_reading(still_wanted)
                self._load()
                self._connection.execute("COMMIT")
                self._settle()
            except BaseException:
                self._connection.close()
                raise

    def _load(self) -> None:
        """Within a transaction: what is read once."""
        self._files = OpenFiles(self.path)
        recognise(self._connection, self.path)
        self._workspace = self._secret("SELECT id FROM workspace", "its id")
        self._only("SELECT up_to FROM sorted", lambda found: found >= 0, "how far its streams are sorted")
        self._only(_HEAD_FITS, bool, "its head, which is not where the log ends")
        self._version = self._data_version()

    def _settle(self) -> None:
        """Behind that transaction: what has to be set for good."""
        self._connection.execute("PRAGMA query_only=1")

    def _close_connections(self) -> None:
        self._files.closed()
        self._connection.close()

    def _begin_reading(self, still_wanted: Callable[[], bool]) -> None:
        """BEGIN alone takes no lock yet: the first read does, and only it can find the file locked."""
        self._begin(("BEGIN", "SELECT 1 FROM sqlite_schema"), still_wanted)

    def _begin(self, statements: Sequence[str], still_wanted: Callable[[], bool]) -> None:
        def step() -> None:
            try:
                for statement in statements:
                    self._connection.execute(statement)
            except sqlite3.Error:
                self._roll_back()
                raise

        retry_locked(step, still_wanted)

    def _roll_back(self) -> None:
        """SQLite may have done it already, for instance when the disk is full."""
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _secret(self, question: str, what: str) -> bytes:
        return self._only(question, lambda found: len(found) == 32, what)

    def _only(self, question: str, is_sound: Callable[[Any], bool], what: str) -> Any:
        """What stands in a table that has one row."""
        found = self._connection.execute(question).fetchall()
        if len(found) != 1 or not is_sound(found[0][0]):
            raise NotAWorkspace(f"{self.path} is damaged: {what}", hint=AGAINST_DAMAGE)
        return found[0][0]

    def _data_version(self) -> int:
        return self._connection.execute("PRAGMA data_version").fetchone()[0]

    def _check_usable(self) -> None:
        self._check_process()
        if self._unusable is not None:
            raise copy(self._unusable)
        if self._connection.in_transaction:
            raise RuntimeError("a transaction is running on this store")

    def _check_process(self) -> None:
        if self._process is not this_process():
            raise Closed("the store belongs to the parent of this process", hint=INSTEAD)

    def _leave_to_parent(self) -> None:
        """In a forked child: never let go of the connection.

        Closing it, which Python does to whatever nobody holds, could take the parent's file for a file that nobody
        uses any more, and remove its log.
        """
        import ctypes

        for connection in self._connections():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def _connections(self) -> Sequence[sqlite3.Connection]:
        return (self._connection,)


def _leave_all_to_parent() -> None:
    for store in list(_live):
        inherit(store._files)  # pyright: ignore[reportPrivateUsage]
        store._leave_to_parent()  # pyright: ignore[reportPrivateUsage]


os.register_at_fork(after_in_child=_leave_all_to_parent)
