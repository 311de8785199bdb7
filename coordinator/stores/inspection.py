"""Looking at a workspace without ever writing to it, however damaged it is: what can be read is read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from urllib.parse import quote

from coordinator.errors import AGAINST_DAMAGE, NotAWorkspace
from coordinator.stores.interface import Head, LogRow
from coordinator.stores.sqlite_file import APPLICATION_ID, locate, reaching

_LOG = f"SELECT {', '.join(LogRow._fields)} FROM events NOT INDEXED"
_UNREADABLE_MOST = 100  # one after another; what comes behind is given up


class Inspection:
    """One read-only connection, for one thread.

    Raises:
        NotAWorkspace: the file is no workspace of ours, or too damaged to tell.
        Unavailable: it cannot be reached.
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
                heads = self._connection.execute(f"SELECT {', '.join(Head._fields)} FROM head").fetchall()
            except sqlite3.OperationalError as error:
                self._connection.close()
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

    def head(self) -> Head:
        return Head._make(self._connection.execute(f"SELECT {', '.join(Head._fields)} FROM head").fetchone())

    def page(self, after: int, limit: int) -> list[LogRow | str]:
        """The next rows; in place of those that cannot be read, why not. Empty at the end."""
        try:
            rows = self._connection.execute(f"{_LOG} WHERE position > ? ORDER BY position LIMIT ?", (after, limit))
            return [LogRow._make(row) for row in rows]
        except sqlite3.Error:
            return self._one_by_one(after, limit)

    def rows(self, view: str) -> Iterator[tuple[str, tuple[str, int, str]]]:
        """Key, and bucket, rank and body, by key in binary order."""
        sql = "SELECT key, bucket, rank, body FROM views WHERE view = ? ORDER BY key"
        for key, bucket, rank, body in self._connection.execute(sql, (view,)):
            yield key, (bucket, rank, body)

    def views(self) -> list[str]:
        """The names under which rows are stored."""
        return [name for (name,) in self._connection.execute("SELECT DISTINCT view FROM views")]

    def receipts_used_twice(self) -> list[tuple[str, str, int]]:
        """Actor, receipt, and the position where it was used again. Looks at the events, not at their index."""
        sql = (
            "SELECT actor, receipt, max(position) FROM events NOT INDEXED WHERE receipt IS NOT NULL "
            "GROUP BY actor, receipt HAVING count(*) > 1"
        )
        return self._connection.execute(sql).fetchall()

    def damage(self) -> list[str]:
        """What SQLite itself finds."""
        try:
            found = [line for (line,) in self._connection.execute("PRAGMA integrity_check(100)")]
        except sqlite3.Error as error:
            return [str(error)]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.end()
        self._connection.close()

    def _one_by_one(self, after: int, limit: int) -> list[LogRow | str]:
        found: list[LogRow | str] = []
        unreadable = 0
        for position in range(after + 1, after + 1 + limit):
            try:
                row = self._connection.execute(f"{_LOG} WHERE position = ?", (position,)).fetchone()
            except sqlite3.Error as error:
                unreadable += 1
                if unreadable > _UNREADABLE_MOST:
                    return found
                found.append(str(error))
                continue
            if row is None:
                return found
            unreadable = 0
            found.append(LogRow._make(row))
        return found


def _open(path: str) -> sqlite3.Connection:
    """Read-only. A copy in a folder that cannot be written has no log beside it, and cannot change."""
    uri = f"file:{quote(os.fsencode(path))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        return connection
    except sqlite3.OperationalError:
        connection.close()
        if os.path.exists(path + "-wal") or not os.path.exists(path):
            raise
    connection = sqlite3.connect(uri + "&immutable=1", uri=True, isolation_level=None)
    with closing(connection.cursor()) as cursor:
        cursor.execute("SELECT 1 FROM sqlite_schema").fetchone()
    return connection
