"""The life of a job, as the log tells it.

Every event names all rows that it changes, the removed ones too, and carries the state and version that it leaves
behind, so that answers and projections need nothing but the event. Times are µs UTC of log time. `version` is the
job's version after the event; events without it do not count.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Raw, UnsetType

from events.base import Event
from events.streams import job_stream

State = Literal["blocked", "ready", "claimed", "submitted", "accepted", "failed", "cancelled"]
Review = Literal["other", "anyone", "none"]


class JobEvent(Event, frozen=True, kw_only=True):
    job: str

    @property
    def stream(self) -> str:
        return job_stream(self.job)


class JobDefined(JobEvent, frozen=True, kw_only=True):
    """What adding and revising have in common: all of what the job is, but for its payload."""

    version: int
    state: State
    paths: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    priority: int = 0
    max_attempts: int
    review: Review


class JobAdded(JobDefined, frozen=True, kw_only=True, tag="job.added"):
    """Somebody asked for this work."""

    payload: Raw
    under: str | None = None  # the job under whose claim it was added
    under_attempt: int | None = None


class JobRevised(JobDefined, frozen=True, kw_only=True, tag="job.revised"):
    """The work was described anew; the fields hold the whole new description.

    Where the payload stayed as it was, `payload` is not set, and the event at `payload_at` holds it.
    """

    payload: Raw | UnsetType = UNSET  # not None: msgspec cannot read `Raw | None` back
    payload_at: int | None = None
    attempt: int
    used: int
    dropped: tuple[str, ...] = ()  # dependencies that it no longer has


class JobClaimed(JobEvent, frozen=True, kw_only=True, tag="job.claimed"):
    """A worker took the job and reserved all its paths until `lease_until`."""

    version: int
    worker: str
    attempt: int
    used: int
    nonce: str
    token_digest: str
    lease_us: int
    lease_until: int
    paths: tuple[str, ...] = ()
    defined: int  # position of the event that describes the job
    reason: str | None = None  # how the attempt before this one ended


class JobRenewed(JobEvent, frozen=True, kw_only=True, tag="job.renewed"):
    """The worker is still there: the lease was moved on."""

    attempt: int
    lease_us: int
    lease_until: int


class JobNoted(JobEvent, frozen=True, kw_only=True, tag="job.noted"):
    """The worker said how far it is."""

    attempt: int
    note: Raw


class JobReserved(JobEvent, frozen=True, kw_only=True, tag="job.reserved"):
    """The worker reserved more paths. `paths` is all that the claim holds now."""

    attempt: int
    added: tuple[str, ...] = ()
    absorbed: tuple[str, ...] = ()  # held before, and now covered by an added parent
    paths: tuple[str, ...] = ()


class AttemptEnded(JobEvent, frozen=True, kw_only=True):
    """What every end of a claim has in common. `paths` are the reservations that end with it."""

    version: int
    state: State
    attempt: int
    used: int
    paths: tuple[str, ...] = ()


class JobSubmitted(AttemptEnded, frozen=True, kw_only=True, tag="job.submitted"):
    """The worker handed in a result."""

    worker: str
    result: Raw


class JobFailed(AttemptEnded, frozen=True, kw_only=True, tag="job.failed"):
    """The worker gave this attempt up."""

    reason: str


class JobReleased(AttemptEnded, frozen=True, kw_only=True, tag="job.released"):
    """The worker gave the job back; the attempt is not used up."""

    reason: str | None = None


class JobLapsed(AttemptEnded, frozen=True, kw_only=True, tag="job.lapsed"):
    """The lease ran out unrenewed at `lease_until`."""

    lease_until: int


class JobRevoked(AttemptEnded, frozen=True, kw_only=True, tag="job.revoked"):
    """Somebody took the claim away from the worker."""

    reason: str


class JobCancelled(JobEvent, frozen=True, kw_only=True, tag="job.cancelled"):
    """The work is not wanted any more. A claim on it (`attempt`) ended with it."""

    version: int
    state: State
    attempt: int | None = None
    paths: tuple[str, ...] = ()
    reason: str | None = None


class JobAccepted(JobEvent, frozen=True, kw_only=True, tag="job.accepted"):
    """The result was reviewed and is good."""

    version: int
    state: State
    attempt: int


class JobRejected(JobEvent, frozen=True, kw_only=True, tag="job.rejected"):
    """The result was reviewed and is not good enough."""

    version: int
    state: State
    attempt: int
    reason: str


class JobReopened(JobEvent, frozen=True, kw_only=True, tag="job.reopened"):
    """A closed job is wanted again; its attempts count from zero."""

    version: int
    state: State


class JobUnblocked(JobEvent, frozen=True, kw_only=True, tag="job.unblocked"):
    """The last dependency that this job waited for was accepted."""

    by: str


class JobBlocked(JobEvent, frozen=True, kw_only=True, tag="job.blocked"):
    """A dependency of this job was reopened."""

    by: str
