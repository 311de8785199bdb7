"""Looking at a workspace without ever writing to it, however damaged it is: what can be read is read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar
from urllib.parse import quote

from coordinator.errors import AGAINST_DAMAGE, Busy, NotAWorkspace
from coordinator.stores.interface import Head, LogRow, Snapshot
from coordinator.stores.sqlite_file import APPLICATION_ID, locate, reaching
from coordinator.stores.sqlite_rows import HEAD, SqliteSnapshot, explain, is_locked

T = TypeVar("T")

_LOG = f"SELECT {', '.join(LogRow._fields)} FROM events NOT INDEXED"


class Unreadable(Exception):
    """Rows that cannot be read.

    Attributes:
        first, last: their positions, if they are of the log.
        why: in SQLite's words.
    """

    def __init__(self, first: int, last: int, why: str) -> None:
        super().__init__(why)
        self.first = first
        self.last = last
        self.why = why


class Inspection:
    """One read-only connection, for one thread.

    Raises:
        NotAWorkspace: the file is no workspace of ours, or too damaged to tell.
        Unavailable: it cannot be reached.
        Busy: another program keeps the file locked, here and wherever something is read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = locate(path)
        with reaching(self.path):
            self._connection = _open(self.path)
            try:
                found = self._connection.execute("PRAGMA application_id").fetchone()[0]
                if found != APPLICATION_ID:
                    raise NotAWorkspace(f"{self.path} belongs to another program", hint="name a workspace")
                ids = self._connection.execute("SELECT id FROM workspace").fetchall()
                heads = self._connection.execute(HEAD).fetchall()
            except sqlite3.OperationalError as error:
                self._connection.close()
                refuse_locked(error)
                raise NotAWorkspace(f"{self.path} is damaged: {error}", hint=AGAINST_DAMAGE) from error
            except BaseException:
                self._connection.close()
                raise
        if len(ids) != 1 or len(heads) != 1:
            self._connection.close()
            raise NotAWorkspace(f"{self.path} is damaged: it has no id or no head", hint=AGAINST_DAMAGE)
        self.workspace: bytes = ids[0][0]

    def begin(self) -> None:
        """What is read from now on belongs together, until `end`."""
        self._connection.execute("BEGIN")

    def end(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def read(self, work: Callable[[Snapshot], T]) -> T:
        """Call `work` with one consistent snapshot, as a store does.

        Raises:
            Unavailable: what it asks for cannot be read.
        """
        try:
            self.begin()
        except sqlite3.Error as error:
            raise explain(error) from error
        snapshot = SqliteSnapshot(self._connection)
        try:
            return work(snapshot)
        finally:
            snapshot.end()
            self.end()

    def head(self) -> Head:
        try:
            return Head._make(self._connection.execute(HEAD).fetchone())
        except sqlite3.Error as error:
            refuse_locked(error)
            raise explain(error) from error

    def page(self, after: int, limit: int) -> list[LogRow | Unreadable]:
        """The next rows; in place of those that cannot be read, why not. Empty at the end."""
        try:
            rows = self._connection.execute(f"{_LOG} WHERE position > ? ORDER BY position LIMIT ?", (after, limit))
            return [LogRow._make(row) for row in rows]
        except sqlite3.Error as error:
            refuse_locked(error)
            return self._one_by_one(after, limit)

    def rows(self, view: str) -> Iterator[tuple[str, tuple[str, int, str]]]:
        """Key, and bucket, rank and body, by key in binary order.

        Raises:
            Unreadable: they cannot be read on from there.
        """
        sql = "SELECT key, bucket, rank, body FROM views WHERE view = ? ORDER BY key"
        with _readable():
            for key, bucket, rank, body in self._connection.execute(sql, (view,)):
                yield key, (bucket, rank, body)

    def views(self) -> list[str]:
        """The names under which rows are stored."""
        with _readable():
            return [name for (name,) in self._connection.execute("SELECT DISTINCT view FROM views")]

    def receipts_used_twice(self) -> list[tuple[str, str, int]]:
        """Actor, receipt, and the position where it was used again. Looks at the events, not at their index."""
        sql = (
            "SELECT actor, receipt, max(position) FROM events NOT INDEXED WHERE receipt IS NOT NULL "
            "GROUP BY actor, receipt HAVING count(*) > 1"
        )
        with _readable():
            return self._connection.execute(sql).fetchall()

    def damage(self) -> list[str]:
        """What SQLite itself finds."""
        try:
            found = [line for (line,) in self._connection.execute("PRAGMA integrity_check(100)")]
        except sqlite3.Error as error:
            refuse_locked(error)
            return [str(error)]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.end()
        self._connection.close()

    def _one_by_one(self, after: int, limit: int) -> list[LogRow | Unreadable]:
        """Unreadable rows that follow each other are one entry. A row that is not there is not in the list."""
        found: list[LogRow | Unreadable] = []
        for position in range(after + 1, self.head().position + 1):
            try:
                row = self._connection.execute(f"{_LOG} WHERE position = ?", (position,)).fetchone()
            except sqlite3.Error as error:
                refuse_locked(error)
                if found and isinstance(last := found[-1], Unreadable) and last.last == position - 1:
                    last.last = position
                else:
                    found.append(Unreadable(position, position, str(error)))
                continue
            if row is not None:
                found.append(LogRow._make(row))
            if len(found) >= limit:
                break
        return found


def refuse_locked(error: sqlite3.Error) -> None:
    """A file that is locked is not damaged.

    Raises:
        Busy: that is what SQLite said.
    """
    if is_locked(error):
        raise Busy("another program keeps the file locked", hint="try again when it is done") from error


@contextmanager
def _readable() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        refuse_locked(error)
        raise Unreadable(0, 0, str(error)) from error


def _open(path: str) -> sqlite3.Connection:
    """For reading only, and so that nothing is left beside the file that was not there before.

    Where there is no write-ahead log, SQLite creates one for any reader, and removes it only with a connection that
    could write; so this one could, and is told not to. A copy in a folder that cannot be written cannot change.
    """
    file = f"file:{quote(os.fsencode(path))}"
    has_log = os.path.exists(path + "-wal")
    for mode in ("?mode=ro",) if has_log else ("?mode=rw", "?mode=ro", "?immutable=1"):
        connection = sqlite3.connect(file + mode, uri=True, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            refuse_locked(error)  # as immutable it could be opened, and be read half written
            if has_log or not os.path.exists(path) or mode == "?immutable=1":
                raise
        except BaseException:
            connection.close()
            raise
    raise AssertionError("one of the modes opens or raises")
