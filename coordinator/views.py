"""Rows as a decision sees them: what this batch has changed, over what is remembered, over what is stored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from coordinator.stores.interface import Snapshot, ViewRow
from projections.dependents import DEPENDENTS, DependentRow
from projections.jobs import JOBS, JobRow
from projections.leases import LEASES, LeaseRow
from projections.projection import Projection
from projections.registry import PROJECTIONS
from projections.reservations import RESERVATIONS, ReservationRow
from projections.tokens import TOKENS, TokenRow

R = TypeVar("R", bound=msgspec.Struct)

_PAGE = 64

_encode = msgspec.json.Encoder().encode


class RowCache:
    """Decoded rows that stay true while nobody else commits. Bounded: the rows unused for longest go first.

    It belongs to one writer. `valid_at` names the state of the store that it fits; at any other it is emptied.
    """

    def __init__(self, limit: int = 20_000) -> None:
        self.tables: dict[str, dict[str, Any]] = {projection.name: {} for projection in PROJECTIONS}
        self._limit = limit
        self._valid_at: tuple[int, int, bytes] | None = None

    def valid_at(self, generation: int, position: int, digest: bytes) -> None:
        """Empty the cache unless it was left at exactly this state."""
        state = (generation, position, digest)
        if self._valid_at != state:
            self.drop()
            self._valid_at = state

    def merge(self, views: Views, generation: int, position: int, digest: bytes) -> None:
        """Take over what a committed batch changed."""
        for table in views.tables:
            cached = self.tables[table.name]
            cached.update(table.pending)
            excess = len(cached) - self._limit
            if excess > 0:
                for key in list(cached)[: excess + self._limit // 4]:
                    del cached[key]
        self._valid_at = (generation, position, digest)

    def drop(self) -> None:
        """Forget everything."""
        for table in self.tables.values():
            table.clear()
        self._valid_at = None


class Table(Generic[R]):
    """The rows of one projection."""

    __slots__ = ("_cached", "_keys", "_places", "_projection", "_snapshot", "name", "pending")

    def __init__(self, projection: Projection[R], snapshot: Snapshot, cached: dict[str, R | None]) -> None:
        self.name = projection.name
        self.pending: dict[str, R | None] = {}
        self._projection = projection
        self._snapshot = snapshot
        self._cached = cached
        self._keys: list[str] = []  # of `pending`, sorted
        self._places: dict[str, list[tuple[int, str]]] = {}  # bucket -> (rank, key) of pending rows, sorted

    def get(self, key: str) -> R | None:
        if key in self.pending:
            return self.pending[key]
        if key in self._cached:
            return self._cached[key]
        body = self._snapshot.row(self.name, key)
        row = None if body is None else self._projection.decode(body)
        self._cached[key] = row
        return row

    def set(self, key: str, row: R | None) -> None:
        """Change a row for the rest of this batch."""
        if key in self.pending:
            before = self.pending[key]
            if before is not None:
                bucket, rank = self._projection.place(before)
                places = self._places[bucket]
                del places[bisect_left(places, (rank, key))]
        else:
            insort(self._keys, key)
        self.pending[key] = row
        if row is not None:
            bucket, rank = self._projection.place(row)
            insort(self._places.setdefault(bucket, []), (rank, key))

    def scan(self, bucket: str, *, up_to: int | None = None) -> Iterator[R]:
        """The rows of one bucket by rank, at most `up_to`."""
        pending = self._places.get(bucket, [])
        index = 0
        for rank, key, row in self._stored(bucket, up_to):
            while index < len(pending) and pending[index] < (rank, key):
                yield self._pending_row(pending[index][1])
                index += 1
            yield row
        end = len(pending) if up_to is None else bisect_right(pending, (up_to, chr(0x10FFFF)))
        for _, key in pending[index:end]:
            yield self._pending_row(key)

    def between(self, low: str, high: str | None) -> Iterator[R]:
        """The rows with `low <= key < high`: first those of this batch, then the stored ones."""
        start = bisect_left(self._keys, low)
        end = len(self._keys) if high is None else bisect_left(self._keys, high)
        for key in self._keys[start:end]:
            row = self.pending[key]
            if row is not None:
                yield row
        while True:
            page = self._snapshot.range(self.name, low, high, limit=_PAGE)
            for stored in page:
                if stored.key not in self.pending:
                    yield self._decoded(stored)
            if len(page) < _PAGE:
                return
            low = page[-1].key + "\x01"  # no key holds a lower character

    def changes(self) -> tuple[list[ViewRow], list[tuple[str, str]]]:
        """What to put and what to delete."""
        put: list[ViewRow] = []
        gone: list[tuple[str, str]] = []
        name, place = self.name, self._projection.place
        for key, row in self.pending.items():
            if row is None:
                gone.append((name, key))
            else:
                bucket, rank = place(row)
                put.append(ViewRow(name, key, bucket, rank, _encode(row).decode()))
        return put, gone

    def _stored(self, bucket: str, up_to: int | None) -> Iterator[tuple[int, str, R]]:
        after = None
        while True:
            page = self._snapshot.bucket(self.name, bucket, limit=_PAGE, after=after, up_to=up_to)
            for stored in page:
                if stored.key not in self.pending:
                    yield stored.rank, stored.key, self._decoded(stored)
            if len(page) < _PAGE:
                return
            after = (page[-1].rank, page[-1].key)

    def _decoded(self, stored: ViewRow) -> R:
        row = self._cached.get(stored.key)
        if row is None:
            row = self._cached[stored.key] = self._projection.decode(stored.body)
        return row

    def _pending_row(self, key: str) -> R:
        row = self.pending[key]
        if row is None:
            raise LookupError(key)  # places hold only rows that are set
        return row


class Views:
    """One table a projection, over one snapshot."""

    __slots__ = ("by_name", "dependents", "jobs", "leases", "reservations", "tables", "tokens")

    def __init__(self, snapshot: Snapshot, cache: RowCache | None = None) -> None:
        cached = (cache or RowCache()).tables
        self.jobs: Table[JobRow] = Table(JOBS, snapshot, cached["jobs"])
        self.leases: Table[LeaseRow] = Table(LEASES, snapshot, cached["leases"])
        self.tokens: Table[TokenRow] = Table(TOKENS, snapshot, cached["tokens"])
        self.reservations: Table[ReservationRow] = Table(RESERVATIONS, snapshot, cached["reservations"])
        self.dependents: Table[DependentRow] = Table(DEPENDENTS, snapshot, cached["dependents"])
        self.tables: tuple[Table[Any], ...] = (
            self.jobs,
            self.leases,
            self.tokens,
            self.reservations,
            self.dependents,
        )
        self.by_name: dict[str, Table[Any]] = {table.name: table for table in self.tables}

    def row(self, view: str, key: str) -> Any:
        """The row of any view, as a fold needs it."""
        return self.by_name[view].get(key)
