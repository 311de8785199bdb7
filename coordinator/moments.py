"""All rows as they were at a moment of the past, also where the log is damaged."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from coordinator.clock import to_datetime
from coordinator.envelopes import envelope_of
from coordinator.seen import Seen
from coordinator.stores.inspection import Unreadable
from coordinator.stores.interface import GENESIS, LogRow, ViewRow
from coordinator.stores.memory import MemoryStore
from projections.replay import KeyedRows, Rows, as_stored, fold, replay

UNFOLDABLE = (AttributeError, KeyError, OverflowError, TypeError, ValueError, msgspec.DecodeError)
"""What reading and folding an event raise that nobody can have written."""

_TOLD = 100


class Moment:
    """The rows after the events folded so far.

    Attributes:
        position: of the last event that was folded.
        at: its log time, in µs.
        rows: view -> key -> row.
        problems: what could not be read or folded; the first of them, and `problem_count` says how many there are.
    """

    def __init__(self, rows: Rows | None = None) -> None:
        self.position = GENESIS
        self.at = 0
        self.rows = replay([]) if rows is None else rows
        self.problems: list[str] = []
        self.problem_count = 0

    def copy(self) -> Moment:
        """The same rows, which stay as they are while this one goes on."""
        other = Moment({view: KeyedRows(keyed) for view, keyed in self.rows.items()})
        other.position, other.at = self.position, self.at
        other.problems, other.problem_count = list(self.problems), self.problem_count
        return other

    def fold(self, page: Iterable[LogRow | Unreadable]) -> None:
        """Go on with the next events; in place of one that cannot be read, why not."""
        for row in page:
            if isinstance(row, Unreadable):
                place = f"position {row.first}" if row.first == row.last else f"positions {row.first} to {row.last}"
                self.problem(f"{place} cannot be read: {row.why}")
                self.position = row.last
                continue
            if row.position != self.position + 1:
                self.problem(f"events are missing between positions {self.position} and {row.position}")
            self.position = row.position
            self.fold_one(row)

    def reach(self, row: LogRow) -> bool:
        """Be as late as this event is; whether that is a time at all."""
        try:
            to_datetime(row.at)
        except OverflowError as error:
            self.problem(f"position {row.position} has no time: {error}")
            return False
        self.at = row.at
        return True

    def fold_one(self, row: LogRow) -> None:
        """Fold one event, whichever came before it."""
        if not self.reach(row):
            return
        try:
            fold(envelope_of(row), self.rows)
        except UNFOLDABLE as error:
            self.problem(f"position {row.position} cannot be folded: {error}")

    def lapse_due(self, now: int) -> None:
        """The leases that had run out at a time behind the last event."""
        self.at = now
        lapse_due(self.rows, now, self.position)

    def problem(self, problem: str) -> None:
        """Keep what is wrong; of very many, the first."""
        self.problem_count += 1
        if len(self.problems) < _TOLD:
            self.problems.append(problem)


def lapse_due(rows: Rows, now: int, position: int) -> None:
    """Fold what the next transaction would record first: the lapses that are due."""
    store = store_of({**replay([]), **{view: rows[view] for view in _LAPSE_CHANGES}})
    seen = store.read(lambda snapshot: Seen(snapshot, now, until=position))
    for table in seen.views.tables:
        for key, row in table.pending.items():
            rows[table.name].set(key, row)


_LAPSE_CHANGES = ("jobs", "leases", "reservations", "operations")


def store_of(rows: Rows) -> MemoryStore:
    """A store that holds these rows, to be read like any other."""
    store = MemoryStore()
    stored = [ViewRow(view, key, *as_stored(view, row)) for view, keyed in rows.items() for key, row in keyed.items()]
    store.write(lambda transaction: transaction.put(stored))
    return store
