"""Reserved paths: no two live reservations clash, and the end of a claim frees all that it held."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from coordinator.auditing.rule import Findings
from events.envelope import Envelope
from events.jobs import (
    AttemptEnded,
    JobCancelled,
    JobClaimed,
    JobFailed,
    JobLapsed,
    JobReleased,
    JobReserved,
    JobRevoked,
    JobSubmitted,
)
from projections.path_keys import children_range, parents, path_key


class Paths:
    """What must hold for reservations. As many as are live at once are kept in memory."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._holders: dict[str, str] = {}
        self._held: dict[str, set[str]] = {}
        self._keys: list[str] = []
        self.readings = {
            JobClaimed: self._claimed,
            JobReserved: self._reserved,
            JobCancelled: self._ended,
            **dict.fromkeys((JobSubmitted, JobFailed, JobReleased, JobLapsed, JobRevoked), self._ended),
        }

    def _claimed(self, event: JobClaimed, envelope: Envelope) -> None:
        self._hold(event.paths, event.job, envelope)

    def _reserved(self, event: JobReserved, envelope: Envelope) -> None:
        self._free(event.absorbed, event.job)
        self._hold(event.added, event.job, envelope)
        self._compare(event.paths, event.job, envelope)

    def _ended(self, event: AttemptEnded | JobCancelled, envelope: Envelope) -> None:
        self._compare(event.paths, event.job, envelope)
        self._free(tuple(self._held.get(event.job, ())), event.job)

    def _hold(self, paths: Iterable[str], job: str, envelope: Envelope) -> None:
        keys = [(path, path_key(path)) for path in paths]
        for path, key in keys:
            for held in self._in_the_way(key):
                problem = f"{path!r} of job {job!r} clashes with {held!r}, held for job {self._holders[held]!r}"
                self._findings.add("paths", envelope.position, problem)
        for _, key in keys:
            if key not in self._holders:
                insort(self._keys, key)
                self._holders[key] = job
                self._held.setdefault(job, set()).add(key)

    def _compare(self, paths: Iterable[str], job: str, envelope: Envelope) -> None:
        if set(map(path_key, paths)) != self._held.get(job, set()):
            problem = f"the event names other paths than job {job!r} held"
            self._findings.add("paths", envelope.position, problem)

    def _in_the_way(self, key: str) -> Iterator[str]:
        for other in (key, *parents(key)):
            if other in self._holders:
                yield other
        low, high = children_range(key)
        end = len(self._keys) if high is None else bisect_left(self._keys, high)
        yield from self._keys[bisect_left(self._keys, low) : end]

    def _free(self, paths: Iterable[str], job: str) -> None:
        held = self._held.get(job, set())
        for key in map(path_key, paths):
            if key in held:
                held.remove(key)
                del self._holders[key]
                del self._keys[bisect_left(self._keys, key)]
        if not held:
            self._held.pop(job, None)
