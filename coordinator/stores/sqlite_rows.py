"""What a SQLite transaction can read and write: the statements, and nothing about when they run."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

from coordinator.errors import AGAINST_DAMAGE, Closed, NewerFormat, Unavailable, damaged, newer_format
from coordinator.stores.interface import FORMAT, BodyRow, Head, LogColumns, LogRow, RowExists, ViewColumns, ViewRow

_LARGEST_PIECE: Final = 256
_LOG_COLUMNS: Final = ", ".join(LogRow._fields)
_VIEW_COLUMNS: Final = ", ".join(ViewRow._fields)

HEAD: Final = f"SELECT {', '.join(Head._fields)} FROM head"
_SET_HEAD: Final = f"UPDATE head SET ({', '.join(Head._fields)}) = ({', '.join('?' * len(Head._fields))})"
_ROW: Final = "SELECT body FROM views WHERE view = ? AND key = ?"
_ROWS: Final = (
    "SELECT view, key, body FROM (VALUES {}) AS asked CROSS JOIN views ON view = asked.column1 AND key = asked.column2"
)
_EVENT: Final = f"SELECT {_LOG_COLUMNS} FROM events WHERE position = ?"
_AT: Final = "SELECT at FROM events WHERE position = ?"
_EVENTS: Final = f"SELECT {_LOG_COLUMNS} FROM events WHERE position > ? ORDER BY position LIMIT ?"
_STREAMS: Final = "SELECT stream FROM events WHERE position > ? ORDER BY position LIMIT ?"
_SORTED: Final = "SELECT up_to FROM sorted"
_SORTED_STREAM: Final = (
    "SELECT {} FROM streams CROSS JOIN events ON events.position = streams.position "
    "WHERE streams.stream = ? AND streams.position > ? {} ORDER BY streams.position LIMIT ?"
)
_STREAM_TAIL: Final = "SELECT {} FROM events WHERE stream = ? AND position > ? {} ORDER BY position LIMIT ?"


def _in_stream(sql: str, columns: Sequence[str], condition: str = "") -> str:
    return sql.format(", ".join("events." + column for column in columns), condition)


_OF_STREAM: Final = (_in_stream(_SORTED_STREAM, LogRow._fields), _in_stream(_STREAM_TAIL, LogRow._fields))
_BODIES: Final = (
    _in_stream(_SORTED_STREAM, BodyRow._fields, "AND events.type = ?"),
    _in_stream(_STREAM_TAIL, BodyRow._fields, "AND events.type = ?"),
)
_SORT: Final = (
    "INSERT INTO streams SELECT stream, position FROM events WHERE position > (SELECT up_to FROM sorted) "
    "ORDER BY stream, position"
)
_SORTED_ALL: Final = "UPDATE sorted SET up_to = (SELECT position FROM head)"
_RECEIPT: Final = f"SELECT {_LOG_COLUMNS} FROM events WHERE receipt = ? AND actor = ?"
_RECEIPTS: Final = (
    f"SELECT {_LOG_COLUMNS} FROM (VALUES {{}}) AS asked "
    "CROSS JOIN events ON receipt = asked.column1 AND actor = asked.column2"
)
_APPEND: Final = f"INSERT INTO events({_LOG_COLUMNS}) VALUES {{}}"
_PUT: Final = (
    f"INSERT INTO views({_VIEW_COLUMNS}) VALUES {{}} ON CONFLICT(view, key) "
    "DO UPDATE SET bucket = excluded.bucket, rank = excluded.rank, body = excluded.body"
)
_DELETE: Final = (
    "DELETE FROM views WHERE rowid IN (SELECT views.rowid FROM (VALUES {}) AS asked "
    "CROSS JOIN views ON view = asked.column1 AND key = asked.column2)"
)

_EXISTS: Final = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID}
)
_HINTS: Final = {
    sqlite3.SQLITE_FULL: "free some space on the disk",
    sqlite3.SQLITE_IOERR: "check the disk, and whether it is full",
    sqlite3.SQLITE_READONLY: "check the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "check that the file and its folder are still there",
    sqlite3.SQLITE_CORRUPT: f"the file is damaged; {AGAINST_DAMAGE}",
    sqlite3.SQLITE_NOTADB: f"the file is damaged; {AGAINST_DAMAGE}",
    sqlite3.SQLITE_ERROR: f"the file was tampered with; {AGAINST_DAMAGE}",
    sqlite3.SQLITE_BUSY: "another program keeps the file locked",
}


_OVER: Final = Closed("the transaction is over")


class SqliteSnapshot:
    """See `interface.Snapshot`.

    A failed statement ends the whole transaction, because SQLite may have rolled it back already: whoever swallows
    the error can't go on and write half of what was meant.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self.failure: BaseException | None = None

    def head(self) -> Head:
        return Head._make(self._only(HEAD))

    def row(self, view: str, key: str) -> str | None:
        found = self._all(_ROW, (view, key))
        return found[0][0] if found else None

    def rows(self, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
        return {(view, key): body for view, key, body in self._in_pieces(_ROWS, asked)}

    def bucket(
        self, view: str, bucket: str, *, limit: int, after: tuple[int, str] | None = None, up_to: int | None = None
    ) -> list[ViewRow]:
        sql = f"SELECT {_VIEW_COLUMNS} FROM views WHERE view = ? AND bucket = ?"
        if bucket:
            sql += " AND bucket <> ''"  # says that the index may be used
        values: list[str | int] = [view, bucket]
        if after is not None:
            sql += " AND (rank, key) > (?, ?)"
            values += after
        if up_to is not None:
            sql += " AND rank <= ?"
            values.append(up_to)
        return [ViewRow._make(row) for row in self._all(sql + " ORDER BY rank, key LIMIT ?", [*values, limit])]

    def range(self, view: str, low: str, high: str | None, *, limit: int) -> list[ViewRow]:
        sql = f"SELECT {_VIEW_COLUMNS} FROM views WHERE view = ? AND key >= ?"
        values: list[str | int] = [view, low]
        if high is not None:
            sql += " AND key < ?"
            values.append(high)
        return [ViewRow._make(row) for row in self._all(sql + " ORDER BY key LIMIT ?", [*values, limit])]

    def event(self, position: int) -> LogRow | None:
        found = self._all(_EVENT, (position,))
        return LogRow._make(found[0]) if found else None

    def events(self, *, after: int, limit: int, stream: str | None = None) -> list[LogRow]:
        if stream is None:
            return [LogRow._make(row) for row in self._all(_EVENTS, (after, limit))]
        return [LogRow._make(row) for row in self._of_stream(_OF_STREAM, stream, (), after, limit)]

    def bodies(self, stream: str, type: str, *, after: int, limit: int) -> list[BodyRow]:
        return [BodyRow._make(row) for row in self._of_stream(_BODIES, stream, (type,), after, limit)]

    def streams(self, *, after: int, limit: int) -> list[str]:
        return [stream for (stream,) in self._all(_STREAMS, (after, limit))]

    def receipt(self, actor: str, receipt: str) -> LogRow | None:
        found = self._all(_RECEIPT, (receipt, actor))
        return LogRow._make(found[0]) if found else None

    def receipts(self, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], LogRow]:
        swapped = [(receipt, actor) for actor, receipt in asked]
        found = map(LogRow._make, self._in_pieces(_RECEIPTS, swapped))
        return {(row.actor or "", row.receipt or ""): row for row in found}

    def position_at(self, at: int) -> int:
        """Log time never runs back and positions have no gaps, so no index is needed."""
        return bisect_right(range(1, self.head().position + 1), at, key=lambda p: self._all(_AT, (p,))[0][0])

    def end(self) -> None:
        """Whoever kept it can't use it any more."""
        self.failure = _OVER

    def _of_stream(
        self, statements: tuple[str, str], stream: str, values: Sequence[str], after: int, limit: int
    ) -> list[Any]:
        """Rows of a stream: what is sorted already, and what was appended since then."""
        in_sorted, in_tail = statements
        (up_to,) = self._only(_SORTED)
        found = self._all(in_sorted, (stream, after, *values, limit)) if after < up_to else []
        if len(found) < limit:
            found += self._all(in_tail, (stream, max(after, up_to), *values, limit - len(found)))
        return found

    def _in_pieces(self, sql: str, rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Run the statement with many rows at a time.

        Each step of a statement lets other threads run, and a busy one gives the interpreter back only after 5 ms.
        So there should be few steps, but also few sizes, because each is a statement that is kept prepared: the
        sizes are the numbers with three significant bits.
        """
        waiting, answers = list(rows), list[tuple[Any, ...]]()
        done = 0
        while left := len(waiting) - done:
            rest = max(left.bit_length() - 3, 0)
            size = min(_LARGEST_PIECE, left >> rest << rest)
            piece = waiting[done : done + size]
            answers += self._all(_spread(sql, size, len(piece[0])), list(chain.from_iterable(piece)))
            done += size
        return answers

    def _newer(self, error: sqlite3.Error) -> NewerFormat | None:
        """Where tables or columns are missing, newer software may have changed the layout under this process."""
        if _kind(error) != sqlite3.SQLITE_ERROR:
            return None
        (found,) = self._execute("PRAGMA user_version").fetchone()
        return newer_format(found, FORMAT) if found > FORMAT else None

    def _only(self, sql: str) -> Sequence[Any]:
        """The row of a table that has one."""
        found = self._all(sql)
        if not found:
            raise damaged(f"a row is missing ({sql})")
        return found[0]

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        try:
            return self._execute(sql, values).fetchall()
        except sqlite3.Error as error:
            self.failure = self._newer(error) or explain(error)
            raise self.failure from error
        except UnicodeDecodeError as error:
            self.failure = damaged("a text is not UTF-8")
            raise self.failure from error
        except BaseException as error:  # a value that SQLite can't hold, or the thread is being stopped
            self.failure = error
            raise


class SqliteTransaction(SqliteSnapshot):
    """See `interface.Transaction`. `written` counts rows, so that a checkpoint comes when it is due."""

    written = 0

    def append(self, rows: Sequence[LogColumns], head: Head) -> None:
        self.written += len(rows) + 1
        self._in_pieces(_APPEND, rows)
        self._all(_SET_HEAD, head)

    def clear_views(self) -> None:
        self.written += 1
        self._all("DELETE FROM views")

    def put(self, rows: Sequence[ViewColumns]) -> None:
        self.written += len(rows)
        self._in_pieces(_PUT, rows)

    def delete(self, keys: Sequence[tuple[str, str]]) -> None:
        self.written += len(keys)
        self._in_pieces(_DELETE, keys)

    def sort_streams(self) -> None:
        """Enter the events since the last time into the index of streams."""
        self._all(_SORT)
        self._all(_SORTED_ALL)


@cache
def _spread(sql: str, rows: int, columns: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return sql.format(", ".join([row] * rows))


def explain(error: sqlite3.Error) -> Exception:
    """What went wrong inside a transaction, in the words of the store's callers."""
    if getattr(error, "sqlite_errorcode", 0) in _EXISTS:
        return RowExists(str(error))
    if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError)):
        return RuntimeError(f"a mistake in this program: {error}")
    if not hasattr(error, "sqlite_errorcode") and "decode" in str(error):
        return damaged("a text is not UTF-8")  # Python's own error, which shows the text
    return Unavailable(f"SQLite: {error}", hint=hint_for(error))


def hint_for(error: sqlite3.Error) -> str:
    no_room_for_shm = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE
    return _HINTS.get(sqlite3.SQLITE_FULL if no_room_for_shm else _kind(error), "")


def is_out_of_room(error: sqlite3.Error) -> bool:
    """Whether what was to be written to the database or its log found no room."""
    return _kind(error) == sqlite3.SQLITE_FULL


def is_locked(error: sqlite3.Error) -> bool:
    """Whether SQLite said only "not now"."""
    return _kind(error) == sqlite3.SQLITE_BUSY


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is no database, or not a sound one."""
    return _kind(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def _kind(error: sqlite3.Error) -> int:
    """The low byte of the code is the error, the rest its variety. Python's own complaints have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
