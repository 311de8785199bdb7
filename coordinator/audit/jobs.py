"""Jobs: one live claim each, guarded writes, attempts within limits, dependencies accepted, reviews by others."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from coordinator.audit.rule import Holding, broken_guard, spilled
from coordinator.audit.spilled import Spill
from coordinator.audit.violation import Violation
from events.envelope import Envelope
from events.jobs import (
    AttemptEnded,
    JobAccepted,
    JobAdded,
    JobCancelled,
    JobClaimed,
    JobDefined,
    JobEvent,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobRejected,
    JobReleased,
    JobRenewed,
    JobReopened,
    JobReserved,
    JobRevised,
    JobSubmitted,
)
from events.messages import MessageSent

_GUARDED = (JobRenewed, JobNoted, JobReserved, JobSubmitted, JobFailed, JobReleased)
_VERSIONED = (JobDefined, JobClaimed, AttemptEnded, JobCancelled, JobAccepted, JobRejected, JobReopened)


class _Job(msgspec.Struct, frozen=True):
    version: int
    state: str
    max_attempts: int
    review: str
    depends_on: tuple[str, ...]
    attempt: int = 0
    used: int = 0
    holding: Holding | None = None
    worker: str | None = None  # who submitted it


class Jobs:
    """What must hold for the events of jobs."""

    def __init__(self, spill: Spill) -> None:
        self._jobs = spilled(spill, "audit jobs", _Job)

    def read(self, envelope: Envelope) -> Iterator[Violation]:
        event = envelope.event
        if isinstance(event, JobAdded | MessageSent) and event.under is not None:
            yield from self._under(event.under, event.under_attempt or 0, envelope)
        if not isinstance(event, JobEvent):
            return
        job = self._jobs.get(event.job)
        if isinstance(event, JobAdded):
            if job is not None:
                yield _violation("job", envelope, f"job {event.job!r} was added before")
            self._jobs.set(event.job, _defined(event, None))
            return
        if job is None:
            yield _violation("job", envelope, f"job {event.job!r} was never added")
            return
        if isinstance(event, _VERSIONED) and event.version != job.version + 1:
            yield _violation("version", envelope, f"version {event.version} follows {job.version}")
        yield from self._broken(event, job, envelope)
        self._jobs.set(event.job, _after(event, job, envelope))

    def _broken(self, event: JobEvent, job: _Job, envelope: Envelope) -> Iterator[Violation]:
        if isinstance(event, _GUARDED) and (why := broken_guard(job.holding, envelope, event.attempt)):
            yield _violation("guard", envelope, f"job {event.job!r}: {why}")
        match event:
            case JobClaimed():
                yield from self._claimed(event, job, envelope)
            case JobLapsed():
                if (
                    job.holding is None
                    or event.lease_until != job.holding.lease_until
                    or envelope.at < event.lease_until
                ):
                    yield _violation("lapse", envelope, f"job {event.job!r} had no lease that ran out then")
            case JobAccepted() | JobRejected():
                if job.state != "submitted":
                    yield _violation("review", envelope, f"job {event.job!r} was {job.state}, not submitted")
                elif job.review == "other" and envelope.actor == job.worker:
                    yield _violation("review", envelope, f"{envelope.actor!r} reviewed its own work")
            case JobRevised():
                if job.state not in ("blocked", "ready"):
                    yield _violation("state", envelope, f"job {event.job!r} was revised while {job.state}")
            case JobReopened():
                if job.state not in ("accepted", "failed", "cancelled"):
                    yield _violation("state", envelope, f"job {event.job!r} was reopened while {job.state}")
            case _:
                return

    def _claimed(self, event: JobClaimed, job: _Job, envelope: Envelope) -> Iterator[Violation]:
        if job.holding is not None:
            problem = f"job {event.job!r} was claimed while attempt {job.holding.attempt} held it"
            yield _violation("one claim", envelope, problem)
        elif job.state != "ready":
            yield _violation("state", envelope, f"job {event.job!r} was claimed while {job.state}")
        if event.attempt != job.attempt + 1:
            yield _violation("attempt", envelope, f"attempt {event.attempt} follows {job.attempt}")
        if job.used >= job.max_attempts:
            problem = f"job {event.job!r} had used {job.used} of {job.max_attempts} attempts"
            yield _violation("attempts", envelope, problem)
        if event.worker != envelope.actor:
            yield _violation("claim", envelope, f"{envelope.actor!r} claimed for {event.worker!r}")
        for name in job.depends_on:
            dependency = self._jobs.get(name)
            if dependency is None or dependency.state != "accepted":
                yield _violation("dependency", envelope, f"job {event.job!r} was claimed before {name!r} was accepted")

    def _under(self, name: str, attempt: int, envelope: Envelope) -> Iterator[Violation]:
        job = self._jobs.get(name)
        why = broken_guard(None if job is None else job.holding, envelope, attempt)
        if why is not None:
            yield _violation("guard", envelope, f"written under job {name!r}: {why}")


def _defined(event: JobDefined, job: _Job | None) -> _Job:
    return _Job(
        version=event.version,
        state=event.state,
        max_attempts=event.max_attempts,
        review=event.review,
        depends_on=event.depends_on,
        attempt=0 if job is None else job.attempt,
        used=0 if job is None else job.used,
    )


def _after(event: JobEvent, job: _Job, envelope: Envelope) -> _Job:
    """The job as the event leaves it."""
    match event:
        case JobRevised():
            return _defined(event, job)
        case JobClaimed():
            holding = Holding(event.worker, event.attempt, event.lease_until)
            return replace(
                job, version=event.version, state="claimed", attempt=event.attempt, used=job.used + 1, holding=holding
            )
        case JobRenewed():
            if job.holding is None:
                return job
            return replace(job, holding=Holding(job.holding.actor, job.holding.attempt, event.lease_until))
        case JobSubmitted():
            return replace(job, version=event.version, state=event.state, holding=None, worker=event.worker)
        case JobReleased():
            return replace(job, version=event.version, state=event.state, holding=None, used=job.used - 1)
        case AttemptEnded() | JobCancelled():
            return replace(job, version=event.version, state=event.state, holding=None)
        case JobAccepted() | JobRejected():
            return replace(job, version=event.version, state=event.state)
        case JobReopened():
            return replace(job, version=event.version, state=event.state, used=0)
        case _:
            return replace(job, state=_STATES.get(type(event).__name__, job.state))


_STATES = {"JobUnblocked": "ready", "JobBlocked": "blocked"}


def _violation(rule: str, envelope: Envelope, problem: str) -> Violation:
    return Violation(rule=rule, position=envelope.position, problem=problem)
