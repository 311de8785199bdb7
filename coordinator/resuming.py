"""A claim that was granted earlier, as it stands now: for who kept its token, or asks again with its receipt."""

from __future__ import annotations

from msgspec.structs import replace

from coordinator.answers import ClaimGranted
from coordinator.decisions.lookup import hold
from coordinator.decisions.moment import Moment
from coordinator.refusals import TokenUnknown
from coordinator.seen import Seen
from coordinator.tokens import Token
from events.jobs import JobClaimed
from events.streams import job_stream, name_in


def as_it_stands(seen: Seen, claim: ClaimGranted) -> ClaimGranted:
    """The claim with the lease and the paths that it has now, if it still holds."""
    lease = seen.views.leases.get(job_stream(claim.job.id))
    if lease is None or lease.attempt != claim.attempt or lease.ended is not None:
        return claim
    return replace(claim, lease_us=lease.lease_us, lease_until=lease.lease_until, paths=lease.paths)


def claim_of(seen: Seen, token: Token, actor: str) -> ClaimGranted:
    """The live claim of a token, as it stands now."""
    lease = hold(_subject(seen, token, actor), token.digest, seen.views, Moment(actor, seen.now or 0))
    return ClaimGranted(
        job=seen.job(name_in(lease.subject)),
        attempt=lease.attempt,
        fence=lease.fence,
        lease_us=lease.lease_us,
        lease_until=lease.lease_until,
        paths=lease.paths,
        token=token,
    )


def _subject(seen: Seen, token: Token, actor: str) -> str:
    """What the token was granted for; whoever it was not granted to does not learn it."""
    event = seen.event_at(token.fence) if token.fence <= seen.log.head().position else None
    if isinstance(event, JobClaimed) and event.worker == actor and event.token_digest == token.digest:
        return event.stream
    raise TokenUnknown("the claim")


def as_if_sent_at(claim: ClaimGranted, before: int, now: int) -> int:
    """When a claim with this much of its lease left would have been sent, on the clock that read `before`."""
    return before + claim.lease_until - now - claim.lease_us
