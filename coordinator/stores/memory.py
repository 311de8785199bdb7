"""The store in memory: for tests, replay and simulation. Nothing outlives the object."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NoReturn, TypeVar

from coordinator.errors import Closed
from coordinator.stores.interface import (
    FORMAT,
    BodyRow,
    Head,
    LogColumns,
    LogRow,
    RowExists,
    Snapshot,
    Transaction,
    ViewColumns,
    ViewRow,
)

T = TypeVar("T")


class _View:
    """The rows of one view. The sorted lists are built when they are first asked for: a replay never asks."""

    def __init__(self) -> None:
        self.rows: dict[str, ViewRow] = {}
        self._keys: list[str] | None = None
        self._buckets: dict[str, list[tuple[int, str]]] | None = None

    def set(self, key: str, row: ViewRow | None) -> ViewRow | None:
        """Returns what was there before."""
        old = self.rows.get(key)
        if row is not None:
            self.rows[key] = row
        elif old is not None:
            del self.rows[key]
        if self._keys is not None:
            self._sort_key(self._keys, key, old, row)
        if self._buckets is not None:
            self._sort_rank(self._buckets, old, row)
        return old

    def keys(self) -> list[str]:
        """Sorted. Python compares strings by code point, which is the binary order of their UTF-8."""
        if self._keys is None:
            self._keys = sorted(self.rows)
        return self._keys

    def bucket(self, bucket: str) -> list[tuple[int, str]]:
        """Sorted (rank, key) pairs."""
        if self._buckets is None:
            self._buckets = {}
            for row in self.rows.values():
                self._buckets.setdefault(row.bucket, []).append((row.rank, row.key))
            for pairs in self._buckets.values():
                pairs.sort()
        return self._buckets.get(bucket, [])

    @staticmethod
    def _sort_key(keys: list[str], key: str, old: ViewRow | None, row: ViewRow | None) -> None:
        if old is None and row is not None:
            insort(keys, key)
        elif old is not None and row is None:
            del keys[bisect_left(keys, key)]

    @staticmethod
    def _sort_rank(buckets: dict[str, list[tuple[int, str]]], old: ViewRow | None, row: ViewRow | None) -> None:
        if old and row and (old.bucket, old.rank) == (row.bucket, row.rank):
            return
        if old is not None:
            pairs = buckets[old.bucket]
            del pairs[bisect_left(pairs, (old.rank, old.key))]
        if row is not None:
            insort(buckets.setdefault(row.bucket, []), (row.rank, row.key))


class _Contents:
    """All that a workspace holds; at once the snapshot and the transaction, as only one runs at a time.

    Changes are made in place, so that the transaction's own reads see them, and what was there before is kept.
    """

    def __init__(self, workspace: bytes) -> None:
        self.log: list[LogRow] = []
        self.by_stream: dict[str, list[int]] = {}
        self.used: dict[tuple[str | None, str], int] = {}
        self.views: dict[str, _View] = {}
        self.end = Head(0, workspace, 0, "", 0, 0, 0, FORMAT)
        self.begin()

    def begin(self) -> None:
        self.end_before = self.end
        self.length_before = len(self.log)
        self.replaced: list[tuple[str, str, ViewRow | None]] = []
        self.failure: Exception | None = None

    def undo(self) -> None:
        self.end = self.end_before
        for row in reversed(self.log[self.length_before :]):
            self.by_stream[row.stream].pop()
            if row.receipt is not None:
                del self.used[row.actor, row.receipt]
        del self.log[self.length_before :]
        for view, key, old in reversed(self.replaced):
            self.view(view).set(key, old)

    def append(self, rows: Sequence[LogColumns], head: Head) -> None:
        for row in map(LogRow._make, rows):
            if row.position != len(self.log) + 1:
                self.fail(f"position {row.position} after {len(self.log)}")
            if row.receipt is not None:
                first = self.used.setdefault((row.actor, row.receipt), row.position)
                if first != row.position:
                    self.fail(f"receipt {row.receipt} of {row.actor} at {first}")
            self.log.append(row)
            self.by_stream.setdefault(row.stream, []).append(row.position)
        self.end = head

    def clear_views(self) -> None:
        self.delete([(view, key) for view, of in self.views.items() for key in of.rows])

    def put(self, rows: Sequence[ViewColumns]) -> None:
        for row in map(ViewRow._make, rows):
            self.replaced.append((row.view, row.key, self.view(row.view).set(row.key, row)))

    def delete(self, keys: Sequence[tuple[str, str]]) -> None:
        for view, key in keys:
            self.replaced.append((view, key, self.view(view).set(key, None)))

    def fail(self, what: str) -> NoReturn:
        self.failure = RowExists(what)
        raise self.failure

    def view(self, view: str) -> _View:
        found = self.views.get(view)
        if found is None:
            found = self.views[view] = _View()
        return found

    def head(self) -> Head:
        return self.end

    def row(self, view: str, key: str) -> str | None:
        found = self.view(view).rows.get(key)
        return found.body if found else None

    def rows(self, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
        found = {pair: self.row(*pair) for pair in asked}
        return {pair: body for pair, body in found.items() if body is not None}

    def bucket(
        self, view: str, bucket: str, *, limit: int, after: tuple[int, str] | None = None, up_to: int | None = None
    ) -> list[ViewRow]:
        of = self.view(view)
        pairs = of.bucket(bucket)
        first = 0 if after is None else bisect_right(pairs, after)
        end = len(pairs) if up_to is None else bisect_left(pairs, (up_to + 1, ""))
        return [of.rows[key] for _, key in pairs[first : min(end, first + limit)]]

    def range(self, view: str, low: str, high: str | None, *, limit: int) -> list[ViewRow]:
        of = self.view(view)
        keys = of.keys()
        first = bisect_left(keys, low)
        end = len(keys) if high is None else bisect_left(keys, high)
        return [of.rows[key] for key in keys[first : min(end, first + limit)]]

    def event(self, position: int) -> LogRow | None:
        return self.log[position - 1] if 0 < position <= len(self.log) else None

    def events(self, *, after: int, limit: int, stream: str | None = None) -> list[LogRow]:
        if stream is None:
            return self.log[max(after, 0) : max(after, 0) + limit]
        positions = self.by_stream.get(stream, [])
        first = bisect_right(positions, after)
        return [self.log[position - 1] for position in islice(positions, first, first + limit)]

    def bodies(self, stream: str, type: str, *, after: int, limit: int) -> list[BodyRow]:
        positions = self.by_stream.get(stream, [])
        rows = (self.log[positions[index] - 1] for index in range(bisect_right(positions, after), len(positions)))
        of_type = (row for row in rows if row.type == type)
        return [BodyRow(row.position, row.at, row.actor, row.body) for row in islice(of_type, limit)]

    def streams(self, *, after: int, limit: int) -> list[str]:
        return [row.stream for row in self.events(after=after, limit=limit)]

    def receipt(self, actor: str, receipt: str) -> LogRow | None:
        position = self.used.get((actor, receipt))
        return None if position is None else self.log[position - 1]

    def receipts(self, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], LogRow]:
        return {pair: self.log[self.used[pair] - 1] for pair in asked if pair in self.used}

    def position_at(self, at: int) -> int:
        return bisect_right(self.log, at, key=lambda row: row.at)


class MemoryStore:
    """See `interface.Store`. Any thread may use it; others wait."""

    def __init__(self) -> None:
        self._workspace = os.urandom(32)
        self._key = os.urandom(32)
        self._contents = _Contents(self._workspace)
        self._lock = threading.RLock()
        self._running = False
        self._closed = False

    @property
    def workspace(self) -> bytes:
        return self._workspace

    @property
    def key(self) -> bytes:
        return self._key

    def write(self, work: Callable[[Transaction], T], *, still_wanted: Callable[[], bool] = lambda: True) -> T:
        with self._alone():
            self._contents.begin()
            try:
                answer = work(self._contents)
                if self._contents.failure is not None:  # and `work` swallowed it
                    raise self._contents.failure
            except BaseException:
                self._contents.undo()
                raise
            return answer

    def read(self, work: Callable[[Snapshot], T]) -> T:
        with self._alone():
            return work(self._contents)

    def changed(self) -> bool:
        """Nobody else can reach it."""
        return False

    def reopen(self, still_wanted: Callable[[], bool] | None = None) -> None:
        pass

    def close(self) -> None:
        self._closed = True

    @contextmanager
    def _alone(self) -> Generator[None]:
        with self._lock:
            if self._closed:
                raise Closed("the store was closed")
            if self._running:
                raise RuntimeError("a transaction is running in this thread")
            self._running = True
            try:
                yield
            finally:
                self._running = False
