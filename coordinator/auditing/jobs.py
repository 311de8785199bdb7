"""Jobs: one live claim each, guarded writes, attempts within limits, reviews by others, states that follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from coordinator.auditing.dependencies import Dependencies
from coordinator.auditing.rule import Findings, Holding, broken_guard, broken_lapse, broken_lease, spilled
from coordinator.auditing.spilled import Spill
from events.envelope import Envelope
from events.jobs import (
    AttemptEnded,
    JobAccepted,
    JobAdded,
    JobBlocked,
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
    JobRevoked,
    JobSubmitted,
    JobUnblocked,
)
from events.messages import MessageSent


class AuditedJob(msgspec.Struct):
    """A job, as far as the log was read."""

    version: int = 0
    state: str = ""
    max_attempts: int = 0
    review: str = "other"
    attempt: int = 0
    used: int = 0
    holding: Holding | None = None
    worker: str | None = None  # who submitted it


class Jobs:
    """What must hold for the events of jobs."""

    def __init__(self, spill: Spill, findings: Findings) -> None:
        self._findings = findings
        self._jobs = spilled(spill, "audit jobs", AuditedJob)
        self._dependencies = Dependencies(spill, findings, lambda job: (self._jobs.get(job) or AuditedJob()).state)
        self.readings = {
            JobAdded: self._added,
            MessageSent: self._under,
            JobRevised: self._known(self._revised),
            JobClaimed: self._known(self._claimed),
            JobRenewed: self._known(self._renewed),
            JobNoted: self._known(self._guarded),
            JobReserved: self._known(self._guarded),
            JobSubmitted: self._known(self._submitted),
            JobFailed: self._known(self._failed),
            JobReleased: self._known(self._released),
            JobLapsed: self._known(self._lapsed),
            JobRevoked: self._known(self._revoked),
            JobCancelled: self._known(self._cancelled),
            JobAccepted: self._known(self._accepted),
            JobRejected: self._known(self._rejected),
            JobReopened: self._known(self._reopened),
            JobUnblocked: self._known(self._unblocked),
            JobBlocked: self._known(self._blocked),
        }

    def command(self, position: int) -> None:
        """The events behind this are of another command."""
        self._dependencies.command(position)

    def _added(self, event: JobAdded, envelope: Envelope) -> None:
        self._under(event, envelope)
        if self._jobs.get(event.job) is not None:
            self._broken("job", envelope, f"job {event.job!r} was added before")
        job = AuditedJob()
        self._define(event, envelope, job)
        self._jobs.set(event.job, job)

    def _known(self, read: Callable[[Any, Envelope, AuditedJob], None]) -> Callable[[JobEvent, Envelope], None]:
        """Reads an event of a job that exists, and keeps what the reading changed."""

        def read_known(event: JobEvent, envelope: Envelope) -> None:
            job = self._jobs.get(event.job)
            if job is None:
                self._broken("job", envelope, f"job {event.job!r} was never added")
                return
            read(event, envelope, job)
            self._jobs.set(event.job, job)

        return read_known

    def _revised(self, event: JobRevised, envelope: Envelope, job: AuditedJob) -> None:
        self._expect_state(event, envelope, job, ("blocked", "ready"), "revised")
        if (event.attempt, event.used) != (job.attempt, job.used):
            self._broken("attempts", envelope, f"job {event.job!r} had used {job.used} of {job.attempt} attempts")
        self._define(event, envelope, job)

    def _define(self, event: JobDefined, envelope: Envelope, job: AuditedJob) -> None:
        job.max_attempts, job.review = event.max_attempts, event.review
        self._dependencies.defined(event.job, event.depends_on, envelope)
        failed = job.used >= job.max_attempts and isinstance(event, JobRevised)
        self._change(event, envelope, job, "failed" if failed else self._dependencies.state(event.job))

    def _claimed(self, event: JobClaimed, envelope: Envelope, job: AuditedJob) -> None:
        name = event.job
        if job.holding is not None:
            problem = f"job {name!r} was claimed while attempt {job.holding.attempt} held it"
            self._broken("one claim", envelope, problem)
        else:
            self._expect_state(event, envelope, job, ("ready",), "claimed")
        if event.attempt != job.attempt + 1:
            self._broken("attempt", envelope, f"attempt {event.attempt} of job {name!r} follows {job.attempt}")
        if job.used >= job.max_attempts:
            self._broken("attempts", envelope, f"job {name!r} had used {job.used} of {job.max_attempts} attempts")
        if event.worker != envelope.actor:
            self._broken("claim", envelope, f"{envelope.actor!r} claimed job {name!r} for {event.worker!r}")
        for open_ in self._dependencies.open(name):
            self._broken("dependency", envelope, f"job {name!r} was claimed before {open_!r} was accepted")
        self._lease(event, envelope)
        self._use(event, envelope, job, job.used + 1)
        job.attempt = event.attempt
        job.holding = Holding(event.worker, event.attempt, event.lease_until)
        self._change(event, envelope, job, None)
        job.state = "claimed"

    def _guarded(self, event: Any, envelope: Envelope, job: AuditedJob) -> None:
        if (why := broken_guard(job.holding, envelope, event.attempt)) is not None:
            self._broken("guard", envelope, f"job {event.job!r}: {why}")

    def _renewed(self, event: JobRenewed, envelope: Envelope, job: AuditedJob) -> None:
        self._guarded(event, envelope, job)
        self._lease(event, envelope)
        if job.holding is not None:
            job.holding.lease_until = event.lease_until

    def _submitted(self, event: JobSubmitted, envelope: Envelope, job: AuditedJob) -> None:
        self._guarded(event, envelope, job)
        if event.worker != envelope.actor:
            self._broken("claim", envelope, f"{envelope.actor!r} submitted job {event.job!r} for {event.worker!r}")
        job.worker = event.worker
        self._end(event, envelope, job, "submitted")

    def _failed(self, event: JobFailed, envelope: Envelope, job: AuditedJob) -> None:
        self._guarded(event, envelope, job)
        self._end(event, envelope, job, _after_attempt(job))

    def _released(self, event: JobReleased, envelope: Envelope, job: AuditedJob) -> None:
        self._guarded(event, envelope, job)
        self._end(event, envelope, job, "ready", given_back=1)

    def _lapsed(self, event: JobLapsed, envelope: Envelope, job: AuditedJob) -> None:
        if (why := broken_lapse(job.holding, envelope, event.attempt, event.lease_until)) is not None:
            self._broken("lapse", envelope, f"job {event.job!r}: {why}")
        self._end(event, envelope, job, _after_attempt(job))

    def _revoked(self, event: JobRevoked, envelope: Envelope, job: AuditedJob) -> None:
        self._expect_state(event, envelope, job, ("claimed",), "revoked")
        self._expect_attempt(event.job, event.attempt, envelope, job.holding and job.holding.attempt)
        self._end(event, envelope, job, _after_attempt(job))

    def _end(
        self, event: AttemptEnded, envelope: Envelope, job: AuditedJob, state: str, *, given_back: int = 0
    ) -> None:
        self._use(event, envelope, job, job.used - given_back)
        job.holding = None
        self._change(event, envelope, job, state)

    def _cancelled(self, event: JobCancelled, envelope: Envelope, job: AuditedJob) -> None:
        self._expect_state(event, envelope, job, ("blocked", "ready", "claimed", "submitted", "failed"), "cancelled")
        self._expect_attempt(event.job, event.attempt, envelope, job.holding and job.holding.attempt)
        job.holding = None
        self._change(event, envelope, job, "cancelled")

    def _accepted(self, event: JobAccepted, envelope: Envelope, job: AuditedJob) -> None:
        self._reviewed(event, envelope, job)
        self._change(event, envelope, job, "accepted")
        self._jobs.set(event.job, job)
        self._dependencies.accepted(event.job, envelope)

    def _rejected(self, event: JobRejected, envelope: Envelope, job: AuditedJob) -> None:
        self._reviewed(event, envelope, job)
        self._change(event, envelope, job, _after_attempt(job))

    def _reviewed(self, event: JobAccepted | JobRejected, envelope: Envelope, job: AuditedJob) -> None:
        if job.state != "submitted":
            self._broken("review", envelope, f"job {event.job!r} was {job.state}, not submitted")
        elif job.review == "other" and envelope.actor == job.worker:
            self._broken("review", envelope, f"{envelope.actor!r} reviewed its own work on job {event.job!r}")
        self._expect_attempt(event.job, event.attempt, envelope, job.attempt)

    def _reopened(self, event: JobReopened, envelope: Envelope, job: AuditedJob) -> None:
        self._expect_state(event, envelope, job, ("accepted", "failed", "cancelled"), "reopened")
        job.used = 0
        self._change(event, envelope, job, self._dependencies.state(event.job))
        self._dependencies.reopened(event.job, envelope)

    def _unblocked(self, event: JobUnblocked, envelope: Envelope, job: AuditedJob) -> None:
        self._dependencies.told(event, envelope)
        job.state = "ready"

    def _blocked(self, event: JobBlocked, envelope: Envelope, job: AuditedJob) -> None:
        self._dependencies.told(event, envelope)
        job.state = "blocked"

    def _under(self, event: JobAdded | MessageSent, envelope: Envelope) -> None:
        if event.under is None:
            return
        job = self._jobs.get(event.under)
        why = broken_guard(None if job is None else job.holding, envelope, event.under_attempt or 0)
        if why is not None:
            self._broken("guard", envelope, f"written under job {event.under!r}: {why}")

    def _change(self, event: Any, envelope: Envelope, job: AuditedJob, state: str | None) -> None:
        """The version counts on, and the state is the one that follows. What the event says is taken from here on."""
        if event.version != job.version + 1:
            self._broken("version", envelope, f"version {event.version} of job {event.job!r} follows {job.version}")
        job.version = event.version
        if state is None:
            return
        if event.state != state:
            self._broken("state", envelope, f"job {event.job!r} is said to be {event.state}, and must be {state}")
        job.state = event.state

    def _lease(self, event: JobClaimed | JobRenewed, envelope: Envelope) -> None:
        if (why := broken_lease(envelope, event.lease_us, event.lease_until)) is not None:
            self._broken("lease", envelope, f"job {event.job!r}: {why}")

    def _use(self, event: JobClaimed | AttemptEnded, envelope: Envelope, job: AuditedJob, used: int) -> None:
        if event.used != used:
            self._broken("attempts", envelope, f"job {event.job!r} has used {used} attempts, not {event.used}")
        job.used = event.used

    def _expect_state(
        self, event: JobEvent, envelope: Envelope, job: AuditedJob, states: tuple[str, ...], done: str
    ) -> None:
        if job.state not in states:
            self._broken("state", envelope, f"job {event.job!r} was {done} while {job.state}")

    def _expect_attempt(self, job: str, attempt: int | None, envelope: Envelope, expected: int | None) -> None:
        if attempt != expected:
            self._broken("attempt", envelope, f"the event is about attempt {attempt} of job {job!r}, not {expected}")

    def _broken(self, rule: str, envelope: Envelope, problem: str) -> None:
        self._findings.add(rule, envelope.position, problem)


def _after_attempt(job: AuditedJob) -> str:
    """Where an attempt that came to nothing leaves a job."""
    return "ready" if job.used < job.max_attempts else "failed"
