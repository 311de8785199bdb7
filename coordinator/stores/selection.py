"""Some of the events of a workspace, however damaged it is: found by its indexes where they help, never written to."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

from coordinator.stores.inspection import Inspection, refuse_locked
from coordinator.stores.interface import LogRow

_PAGE: Final = 500
_GRANTS: Final = 4
_COLUMNS: Final = ", ".join(f"events.{column}" for column in LogRow._fields)
_GRANTED: Final = "events.type IN ('job.claimed', 'operation.queued', 'reader.opened')"
_OF_ALL: Final = "FROM events NOT INDEXED WHERE true"
_SORTED: Final = "FROM streams CROSS JOIN events ON events.position = streams.position WHERE streams.stream = ?"
_UNSORTED: Final = "FROM events NOT INDEXED WHERE events.stream = ?"
_OF_STREAM: Final = (
    "FROM (SELECT position FROM streams WHERE stream = ? UNION ALL SELECT position FROM events NOT INDEXED"
    " WHERE stream = ? AND position > (SELECT up_to FROM sorted)) AS mine"
    " CROSS JOIN events ON events.position = mine.position WHERE true"
)
_MISSING: Final = "missing: there is no such row"


class Unreadable(NamedTuple):
    """In place of events that follow each other, why they cannot be read."""

    position: int
    last: int
    problem: str

    def follows(self, other: Unreadable) -> bool:
        """Whether the other one continues this one."""
        return self.last + 1 == other.position and self.problem == other.problem


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which events; all conditions hold together.

    Attributes:
        stream: of this one alone, such as `job/parser`.
        readers: of readers of this name, of whatever topic; escaped as in their streams.
        actors: of one of these.
        types: of a type that one of these patterns fits, such as `job.*`.
        refusals: refusals alone.
        since, until: not before, and not after this log time.
        first, last: not before, and not after this position.
        receipt: of the commands with this receipt, and their refusals.
        body: of which this is true.
    """

    stream: str | None = None
    readers: str | None = None
    actors: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    refusals: bool = False
    since: int | None = None
    until: int | None = None
    first: int = 1
    last: int | None = None
    receipt: str | None = None
    body: Callable[[str], bool] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether no event between the first and the last is left out."""
        asked = (self.stream, self.readers, self.since, self.until, self.receipt, self.body)
        return not (self.actors or self.types or self.refusals) and all(condition is None for condition in asked)

    def conditions(self) -> tuple[str, list[str | int]]:
        """What SQL says of it, but for the stream, which has an index of its own."""
        said, values = list[str](), list[str | int]()

        def say(condition: str, *more: str | int) -> None:
            said.append(condition)
            values.extend(more)

        if self.readers is not None:
            say("events.stream >= 'reader/' AND events.stream < 'reader0'")
            say("substr(events.stream, ?) = ?", -len(self.readers) - 1, "/" + self.readers)
        if self.actors:
            say(f"events.actor IN ({', '.join('?' * len(self.actors))})", *self.actors)
        if self.types:
            say("(" + " OR ".join(["events.type GLOB ?"] * len(self.types)) + ")", *self.types)
        if self.refusals:
            say("events.type = 'command.refused'")
        if self.since is not None:
            say("events.at >= ?", self.since)
        if self.until is not None:
            say("events.at <= ?", self.until)
        if self.last is not None:
            say("events.position <= ?", self.last)
        if self.receipt is not None:
            digest = sha256(self.receipt.encode()).hexdigest()
            say(
                "(events.receipt = ? OR events.position > events.command AND"
                " ? = (SELECT first.receipt FROM events AS first WHERE first.position = events.command)"
                " OR events.type = 'command.refused' AND instr(events.body, ?))",
                *(self.receipt, self.receipt, f'"receipt_digest":"{digest}"'),
            )
        if self.body is not None:
            say("body_fits(events.body)")
        return "".join(f" AND {condition}" for condition in said), values


class SelectedRows(Inspection):
    """Reads what is selected, page by page, in the order of the log."""

    def selected(self, selection: Selection, after: int = 0) -> Iterator[LogRow | Unreadable]:
        """The events behind this position that are there now; in place of what cannot be read, why not.

        Raises:
            Busy: another program keeps the file locked.
        """
        self._prepare(selection)
        after = max(after, selection.first - 1, self._before(selection.since))
        last = self.last_position() if selection.last is None else min(self.last_position(), selection.last)
        yield from _joined(self._found(selection, after, last), after, last if selection.is_everything else None)

    def start_of_last(self, selection: Selection, count: int) -> int:
        """Behind which position the last so many begin."""
        self._prepare(selection)
        said, values = selection.conditions()
        source, stream = (_OF_STREAM, 2 * [selection.stream]) if selection.stream is not None else (_OF_ALL, [])
        sql = f"SELECT events.position {source}{said} AND events.position >= ? ORDER BY 1 DESC LIMIT ?"
        try:
            found = self._connection.execute(sql, (*stream, *values, selection.first, count)).fetchall()
            return found[-1][0] - 1 if found else self.last_position()
        except sqlite3.Error as error:
            refuse_locked(error)
            newest = deque((row.position for row in self.selected(selection)), maxlen=count)
            return newest[0] - 1 if newest else self.last_position()

    def holds(self, stream: str) -> bool:
        """Whether there is any event of this stream."""
        return next(self.selected(Selection(stream=stream)), None) is not None

    def granted(self, stream: str, before: int) -> list[LogRow]:
        """The latest claims, attempts or sessions of a stream before a position; none where they cannot be read."""
        sql = f"SELECT {_COLUMNS} {_OF_STREAM} AND {_GRANTED} AND events.position < ? ORDER BY events.position DESC"
        try:
            found = self._connection.execute(f"{sql} LIMIT ?", (stream, stream, before, _GRANTS))
            return [LogRow._make(row) for row in found]
        except sqlite3.Error:
            return []

    def last_position(self) -> int:
        """Where the log ends: what its head says, or its last row, whatever is further."""
        last = 0
        for question in ("SELECT position FROM head", "SELECT max(position) FROM events"):
            try:
                found = self._connection.execute(question).fetchone()
            except sqlite3.Error as error:
                refuse_locked(error)
                continue
            last = max(last, (found or (0,))[0] or 0)
        return last

    def changes(self) -> int:
        """Another number whenever somebody has written."""
        return self._connection.execute("PRAGMA data_version").fetchone()[0]

    def _prepare(self, selection: Selection) -> None:
        if selection.body is not None:
            self._connection.create_function("body_fits", 1, selection.body)

    def _before(self, at: int | None) -> int:
        """A position before all events of this time or a later one; log time never runs back."""
        if at is None:
            return 0
        sql = "SELECT at FROM events WHERE position = ?"
        try:
            positions = range(1, self.last_position() + 1)
            return bisect_left(positions, at, key=lambda p: self._connection.execute(sql, (p,)).fetchone()[0])
        except (sqlite3.Error, TypeError):  # damage, or a row that is not there: then all are looked at
            return 0

    def _found(self, selection: Selection, after: int, last: int) -> Iterator[LogRow | Unreadable]:
        while after < last:
            try:
                page: list[LogRow | Unreadable] = [*self._page(selection, after)]
                after, ended = (page[-1].position, False) if len(page) == _PAGE else (last, True)
            except sqlite3.Error as error:
                refuse_locked(error)
                page, ended = self._one_by_one_selected(selection, after, min(after + _PAGE, last)), False
                after += _PAGE
            yield from page
            if ended:
                return

    def _page(self, selection: Selection, after: int) -> list[LogRow]:
        said, values = selection.conditions()
        if selection.stream is None:
            return self._select(_OF_ALL + said, [*values, after, _PAGE])
        values = [selection.stream, *values]
        (up_to,) = self._connection.execute("SELECT up_to FROM sorted").fetchone()
        found = self._select(_SORTED + said, [*values, after, _PAGE]) if after < up_to else []
        if len(found) < _PAGE:
            found += self._select(_UNSORTED + said, [*values, max(after, up_to), _PAGE - len(found)])
        return found

    def _select(self, source: str, values: list[str | int]) -> list[LogRow]:
        sql = f"SELECT {_COLUMNS} {source} AND events.position > ? ORDER BY events.position LIMIT ?"
        return [LogRow._make(row) for row in self._connection.execute(sql, values)]

    def _one_by_one_selected(self, selection: Selection, after: int, until: int) -> list[LogRow | Unreadable]:
        """Each position for itself, without the help of an index: slow, and only where there is damage."""
        said, values = selection.conditions()
        if selection.stream is not None:
            said, values = f"{said} AND events.stream = ?", [*values, selection.stream]
        sql = f"SELECT {_COLUMNS} {_OF_ALL}{said} AND events.position = ?"
        found = list[LogRow | Unreadable]()
        for position in range(after + 1, until + 1):
            try:
                row = self._connection.execute(sql, (*values, position)).fetchone()
            except sqlite3.Error as error:
                refuse_locked(error)
                found.append(Unreadable(position, position, str(error)))
                continue
            if row is not None:
                found.append(LogRow._make(row))
        return found


def _joined(found: Iterable[LogRow | Unreadable], after: int, last: int | None) -> Iterator[LogRow | Unreadable]:
    """Unreadable ones that follow each other as one; and, up to `last`, those that are missing."""
    unreadable: Unreadable | None = None
    for row in found:
        if last is not None and row.position > after + 1:
            if unreadable is not None:
                yield unreadable
            unreadable = Unreadable(after + 1, row.position - 1, _MISSING)
        if isinstance(row, Unreadable) and unreadable is not None and unreadable.follows(row):
            unreadable = unreadable._replace(last=row.last)
        else:
            if unreadable is not None:
                yield unreadable
            unreadable = row if isinstance(row, Unreadable) else None
        if isinstance(row, LogRow):
            yield row
        after = row.position
    if unreadable is not None:
        yield unreadable
    if last is not None and after < last:
        yield Unreadable(after + 1, last, _MISSING)
