"""The search for a job beyond what a transaction looks at, from snapshots that follow the log.

What it knows it keeps: the ready jobs and the held paths as they were at a position of the log. So each search reads
what was appended since, and only the first one reads all. It goes in steps which each read a page or two, so that
reads of others come in between.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.clock import Clock
from coordinator.decisions.backlog import Backlog
from coordinator.envelopes import envelope_of
from coordinator.errors import damaged
from coordinator.execute import now
from coordinator.rebuild import check_head
from coordinator.stores.interface import Head, LogRow, Snapshot
from events.codec import TAGS
from events.jobs import JobNoted
from events.streams import name_in
from projections.jobs import JOBS, place
from projections.path_keys import path_key
from projections.reservations import RESERVATIONS

_PAGE = 128
_STEPS = 128
_BEHIND = 1_000  # catching up with so many events is always quick enough

_READINESS = frozenset(TAGS[event] for event in JOBS.folds if event is not JobNoted)
_PATHS = frozenset(TAGS[event] for event in RESERVATIONS.folds)


class Found(NamedTuple):
    """What a search came to.

    Attributes:
        jobs: the jobs that can be claimed now, one after another, best first; at most as many as were asked for.
        open: whether any job is ready, claimed or submitted.
        due_in: µs until the next lease runs out; None if none is live.
    """

    jobs: list[str]
    open: bool
    due_in: int | None


class Search:
    """What the searches of one process have found out so far. It takes about 600 bytes a ready job.

    Nobody else may use it while a step runs.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._generation = -1
        self._complete = False

    def step(self, snapshot: Snapshot, count: int) -> Found | None:
        """Search some more; None if that was not all yet.

        Args:
            count: so many jobs are looked for.
        """
        head = snapshot.head()
        check_head(head)
        if not self._can_go_on(head):
            self._begin(head)
        if not self._read(snapshot) or not self._catch_up(snapshot):
            return None
        jobs = self._backlog.best(count, _STEPS)
        if jobs is None:
            return None
        self._complete = True
        leases = snapshot.bucket("leases", "live", limit=1)
        due_in = leases[0].rank - now(head, self._clock) if leases else None
        return Found(jobs, len(self._backlog) > 0 or _any(snapshot, "claimed", "submitted"), due_in)

    def _can_go_on(self, head: Head) -> bool:
        """Whether what is known is worth to be kept: it may belong to views of before, or be too far behind the log."""
        if head.generation != self._generation:
            return False
        return not self._complete or head.position - self._position <= max(_BEHIND, len(self._backlog))

    def _begin(self, head: Head) -> None:
        self._generation = head.generation
        self._position = head.position  # what is read from now on may be newer, and will then be read once more
        self._backlog = Backlog()
        self._held_after: str | None = ""
        self._ready_after: tuple[int, str] | None = None
        self._all_read = self._complete = False

    def _read(self, snapshot: Snapshot) -> bool:
        """Read a page of what there is; whether that was all."""
        if self._held_after is not None:
            held = snapshot.range("reservations", self._held_after, None, limit=_PAGE)
            for row in held:
                self._backlog.hold(row.key)
            self._held_after = held[-1].key + "\x01" if len(held) == _PAGE else None  # no key holds a lower character
            if self._held_after is not None:
                return False
        if not self._all_read:
            ready = snapshot.bucket("jobs", "ready", limit=_PAGE, after=self._ready_after)
            for row in ready:
                self._put(row.key, row.body)
            self._all_read = len(ready) < _PAGE
            if not self._all_read:
                self._ready_after = ready[-1].rank, ready[-1].key
        return self._all_read

    def _catch_up(self, snapshot: Snapshot) -> bool:
        """Read a page of what was appended since; whether that was all."""
        page = snapshot.events(after=self._position, limit=_PAGE)
        changed = {name_in(row.stream) for row in page if row.type in _READINESS}
        bodies = snapshot.rows([("jobs", job) for job in changed])
        for row in page:
            if row.type in _PATHS:
                self._follow(row)
        for job in changed:
            if ("jobs", job) not in bodies:
                raise damaged(f"job {job!r} has events and no row")
            self._put(job, bodies[("jobs", job)])
        if page:
            self._position = page[-1].position
        return len(page) < _PAGE

    def _follow(self, row: LogRow) -> None:
        envelope = envelope_of(row)
        for key, held in RESERVATIONS.folds[type(envelope.event)](envelope.event, envelope, _nothing):
            (self._backlog.free if held is None else self._backlog.hold)(key)

    def _put(self, job: str, body: str) -> None:
        row = JOBS.decode(body)
        if row.state == "ready":
            self._backlog.put(job, place(row)[1], row.priority, tuple(map(path_key, row.paths)))
        else:
            self._backlog.discard(job)


def _any(snapshot: Snapshot, *states: str) -> bool:
    return any(snapshot.bucket("jobs", state, limit=1) for state in states)


def _nothing(key: str) -> None:
    """No fold of reservations looks at the rows before it."""
