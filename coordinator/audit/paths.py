"""Reserved paths: no two live reservations clash."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from coordinator.audit.violation import Violation
from events.envelope import Envelope
from events.jobs import AttemptEnded, JobCancelled, JobClaimed, JobReserved
from projections.path_keys import children_range, parents, path_key


class Paths:
    """What must hold for reservations. As many as are live at once are kept in memory."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._keys: list[str] = []

    def read(self, envelope: Envelope) -> Iterator[Violation]:
        match event := envelope.event:
            case JobClaimed():
                yield from self._hold(event.paths, event.job, envelope)
            case JobReserved():
                self._free(event.absorbed, event.job)
                yield from self._hold(event.added, event.job, envelope)
            case AttemptEnded() | JobCancelled():
                self._free(event.paths, event.job)
            case _:
                return

    def _hold(self, paths: Iterable[str], job: str, envelope: Envelope) -> Iterator[Violation]:
        keys = [(path, path_key(path)) for path in paths]
        for path, key in keys:
            for held in self._in_the_way(key):
                problem = f"{path!r} of job {job!r} clashes with {held!r}, held for job {self._holders[held]!r}"
                yield Violation(rule="paths", position=envelope.position, problem=problem)
        for _, key in keys:
            if key not in self._holders:
                insort(self._keys, key)
            self._holders[key] = job

    def _in_the_way(self, key: str) -> Iterator[str]:
        for other in (key, *parents(key)):
            if other in self._holders:
                yield other
        low, high = children_range(key)
        end = len(self._keys) if high is None else bisect_left(self._keys, high)
        yield from self._keys[bisect_left(self._keys, low) : end]

    def _free(self, paths: Iterable[str], job: str) -> None:
        for key in map(path_key, paths):
            if self._holders.get(key) == job:
                del self._holders[key]
                del self._keys[bisect_left(self._keys, key)]
