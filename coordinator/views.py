"""Rows as a decision sees them: what this batch has changed, over what is remembered, over what is stored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from coordinator.stores.interface import Snapshot, ViewColumns, ViewRow
from events.envelope import Envelope
from events.jobs import JobAdded, JobRevised
from events.union import AnyEvent
from projections.dependents import DEPENDENTS, DependentRow
from projections.grants import GRANTS, GrantRow
from projections.jobs import JOBS, JobRow
from projections.leases import LEASES, LeaseRow
from projections.marks import MARKS, MarkRow
from projections.operations import OPERATIONS, OperationRow
from projections.projection import Projection
from projections.readers import READERS, ReaderRow
from projections.registry import PROJECTIONS
from projections.replay import fold
from projections.reservations import RESERVATIONS, ReservationRow
from projections.topics import TOPICS, TopicRow

if TYPE_CHECKING:
    from coordinator.decisions.claims import Passed

R = TypeVar("R", bound=msgspec.Struct)

_PAGE = 64
_SMALL_PAYLOAD = 1_024
_SMALL = 1_000  # a view of so few rows is remembered as a whole

NEVER = 2**63
"""Later than any log time."""

_encode = msgspec.json.Encoder().encode

_UNTOUCHED: Any = object()
"""What stood under a key of a batch that had not changed it before."""


class Cached(Generic[R]):
    """The rows of one view that are remembered; None for a key that is known to be free.

    While a view is small it is remembered as a whole (`keys` is then all its keys, sorted), so that looking for what is
    not there asks the store nothing.
    """

    __slots__ = ("keys", "large", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, R | None] = {}
        self.keys: list[str] | None = None
        self.large = False  # it was too large to be remembered as a whole when that was tried

    def clear(self) -> None:
        self.rows.clear()
        self.keys = None
        self.large = False

    def complete(self, rows: dict[str, R | None]) -> None:
        """Remember these rows, in the order of their keys, as all there are."""
        self.rows = rows
        self.keys = list(rows)

    def merge(self, changes: Mapping[str, R | None], limit: int) -> None:
        """Take over what a committed batch changed; when there are too many rows, those known for longest go."""
        if self.keys is not None:
            for key, row in changes.items():
                self._list(self.keys, key, row)
        self.rows.update(changes)
        excess = len(self.rows) - limit
        if excess > 0:
            self.keys = None
            self.large = True
            for key in list(self.rows)[: excess + limit // 4]:
                del self.rows[key]

    def _list(self, keys: list[str], key: str, row: R | None) -> None:
        known = self.rows.get(key)
        if known is None and row is not None:
            insort(keys, key)
        elif known is not None and row is None:
            del keys[bisect_left(keys, key)]


class RowCache:
    """Decoded rows that stay true while nobody else commits. Bounded.

    It belongs to one writer. `valid_at` names the state of the store that it fits; at any other it is emptied.

    Attributes:
        described: small events that describe a job, by position.
        quiet_until: no live lease falls due before this log time, in µs; 0 if that is not known.
    """

    def __init__(self, limit: int = 20_000) -> None:
        self.tables: dict[str, Cached[Any]] = {projection.name: Cached() for projection in PROJECTIONS}
        self.described: dict[int, AnyEvent] = {}
        self.quiet_until = 0
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
            self.tables[table.name].merge(table.pending, self._limit)
        for lease in views.leases.pending.values():
            if lease is not None and lease.ended is None and 0 < lease.lease_until < self.quiet_until:
                self.quiet_until = lease.lease_until
        self._valid_at = (generation, position, digest)

    def describe(self, envelope: Envelope) -> None:
        """Keep what a claim of the job will be answered with, unless it is large."""
        event = envelope.event
        if isinstance(event, (JobAdded, JobRevised)) and len(bytes(event.payload or b"")) <= _SMALL_PAYLOAD:
            self.described[envelope.position] = event
            if len(self.described) > self._limit:
                del self.described[next(iter(self.described))]

    def drop(self) -> None:
        """Forget everything."""
        for table in self.tables.values():
            table.clear()
        self.described.clear()
        self.quiet_until = 0
        self._valid_at = None


class Table(Generic[R]):
    """The rows of one projection."""

    __slots__ = ("_cached", "_done", "_keys", "_places", "_projection", "_snapshot", "name", "pending")

    def __init__(
        self,
        projection: Projection[R],
        snapshot: Snapshot,
        cached: Cached[R],
        done: list[tuple[Table[Any], str, Any]],
    ) -> None:
        self.name = projection.name
        self.pending: dict[str, R | None] = {}
        self._projection = projection
        self._snapshot = snapshot
        self._cached = cached
        self._done = done
        self._keys: list[str] | None = None  # of `pending`, sorted, once somebody looks for a range
        self._places: dict[str, list[tuple[int, str]]] | None = None  # bucket -> (rank, key), once one is scanned

    def get(self, key: str) -> R | None:
        if key in self.pending:
            return self.pending[key]
        cached = self._cached
        if key in cached.rows:
            return cached.rows[key]
        if cached.keys is not None:
            return None
        body = self._snapshot.row(self.name, key)
        return self.remember(key, body)

    def unknown(self, key: str) -> bool:
        """Whether asking for this row would ask the store."""
        cached = self._cached
        return cached.keys is None and key not in cached.rows and key not in self.pending

    def set(self, key: str, row: R | None) -> None:
        """Change a row for the rest of this batch."""
        before = self.pending.get(key, _UNTOUCHED)
        self._done.append((self, key, before))
        if self._keys is not None and before is _UNTOUCHED:
            insort(self._keys, key)
        if self._places is not None:
            self._move(self._places, key, None if before is _UNTOUCHED else before, row)
        self.pending[key] = row

    def take_back(self, key: str, before: Any) -> None:
        """Undo the last change of a row."""
        if before is _UNTOUCHED:
            del self.pending[key]
        else:
            self.pending[key] = before
        self._keys = self._places = None

    def scan(self, bucket: str, *, up_to: int | None = None) -> Iterator[R]:
        """The rows of one bucket by rank, at most `up_to`."""
        if self._places is None:
            self._places = {}
            for key, row in self.pending.items():
                self._move(self._places, key, None, row)
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
        """The rows with `low <= key < high`: first those of this batch, then the others."""
        if self._keys is None:
            self._keys = sorted(self.pending)
        for key in _between(self._keys, low, high):
            row = self.pending[key]
            if row is not None:
                yield row
        keys = self._all_keys()
        if keys is None:
            yield from self._stored_between(low, high)
            return
        for key in _between(keys, low, high):
            row = self._cached.rows[key]
            if row is not None and key not in self.pending:
                yield row

    def _move(self, places: dict[str, list[tuple[int, str]]], key: str, before: R | None, row: R | None) -> None:
        if before is not None:
            bucket, rank = self._projection.place(before)
            del places[bucket][bisect_left(places[bucket], (rank, key))]
        if row is not None:
            bucket, rank = self._projection.place(row)
            insort(places.setdefault(bucket, []), (rank, key))

    def changes(self) -> tuple[list[ViewColumns], list[tuple[str, str]]]:
        """What to put and what to delete."""
        put: list[ViewColumns] = []
        gone: list[tuple[str, str]] = []
        name, place = self.name, self._projection.place
        for key, row in self.pending.items():
            if row is None:
                gone.append((name, key))
            else:
                bucket, rank = place(row)
                put.append((name, key, bucket, rank, _encode(row).decode()))
        return put, gone

    def _all_keys(self) -> list[str] | None:
        """All stored keys, if they are few enough to be remembered."""
        cached = self._cached
        if cached.keys is None and not cached.large and self._projection.ranged:
            page = self._snapshot.range(self.name, "", None, limit=_SMALL + 1)
            if len(page) <= _SMALL:
                cached.complete({stored.key: self._projection.decode(stored.body) for stored in page})
            cached.large = cached.keys is None
        return cached.keys

    def _stored_between(self, low: str, high: str | None) -> Iterator[R]:
        while True:
            page = self._snapshot.range(self.name, low, high, limit=_PAGE)
            for stored in page:
                if stored.key not in self.pending:
                    yield self._decoded(stored)
            if len(page) < _PAGE:
                return
            low = page[-1].key + "\x01"  # no key holds a lower character

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
        row = self._cached.rows.get(stored.key)
        if row is None:
            row = self._cached.rows[stored.key] = self._projection.decode(stored.body)
        return row

    def remember(self, key: str, body: str | None) -> R | None:
        """Keep what the store holds under a key."""
        row = self._cached.rows[key] = None if body is None else self._projection.decode(body)
        return row

    def _pending_row(self, key: str) -> R:
        row = self.pending[key]
        if row is None:
            raise LookupError(key)  # places hold only rows that are set
        return row


def _between(keys: list[str], low: str, high: str | None) -> list[str]:
    return keys[bisect_left(keys, low) : len(keys) if high is None else bisect_left(keys, high)]


class Views:
    """One table a projection, over one snapshot."""

    __slots__ = (
        "_done",
        "_snapshot",
        "by_name",
        "dependents",
        "grants",
        "jobs",
        "leases",
        "marks",
        "operations",
        "readers",
        "reservations",
        "searched",
        "tables",
        "topics",
    )

    def __init__(self, snapshot: Snapshot, cache: RowCache | None = None) -> None:
        cached = (cache or RowCache()).tables
        done: list[tuple[Table[Any], str, Any]] = []

        def table(projection: Projection[R]) -> Table[R]:
            return Table(projection, snapshot, cached[projection.name], done)

        self._snapshot = snapshot
        self.searched: Passed | None = None  # those a search among these rows passed over; gone when a row changes
        self._done = done  # what one command has changed, and what stood there
        self.jobs: Table[JobRow] = table(JOBS)
        self.leases: Table[LeaseRow] = table(LEASES)
        self.reservations: Table[ReservationRow] = table(RESERVATIONS)
        self.dependents: Table[DependentRow] = table(DEPENDENTS)
        self.topics: Table[TopicRow] = table(TOPICS)
        self.marks: Table[MarkRow] = table(MARKS)
        self.readers: Table[ReaderRow] = table(READERS)
        self.operations: Table[OperationRow] = table(OPERATIONS)
        self.grants: Table[GrantRow] = table(GRANTS)
        self.tables: tuple[Table[Any], ...] = (
            self.jobs,
            self.leases,
            self.reservations,
            self.dependents,
            self.topics,
            self.marks,
            self.readers,
            self.operations,
            self.grants,
        )
        self.by_name: dict[str, Table[Any]] = {table.name: table for table in self.tables}

    def evolve(self, envelopes: Iterable[Envelope]) -> None:
        """Fold events into the rows, all of them or none."""
        self.searched = None
        self._done.clear()
        try:
            for envelope in envelopes:
                fold(envelope, self.by_name)
        except BaseException:
            for table, key, before in reversed(self._done):
                table.take_back(key, before)
            raise

    def fetch(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Read the rows of these (view, key) that are not known yet, all at once."""
        asked = {(view, key) for view, key in wanted if self.by_name[view].unknown(key)}
        if asked:
            bodies = self._snapshot.rows(asked)
            for view, key in asked:
                self.by_name[view].remember(key, bodies.get((view, key)))
