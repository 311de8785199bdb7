"""What happens to a claim: renewed, noted on, widened, and how it ends."""

from __future__ import annotations

from coordinator.commands import (
    ClaimCommand,
    FailJob,
    NoteProgress,
    ReleaseJob,
    RenewClaim,
    ReservePaths,
    RevokeClaim,
    SubmitJob,
)
from coordinator.decisions.clashes import find_clashes
from coordinator.decisions.dependencies import unblocked_by
from coordinator.decisions.lookup import hold, known_job, lease_of, seen_job
from coordinator.decisions.moment import Moment
from coordinator.decisions.operation_attempts import lapse_operation
from coordinator.limits import PATHS_MAX
from coordinator.paths import absorb
from coordinator.refusals import NotClaimed, PathClash, TooManyPaths
from coordinator.views import Views
from events.jobs import (
    JobAccepted,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobReleased,
    JobRenewed,
    JobReserved,
    JobRevoked,
    JobSubmitted,
    State,
)
from events.operations import OperationLapsed
from events.streams import JOBS, name_in
from events.union import AnyEvent
from projections.jobs import JobRow
from projections.leases import LeaseRow
from projections.path_keys import path_key


def renew_claim(command: RenewClaim, views: Views, moment: Moment) -> list[AnyEvent]:
    _, lease = _held(command, views, moment)
    lease_us = lease.lease_us if command.lease_us is None else command.lease_us
    return [JobRenewed(job=command.job, attempt=lease.attempt, lease_us=lease_us, lease_until=moment.now + lease_us)]


def note_progress(command: NoteProgress, views: Views, moment: Moment) -> list[AnyEvent]:
    _, lease = _held(command, views, moment)
    return [JobNoted(job=command.job, attempt=lease.attempt, note=command.note)]


def reserve_paths(command: ReservePaths, views: Views, moment: Moment) -> list[AnyEvent]:
    job, lease = _held(command, views, moment)
    if clashes := find_clashes(command.paths, views, own=job.id):
        raise PathClash(job.id, clashes)
    paths = absorb((*lease.paths, *command.paths))
    if len(paths) > PATHS_MAX:
        raise TooManyPaths(job.id, PATHS_MAX)
    before, after = set(map(path_key, lease.paths)), set(map(path_key, paths))
    added = tuple(path for path in paths if path_key(path) not in before)
    if not added:
        return []
    absorbed = tuple(path for path in lease.paths if path_key(path) not in after)
    return [JobReserved(job=job.id, attempt=lease.attempt, added=added, absorbed=absorbed, paths=paths)]


def submit_job(command: SubmitJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job, lease = _held(command, views, moment)
    submitted = JobSubmitted(
        job=job.id,
        version=job.version + 1,
        state="submitted",
        attempt=lease.attempt,
        used=job.used,
        paths=lease.paths,
        worker=lease.actor,
        result=command.result,
    )
    if job.review != "none":
        return [submitted]
    accepted = JobAccepted(job=job.id, version=job.version + 2, state="accepted", attempt=lease.attempt)
    return [submitted, accepted, *unblocked_by(job.id, views)]


def fail_job(command: FailJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job, lease = _held(command, views, moment)
    return [
        JobFailed(
            job=job.id,
            version=job.version + 1,
            state=after_attempt(job),
            attempt=lease.attempt,
            used=job.used,
            paths=lease.paths,
            reason=command.reason,
        )
    ]


def release_job(command: ReleaseJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job, lease = _held(command, views, moment)
    return [
        JobReleased(
            job=job.id,
            version=job.version + 1,
            state="ready",
            attempt=lease.attempt,
            used=job.used - 1,
            paths=lease.paths,
            reason=command.reason,
        )
    ]


def revoke_claim(command: RevokeClaim, views: Views, moment: Moment) -> list[AnyEvent]:
    job = seen_job(command, views)
    if job.state != "claimed":
        raise NotClaimed(job.id, job.state)
    lease = lease_of(job.id, views)
    return [
        JobRevoked(
            job=job.id,
            version=job.version + 1,
            state=after_attempt(job),
            attempt=lease.attempt,
            used=job.used,
            paths=lease.paths,
            reason=command.reason,
        )
    ]


def lapse(lease: LeaseRow, views: Views) -> JobLapsed | OperationLapsed:
    """The event for a lease that is due."""
    if not lease.subject.startswith(JOBS):
        return lapse_operation(lease)
    job = known_job(name_in(lease.subject), views)
    return JobLapsed(
        job=job.id,
        version=job.version + 1,
        state=after_attempt(job),
        attempt=lease.attempt,
        used=job.used,
        paths=lease.paths,
        lease_until=lease.lease_until,
    )


def due(views: Views, now: int) -> list[LeaseRow]:
    """The live leases that have run out at log time `now`."""
    return list(views.leases.scan("live", up_to=now))


def after_attempt(job: JobRow) -> State:
    """Where an attempt that came to nothing leaves the job."""
    return "ready" if job.used < job.max_attempts else "failed"


def _held(command: ClaimCommand, views: Views, moment: Moment) -> tuple[JobRow, LeaseRow]:
    lease = hold(command.subject, command.token_digest, views, moment)
    return known_job(command.job, views), lease
