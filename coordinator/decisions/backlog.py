"""All ready jobs at once, so that the best one that is free is found without looking again at those that are not.

The rule is that of `best_free`. What stands in a job's way is a path that is held, or that a ready job of higher
priority wants; both are kept alike, as levels. A job that does not get past some place waits there, and is looked at
again only when the level of that place has fallen. So a search costs what has changed since the last one, not what
there is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

import msgspec

from coordinator.decisions.levels import HELD, Levels

Keys = tuple[str, ...]
"""The comparison keys of a job's paths."""

Entry = tuple[int, str, int, Keys]
"""A ready job: rank, id, priority, keys. A plain tuple of plain values, which the garbage collector soon ignores."""

T = TypeVar("T", bound=tuple[Any, ...])

_FEW = 64


class Backlog:
    """Ready jobs and held paths, as they are put in and taken out, and the search among them."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._held: set[str] = set()
        self._lines: dict[Keys, _Line] = {}
        self._unseen = _Heap[Entry]()  # firsts of lines that may be free
        self._gates: dict[str, _Gate] = {}
        self._opened = _Heap[tuple[int, str]]()  # gates whose level fell: rank of the first, place
        self._untold: dict[int, set[Keys]] = {}  # lines at gates whose wants are in no level yet, by priority
        self._levels = Levels()
        self._steps = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, job: str, rank: int, priority: int, keys: Keys) -> None:
        """A job is ready, or ready in another way than before."""
        entry = (rank, job, priority, keys)
        if self._entries.get(job) == entry:
            return
        self.discard(job)
        self._entries[job] = entry
        line = self._lines.get(keys)
        if line is None:
            line = self._lines[keys] = _Line(entry)
            self._place(line)
            return
        first, other = sorted((line.first, entry))
        line.others = line.others or []
        insort(line.others, other)
        if first is not line.first:
            self._replace_first(line, first)

    def discard(self, job: str) -> None:
        """A job is not ready, or not any more."""
        entry = self._entries.pop(job, None)
        if entry is None:
            return
        line = self._lines[entry[3]]
        if not line.others:
            del self._lines[entry[3]]
            self._displace(line)
        elif entry is line.first:
            self._replace_first(line, line.others.pop(0))
        else:
            del line.others[bisect_left(line.others, entry)]

    def hold(self, key: str) -> None:
        """A path is held."""
        if key not in self._held:
            self._held.add(key)
            self._levels.enter(key, HELD)

    def free(self, key: str) -> None:
        """A path is not held, or not any more."""
        if key in self._held:
            self._held.remove(key)
            self._leave(key, HELD)

    def best(self, count: int, steps: int) -> list[str] | None:
        """The jobs that would be claimed one after another if nothing else happened, at most so many.

        Args:
            steps: after so many the search pauses.

        Returns:
            The jobs; None if the search paused, to go on when it is asked again.
        """
        self._steps = steps + 2 * count  # a pause undoes so much of what was done
        claimed: list[Entry] = []
        try:
            while self._search():
                first = self._first_unseen()
                if first is None:
                    return [job for _, job, _, _ in claimed]
                if len(claimed) == count - 1:
                    return [job for _, job, _, _ in (*claimed, first)]
                claimed.append(first)
                self._claim(first)
            return None
        finally:
            for entry in reversed(claimed):
                self._give_back(entry)

    def _claim(self, entry: Entry) -> None:
        self.discard(entry[1])
        for key in entry[3]:
            self.hold(key)

    def _give_back(self, entry: Entry) -> None:
        rank, job, priority, keys = entry
        for key in keys:
            self.free(key)
        self.put(job, rank, priority, keys)

    def _search(self) -> bool:
        """Look until the first of the unseen is free, or none is left; False if the search has to pause."""
        while (entry := self._next()) is not None:
            _, _, priority, keys = entry
            if not self._tell_above(priority):
                return False
            place = self._levels.in_the_way(keys, priority)
            if place is None:
                return True
            self._wait(self._unseen.pop(), place)
            self._steps -= 1
            if self._steps < 0:
                return False
        return True

    def _next(self) -> Entry | None:
        """The line that comes first. Those at an opened gate come through one by one, when it is their turn."""
        while True:
            entry, opened = self._first_unseen(), self._opened.first(self._is_opened)
            if opened is None or (entry is not None and entry[0] < opened[0]):
                return entry
            _, place = self._opened.pop()
            gate = self._gates[place]
            gate.opened_for = None
            first = self._first_at(place)
            if first is not None and first[2] >= self._levels.of(place):
                self._lines[first[3]].gate = None
                self._unseen.push(gate.waiting.pop())
                self._open(place)

    def _place(self, line: _Line) -> None:
        """Let a line wait where it does not get past, or else be looked at in its turn."""
        _, _, priority, keys = line.first
        place = self._levels.in_the_way(keys, priority)
        if place is None:
            self._unseen.push(line.first)
        else:
            self._wait(line.first, place)

    def _wait(self, first: Entry, place: str) -> None:
        _, _, priority, keys = first
        gate = self._gates.get(place)
        if gate is None:
            gate = self._gates[place] = _Gate()
        gate.waiting.push(first)
        line = self._lines[keys]
        line.gate = place
        if line.wants is None:
            line.wants = priority
            self._untold.setdefault(priority, set()).add(keys)

    def _replace_first(self, line: _Line, first: Entry) -> None:
        self._displace(line)
        line.first = first
        self._place(line)

    def _displace(self, line: _Line) -> None:
        """The first of a line is gone from where it stood, and what it wanted counts no more."""
        heap = self._unseen if line.gate is None else self._gates[line.gate].waiting
        heap.lost_one(partial(self._stands, line.gate))
        keys, wants, told = line.first[3], line.wants, line.told
        line.gate, line.wants, line.told = None, None, False
        if told and wants is not None:
            for key in keys:
                self._leave(key, wants)
        elif wants is not None:
            self._untold[wants].remove(keys)
            if not self._untold[wants]:
                del self._untold[wants]

    def _tell_above(self, priority: int) -> bool:
        """Let what waits with a higher priority count; False if the search has to pause.

        Only jobs of lower priority must be told, so where all have the same, nobody is.
        """
        while self._untold and (highest := max(self._untold)) > priority:
            keys = self._untold[highest].pop()
            if not self._untold[highest]:
                del self._untold[highest]
            self._lines[keys].told = True
            for key in keys:
                self._levels.enter(key, highest)
            self._steps -= 1
            if self._steps < 0:
                return False
        return True

    def _leave(self, key: str, level: int) -> None:
        for place in self._levels.leave(key, level):
            if place in self._gates:
                self._open(place)

    def _open(self, place: str) -> None:
        """Have the first at a gate come through in its turn, if it then gets past."""
        gate, first = self._gates[place], self._first_at(place)
        before = gate.opened_for
        if first is None:
            del self._gates[place]
        elif before is None or first[0] < before:
            gate.opened_for = first[0]
            self._opened.push((first[0], place))
        else:
            return
        if before is not None:
            self._opened.lost_one(self._is_opened)

    def _first_unseen(self) -> Entry | None:
        return self._unseen.first(partial(self._stands, None))

    def _first_at(self, place: str) -> Entry | None:
        return self._gates[place].waiting.first(partial(self._stands, place))

    def _stands(self, place: str | None, first: Entry) -> bool:
        line = self._lines.get(first[3])
        return line is not None and line.gate == place and line.first is first

    def _is_opened(self, opened: tuple[int, str]) -> bool:
        rank, place = opened
        gate = self._gates.get(place)
        return gate is not None and gate.opened_for == rank


class _Line(msgspec.Struct, gc=False):
    """The jobs that want the same paths. Where the first of them does not get past, none does."""

    first: Entry
    others: list[Entry] | None = None  # sorted
    gate: str | None = None  # where it waits; None while it may be free
    wants: int | None = None  # the priority with which it waits, or waited until its gate opened
    told: bool = False  # whether that is in the levels


class _Gate:
    """The lines that wait for the level of one place to fall."""

    __slots__ = ("opened_for", "waiting")

    def __init__(self) -> None:
        self.waiting = _Heap[Entry]()
        self.opened_for: int | None = None  # the rank under which it stands among those that have opened


class _Heap(Generic[T]):
    """A heap. What does not count any more is taken out when it comes first, or when it is the larger part.

    Whoever looks says what counts: a heap that knew would hold its owner, and both would live too long.
    """

    __slots__ = ("_items", "_lost")

    def __init__(self) -> None:
        self._items: list[T] = []
        self._lost = 0

    def push(self, item: T) -> None:
        heappush(self._items, item)

    def first(self, counts: Callable[[T], bool]) -> T | None:
        while self._items and not counts(self._items[0]):
            self.pop()
        return self._items[0] if self._items else None

    def pop(self) -> T:
        return heappop(self._items)

    def lost_one(self, counts: Callable[[T], bool]) -> None:
        """Something in it does not count any more."""
        self._lost += 1
        if self._lost > _FEW and 2 * self._lost > len(self._items):
            self._items = list(set(filter(counts, self._items)))
            heapify(self._items)
            self._lost = 0
