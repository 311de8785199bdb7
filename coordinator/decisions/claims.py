"""Claiming a job: this one, or the best there is."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.commands import ClaimJob, ClaimNext
from coordinator.decisions.clashes import find_clashes, is_free
from coordinator.decisions.dependencies import unaccepted
from coordinator.decisions.lookup import already_claimed, seen_job
from coordinator.decisions.moment import Moment
from coordinator.refusals import AlreadySubmitted, AttemptsExhausted, JobClosed, PathClash, Refused
from coordinator.views import Views
from events.jobs import JobClaimed
from events.union import AnyEvent
from projections.jobs import JobRow
from projections.path_keys import parents, path_key

CANDIDATES = 256
"""So many ready jobs are looked at inside a transaction; the search for others must not hold up everybody."""


class LookDeeper(Exception):
    """The best candidates all clash; whether there is one further down must be found out from a snapshot."""


def claim_job(command: ClaimJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job = seen_job(command, views)
    if job.state != "ready":
        raise _not_claimable(job, views)
    if job.used >= job.max_attempts:
        raise AttemptsExhausted(job.id, job.used, job.max_attempts)
    if clashes := find_clashes(job.paths, views):
        raise PathClash(job.id, clashes)
    return [_claimed(job, command.lease_us, moment)]


def claim_next(command: ClaimNext, views: Views, moment: Moment) -> list[AnyEvent]:
    found = views.searched or best_free(views, CANDIDATES)
    if isinstance(found, Passed):
        views.searched = found  # whoever asks next, before anything has changed, need not look at them again
        if found.all:
            return []
        found = _further(moment.candidate, found, views)
    return [_claimed(found, command.lease_us, moment)]


def best_free(views: Views, candidates: int) -> JobRow | Passed:
    """The ready job that comes first and whose paths are free; or all that were passed over, if so many clash.

    A job that has to be passed over keeps its paths from those of lower priority: else a stream of small jobs could
    keep a large and urgent one waiting for ever. `Backlog` finds the same without looking at them one by one.
    """
    passed = Passed()
    for looked_at, job in enumerate(views.jobs.scan("ready"), start=1):
        if is_free(job.paths, views) and not passed.blocks(job):
            return job
        passed.over(job)
        if looked_at == candidates:
            passed.all = False
            break
    return passed


def _further(candidate: str | None, passed: Passed, views: Views) -> JobRow:
    """What a search found beyond those that were passed over. It must be ready and free like any other."""
    job = None if candidate is None else views.jobs.get(candidate)
    if job is None or job.state != "ready" or not is_free(job.paths, views) or passed.blocks(job):
        raise LookDeeper
    return job


class Passed:
    """The jobs that a search passed over, by their paths.

    Attributes:
        all: there are no other ready jobs.
    """

    def __init__(self) -> None:
        self.all = True
        self._wanted: dict[str, int] = {}  # key of a path -> highest priority of those who want it
        self._wanted_below: dict[str, int] = {}  # the same for every parent of such a path

    def over(self, job: JobRow) -> None:
        for key in map(path_key, job.paths):
            self._wanted.setdefault(key, job.priority)
            for parent in parents(key):
                self._wanted_below.setdefault(parent, job.priority)

    def blocks(self, job: JobRow) -> bool:
        """Whether a job of higher priority waits for one of these paths, a parent or a child."""
        return any(priority > job.priority for key in map(path_key, job.paths) for priority in self._wanting(key))

    def _wanting(self, key: str) -> Iterable[int]:
        for wanted in (key, *parents(key)):
            if wanted in self._wanted:
                yield self._wanted[wanted]
        if key in self._wanted_below:
            yield self._wanted_below[key]


def _claimed(job: JobRow, lease_us: int, moment: Moment) -> JobClaimed:
    nonce = moment.granted()
    return JobClaimed(
        job=job.id,
        version=job.version + 1,
        worker=moment.actor,
        attempt=job.attempt + 1,
        used=job.used + 1,
        nonce=nonce.value,
        token_digest=nonce.token_digest,
        lease_us=lease_us,
        lease_until=moment.now + lease_us,
        paths=job.paths,
        defined=job.defined,
        reason=job.reason,
    )


def _not_claimable(job: JobRow, views: Views) -> Refused:
    match job.state:
        case "claimed":
            return already_claimed(job, views)
        case "submitted":
            return AlreadySubmitted(job.id)
        case "blocked":
            return unaccepted(job, views)
        case "failed":
            return AttemptsExhausted(job.id, job.used, job.max_attempts)
        case _:
            return JobClosed(job.id, job.state)
