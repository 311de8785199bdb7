"""Time travel: the workspace as it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from coordinator import limits
from coordinator.clock import from_datetime
from coordinator.errors import InvalidInput
from coordinator.reads import Reads
from coordinator.rebuild import replay_page
from coordinator.seen import Seen
from coordinator.session import Session
from coordinator.stores.interface import GENESIS, Snapshot, ViewRow
from coordinator.stores.memory import MemoryStore
from projections.replay import Rows, as_stored, replay

T = TypeVar("T")


class Past(Reads):
    """The read methods for one moment of the past: the log folded from nothing up to there, once.

    At a position, what the event there left; at a time, also the leases that had run out by then.
    """

    def __init__(self, session: Session, moment: int | datetime) -> None:
        self._session = session
        self._position: int | None = None
        self._now: int | None = None
        self._rows: MemoryStore | None = None
        if isinstance(moment, datetime):
            self._now = from_datetime("position_or_time", moment)
        else:
            self._position = limits.whole("position_or_time", moment, 0, 2**63 - 1)

    async def _see(self, look: Callable[[Seen], T]) -> T:
        self._session.check_open()
        return await self._session.host.read_apart(lambda snapshot: look(self._seen(snapshot)))

    def _seen(self, snapshot: Snapshot) -> Seen:
        if self._position is None:
            self._position = snapshot.position_at(self._now or 0)
        if self._rows is None:
            self._rows = _store(replay_until(snapshot, self._position))
        until = self._position
        return self._rows.read(lambda rows: Seen(snapshot, self._now, rows=rows, until=until))


def replay_until(snapshot: Snapshot, until: int) -> Rows:
    """All rows as the events up to a position leave them."""
    rows = replay([])
    position = GENESIS
    while position < until:
        further = replay_page(snapshot, rows, position, until)
        if further == position:
            raise InvalidInput("position_or_time", f"the log ends at position {position}")
        position = further
    return rows


def _store(rows: Rows) -> MemoryStore:
    store = MemoryStore()
    stored = [ViewRow(view, key, *as_stored(view, row)) for view, keyed in rows.items() for key, row in keyed.items()]
    store.write(lambda transaction: transaction.put(stored))
    return store
