"""Guards that many decisions begin with."""

from __future__ import annotations

from hmac import compare_digest

from coordinator.commands import Shown, VersionedCommand
from coordinator.decisions.moment import Moment
from coordinator.refusals import (
    AlreadyClaimed,
    ClaimEnded,
    JobUnknown,
    LeaseLapsed,
    ReaderSuperseded,
    TokenSuperseded,
    TokenUnknown,
    VersionChanged,
)
from coordinator.views import Views
from events.streams import job_stream
from projections.jobs import JobRow
from projections.leases import LeaseRow


def known_job(job: str, views: Views) -> JobRow:
    """The job, or `JobUnknown`."""
    row = views.jobs.get(job)
    if row is None:
        raise JobUnknown(job)
    return row


def seen_job(command: VersionedCommand, views: Views) -> JobRow:
    """The job, if its actor decided on what it is now."""
    row = known_job(command.job, views)
    if row.version != command.version:
        raise VersionChanged(row.id, seen=command.version, current=row.version)
    return row


def lease_of(job: str, views: Views) -> LeaseRow:
    """The latest lease on a job that was claimed at least once."""
    row = views.leases.get(job_stream(job))
    if row is None:
        raise LookupError(f"job {job!r} is claimed without a lease")
    return row


def already_claimed(job: JobRow, views: Views) -> AlreadyClaimed:
    lease = lease_of(job.id, views)
    return AlreadyClaimed(job.id, holder=lease.actor, until=lease.lease_until)


def hold_shown(shown: Shown | None, views: Views, moment: Moment) -> LeaseRow | None:
    """The live lease of the claim that a write of another kind carries, if it carries one."""
    return None if shown is None else hold(job_stream(shown.job), shown.token_digest, views, moment)


def hold(
    subject: str,
    token_digest: str,
    views: Views,
    moment: Moment,
    superseded: type[TokenSuperseded | ReaderSuperseded] = TokenSuperseded,
) -> LeaseRow:
    """The live lease that this token proves, for every write that must show one.

    A token that somebody else was granted, or that belongs to another subject, is as good as none.
    """
    lease = views.leases.get(subject)
    if lease is None:
        raise TokenUnknown(subject)
    if not compare_digest(lease.token_digest.encode(), token_digest.encode()):
        earlier = views.leases.get(token_digest)
        if earlier is None or earlier.subject != subject or earlier.actor != moment.actor:
            raise TokenUnknown(subject)
        raise superseded(subject, attempt=earlier.attempt, current=lease.attempt, holder=lease.actor)
    if lease.actor != moment.actor:
        raise TokenUnknown(subject)
    if lease.ended == "lapsed":
        raise LeaseLapsed(subject, attempt=lease.attempt, lease_until=lease.lease_until)
    if lease.ended is not None:
        raise ClaimEnded(subject, attempt=lease.attempt, how=lease.ended)
    return lease
