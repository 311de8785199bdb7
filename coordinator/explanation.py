"""One event of the log explained: its command, what it changed, and what a refusal goes back to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from coordinator.causes import Sought, sought
from coordinator.differences import RowChange, row_change
from coordinator.envelopes import envelope_of
from coordinator.errors import InvalidInput, damaged
from coordinator.log import LogEntry, entry_of
from coordinator.moments import UNFOLDABLE
from coordinator.payloads import decode
from coordinator.steps import Steps, command_of, rows_of
from coordinator.stores.interface import LogRow
from events.commands import CommandRefused
from events.envelope import Envelope
from projections.registry import FOLDS
from projections.replay import Rows, fold, replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An event that a refusal goes back to.

    Attributes:
        why: what it has to do with the refusal.
        entry: the event.
    """

    why: str
    entry: LogEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One event of the log.

    Attributes:
        entry: the event.
        command: all events of its command, itself among them.
        changes: the rows that it changed, before and after.
        causes: for a refusal, the events that it goes back to, in the order of the log.
    """

    entry: LogEntry
    command: tuple[LogEntry, ...]
    changes: tuple[RowChange, ...]
    causes: tuple[Cause, ...]


def explain(position: int) -> Steps[Explanation]:
    """Reads the event, its command and its stream; for a refusal, the streams of its causes.

    All rows that an event changes follow from the events of its own stream, so no other is folded.

    Raises:
        InvalidInput: the log ends before this position.
        Unavailable: it goes on behind this position, and has no such row.
    """
    row: LogRow | None = yield lambda snapshot: snapshot.event(position)
    if row is None:
        last: int = yield lambda snapshot: snapshot.head().position
        if position <= last:
            raise damaged(f"the log has no position {position}")
        raise InvalidInput("position", f"the log ends at position {last}")
    command = yield from command_of(row.command)
    envelope = envelope_of(row)
    refused = isinstance(envelope.event, CommandRefused)
    changes = () if refused else (yield from _changes(row))
    causes = (yield from _causes(envelope.event, row)) if isinstance(envelope.event, CommandRefused) else ()
    return Explanation(
        entry=entry_of(row), command=tuple(map(entry_of, command)), changes=tuple(changes), causes=tuple(causes)
    )


def _changes(row: LogRow) -> Steps[list[RowChange]]:
    rows = replay([])
    found: list[RowChange] = []

    def each(one: LogRow) -> None:
        try:
            envelope = envelope_of(one)
            if one.position == row.position:
                found.extend(_changed(envelope, rows))
            else:
                fold(envelope, rows)
        except UNFOLDABLE as error:
            raise damaged(f"position {one.position} cannot be folded: {error}") from error

    yield from rows_of(row.stream, row.position, each)
    return found


def _changed(envelope: Envelope, rows: Rows) -> list[RowChange]:
    event = envelope.event
    found = [
        row_change(view, key, rows[view].get(key), after)
        for view, change in FOLDS[type(event)]
        for key, after in change(event, envelope, rows[view].get)
    ]
    return [change for change in found if change is not None]


def _causes(event: CommandRefused, row: LogRow) -> Steps[list[Cause]]:
    values = decode(event.values)
    wanted = sought(event, values)
    found: dict[int, Cause] = {}
    first = values.get("first")
    if event.code == "receipt_conflict" and isinstance(first, int):
        used: LogRow | None = yield lambda snapshot: snapshot.event(first)
        if used is not None:
            found[first] = Cause(why="the first use of the receipt", entry=entry_of(used))
    for stream in dict.fromkeys(one.stream for one in wanted):
        kept = [(one, deque[LogRow](maxlen=one.most)) for one in wanted if one.stream == stream]
        yield from rows_of(stream, row.position - 1, lambda one, kept=kept: _keep(one, kept))
        for one, rows in kept:
            for cause in rows:
                found.setdefault(cause.position, Cause(why=one.why, entry=entry_of(cause)))
    return [found[position] for position in sorted(found)]


def _keep(row: LogRow, kept: list[tuple[Sought, deque[LogRow]]]) -> None:
    event = envelope_of(row).event
    for one, rows in kept:
        if one.fits(event):
            rows.append(row)
