"""Time travel: the workspace as it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from coordinator import limits
from coordinator.clock import from_datetime
from coordinator.differences import RowChange, differences
from coordinator.envelopes import reading
from coordinator.errors import InvalidInput
from coordinator.execute import now
from coordinator.moments import lapse_due, store_of
from coordinator.reads import Reads
from coordinator.rebuild import check_head, replay_page
from coordinator.seen import Seen
from coordinator.session import Session
from coordinator.stores.interface import GENESIS, Snapshot
from coordinator.stores.memory import MemoryStore
from projections.replay import Rows, replay

T = TypeVar("T")


class Past(Reads):
    """The read methods for one moment of the past: the log folded from nothing up to there, once.

    At a position, what the event there left; at a time, also the leases that had run out by then.
    """

    def __init__(self, session: Session, moment: int | datetime, field: str = "position_or_time") -> None:
        self._field = field
        self._session = session
        self._position: int | None = None
        self._now: int | None = None
        self._rows: MemoryStore | None = None
        if isinstance(moment, datetime):
            self._now = from_datetime(field, moment)
        else:
            self._position = limits.whole(field, moment, 0, 2**63 - 1)

    async def _see(self, look: Callable[[Seen], T]) -> T:
        self._session.check_here()
        host = self._session.host
        if self._position is None:
            self._position = await host.read(self._position_then)
        with reading():
            rows, until = self._rows or store_of(await self._replayed(self._position)), self._position
            self._rows = rows
            return await host.read(lambda snapshot: look(self._seen(snapshot, rows, until)))

    async def _all_rows(self) -> Rows:
        """Every row, those of leases that had run out among them."""
        self._session.check_here()
        if self._position is None:
            self._position = await self._session.host.read(self._position_then)
        with reading():
            rows = await self._replayed(self._position)
        if self._now is not None:
            lapse_due(rows, self._now, self._position)
        return rows

    def _seen(self, snapshot: Snapshot, rows: MemoryStore, until: int) -> Seen:
        check_head(snapshot.head())
        return rows.read(lambda rows: Seen(snapshot, self._now, rows=rows, until=until))

    def _position_then(self, snapshot: Snapshot) -> int:
        moment = self._now or 0
        if moment > now(snapshot.head(), self._session.clock):
            raise InvalidInput(self._field, "lies in the future")
        return snapshot.position_at(moment)

    async def _replayed(self, until: int) -> Rows:
        """All rows as the events up to there leave them.

        Page by page: a read that takes long keeps the write-ahead log from being checkpointed.
        """
        rows, position = replay([]), GENESIS
        while position < until:
            further = await self._session.host.read(_page(rows, position, until))
            if further == position:
                raise InvalidInput(self._field, f"the log ends at position {position}")
            position = further
        return rows


def _page(rows: Rows, after: int, until: int) -> Callable[[Snapshot], int]:
    return lambda snapshot: replay_page(snapshot, rows, after, until)


async def changes_between(session: Session, before: int | datetime, after: int | datetime) -> list[RowChange]:
    """Every row that differs between two moments."""
    first, second = Past(session, before, "before"), Past(session, after, "after")
    old = await first._all_rows()  # pyright: ignore[reportPrivateUsage]
    new = await second._all_rows()  # pyright: ignore[reportPrivateUsage]
    return list(differences(old, new))
