"""Adding, revising, cancelling and reopening a job."""

from __future__ import annotations

from msgspec import UNSET

from coordinator.commands import AddJob, CancelJob, ReopenJob, ReviseJob
from coordinator.decisions.dependencies import all_accepted, blocked_by, dependents, refuse_cycle
from coordinator.decisions.lookup import already_claimed, hold_shown, known_job, seen_job
from coordinator.decisions.moment import Moment
from coordinator.refusals import (
    AlreadySubmitted,
    DependencyCycle,
    DependentsStarted,
    JobClosed,
    JobExists,
    JobOpen,
    Refused,
)
from coordinator.views import Views
from events.jobs import JobAdded, JobCancelled, JobReopened, JobRevised, State
from events.streams import job_stream
from events.union import AnyEvent
from projections.jobs import SETTLED, JobRow


def add_job(command: AddJob, views: Views, moment: Moment) -> list[AnyEvent]:
    shown = command.shown
    under = hold_shown(shown, views, moment)
    if views.jobs.get(command.job) is not None:
        raise JobExists(command.job)
    if command.job in command.depends_on:
        raise DependencyCycle(command.job, [command.job])
    ready = all_accepted([known_job(name, views).id for name in command.depends_on], views)
    return [
        JobAdded(
            job=command.job,
            version=1,
            state="ready" if ready else "blocked",
            payload=command.payload,
            paths=command.paths,
            depends_on=command.depends_on,
            priority=command.priority,
            max_attempts=command.max_attempts,
            review=command.review,
            under=None if shown is None else shown.job,
            under_attempt=None if under is None else under.attempt,
        )
    ]


def revise_job(command: ReviseJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job = seen_job(command, views)
    if job.state not in ("blocked", "ready"):
        raise _not_revisable(job, views)
    depends_on = job.depends_on if command.depends_on is UNSET else command.depends_on
    refuse_cycle(job.id, depends_on, views)
    max_attempts = job.max_attempts if command.max_attempts is UNSET else command.max_attempts
    return [
        JobRevised(
            job=job.id,
            version=job.version + 1,
            state=_state(job.used, max_attempts, ready=all_accepted(depends_on, views)),
            payload=command.payload,
            payload_at=job.payload_at if command.payload is UNSET else None,
            paths=job.paths if command.paths is UNSET else command.paths,
            depends_on=depends_on,
            dropped=tuple(name for name in job.depends_on if name not in set(depends_on)),
            priority=job.priority if command.priority is UNSET else command.priority,
            max_attempts=max_attempts,
            review=job.review if command.review is UNSET else command.review,
            attempt=job.attempt,
            used=job.used,
        )
    ]


def cancel_job(command: CancelJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job = seen_job(command, views)
    if job.state in ("accepted", "cancelled"):
        raise JobClosed(job.id, job.state)
    lease = views.leases.get(job_stream(job.id)) if job.state == "claimed" else None
    return [
        JobCancelled(
            job=job.id,
            version=job.version + 1,
            state="cancelled",
            attempt=None if lease is None else lease.attempt,
            paths=() if lease is None else lease.paths,
            reason=command.reason,
        )
    ]


def reopen_job(command: ReopenJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job = seen_job(command, views)
    if job.state not in SETTLED:
        raise JobOpen(job.id, job.state)
    started = [(row.id, row.state) for row in dependents(job.id, views) if row.state in _STARTED]
    if started:
        raise DependentsStarted(job.id, started[:20])
    state: State = "ready" if all_accepted(job.depends_on, views) else "blocked"
    return [JobReopened(job=job.id, version=job.version + 1, state=state), *blocked_by(job.id, views)]


_STARTED: frozenset[State] = frozenset({"claimed", "submitted", "accepted"})


def _state(used: int, max_attempts: int, *, ready: bool) -> State:
    if used >= max_attempts:
        return "failed"
    return "ready" if ready else "blocked"


def _not_revisable(job: JobRow, views: Views) -> Refused:
    if job.state == "claimed":
        return already_claimed(job, views)
    if job.state == "submitted":
        return AlreadySubmitted(job.id)
    return JobClosed(job.id, job.state)
