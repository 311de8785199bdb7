"""The "no" of a decision: a class, a stable code, its values, and a hint if the caller can act on it.

`values` is what the log keeps of a refusal (`command.refused`); it never holds a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from coordinator.clock import to_datetime, to_us
from coordinator.errors import CoordinatorError
from events.streams import in_words

CLASHES_NAMED = 20


class Refused(CoordinatorError):
    """A decision said no; the log says so too.

    Attributes:
        values: the facts behind it, as the log keeps them.
        receipt: the receipt of the refused command; it may be used again, a refusal does not use it up.
        position: log position of the record, or None where refusals came too fast to record each.
    """

    code = "refused"

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(message)
        self.values: dict[str, object] = values
        self.receipt: str | None = None
        self.position: int | None = None


class ReceiptConflict(Refused):
    """The receipt was used for another request."""

    code = "receipt_conflict"
    hint = "recall the receipt, or keep the object that was first read"

    def __init__(self, receipt: str, first: int) -> None:
        super().__init__(f"receipt {receipt!r} was used for another request at position {first}", first=first)
        self.first = first


class JobExists(Refused):
    """The id is taken."""

    code = "job_exists"
    hint = "choose another id, or revise the job"

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job!r} exists already", job=job)


class JobUnknown(Refused):
    """There is no such job."""

    code = "job_unknown"
    hint = "add it first"

    def __init__(self, job: str) -> None:
        super().__init__(f"there is no job {job!r}", job=job)


class VersionChanged(Refused):
    """The job changed since it was seen."""

    code = "version_changed"
    hint = "read the job again and decide anew"

    def __init__(self, job: str, *, seen: int, current: int) -> None:
        super().__init__(f"job {job!r} is at version {current}, not {seen}", job=job, seen=seen, current=current)
        self.seen = seen
        self.current = current


class AlreadyClaimed(Refused):
    """Somebody holds the job."""

    code = "already_claimed"
    hint = "wait for it, or claim another; revoke the claim if its worker is known to be gone"

    def __init__(self, job: str, *, holder: str, until: int) -> None:
        message = f"job {job!r} is held by {holder!r} until {_clock(until)}"
        super().__init__(message, job=job, holder=holder, until=until)
        self.holder = holder
        self.until: datetime = to_datetime(until)


class AlreadySubmitted(Refused):
    """The job was handed in and waits for its review."""

    code = "already_submitted"
    hint = "wait for its review"

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job!r} was submitted and waits for a review", job=job)


class JobClosed(Refused):
    """The job is closed: nothing more can be done with it as it is."""

    code = "job_closed"
    hint = "reopen it if it is wanted again"

    def __init__(self, job: str, state: str) -> None:
        super().__init__(f"job {job!r} is {state}", job=job, state=state)
        self.state = state


class JobOpen(Refused):
    """Only a closed job can be reopened."""

    code = "job_open"

    def __init__(self, job: str, state: str) -> None:
        super().__init__(f"job {job!r} is not closed, it is {state}", job=job, state=state)
        self.state = state


class DependencyCycle(Refused):
    """The job would wait for itself."""

    code = "dependency_cycle"
    hint = "leave one of these dependencies out"

    def __init__(self, job: str, through: Sequence[str]) -> None:
        way = " → ".join([*through, job])
        super().__init__(f"job {job!r} would wait for itself: {way}", job=job, through=list(through))


class DependenciesUnaccepted(Refused):
    """The job waits for others.

    Attributes:
        dependencies: each that is not accepted, with its state; the first 20.
    """

    code = "dependencies_unaccepted"
    hint = "they must be accepted first"

    def __init__(self, job: str, dependencies: Sequence[tuple[str, str]], more: int = 0) -> None:
        named = ", ".join(f"{name!r} ({state})" for name, state in dependencies)
        rest = f" and {more} more" if more else ""
        super().__init__(f"job {job!r} waits for {named}{rest}", job=job, dependencies=dict(dependencies), more=more)
        self.dependencies = dict(dependencies)


class AttemptsExhausted(Refused):
    """All attempts were used up."""

    code = "attempts_exhausted"
    hint = "reopen the job to start its attempts anew"

    def __init__(self, job: str, used: int, max_attempts: int) -> None:
        message = f"job {job!r} has used {used} of {max_attempts} attempts"
        super().__init__(message, job=job, used=used, max_attempts=max_attempts)


class Clash(NamedTuple):
    """A path that was asked for, and a reservation that stands in its way, until its lease ends or is renewed."""

    path: str
    held: str
    holder: str
    job: str
    until: datetime


class PathClash(Refused):
    """Somebody has reserved one of the paths, a parent or a child of it; none was reserved.

    Attributes:
        clashes: the first 20.
        more: how many more there are; where there are very many, at least so many.
    """

    code = "path_clash"
    hint = "claim another job, or wait until the paths are free"

    def __init__(self, job: str, clashes: Sequence[Clash]) -> None:
        named = clashes[:CLASHES_NAMED]
        more = len(clashes) - len(named)
        listed = "; ".join(
            f"{c.path} against {c.held}, held by {c.holder!r} for job {c.job!r} until {_text(c.until)}" for c in named
        )
        rest = f"; and {more} more" if more else ""
        super().__init__(
            f"job {job!r} cannot have its paths: {listed}{rest}",
            job=job,
            clashes=[{**clash._asdict(), "until": to_us(clash.until)} for clash in named],
            more=more,
        )
        self.clashes = tuple(named)
        self.more = more


class TooManyPaths(Refused):
    """One claim can hold only so many paths."""

    code = "too_many_paths"
    hint = "reserve the folder above them"

    def __init__(self, job: str, limit: int) -> None:
        super().__init__(f"the claim of job {job!r} would hold more than {limit} paths", job=job, limit=limit)


class NothingToReview(Refused):
    """Only a submitted job can be accepted or rejected."""

    code = "not_submitted"
    hint = "read the job again; perhaps somebody else has reviewed it"

    def __init__(self, job: str, state: str) -> None:
        super().__init__(f"job {job!r} is not submitted, it is {state}", job=job, state=state)
        self.state = state


class SelfReview(Refused):
    """The worker that submitted may not review its own work."""

    code = "self_review"
    hint = 'let another actor review it, or add the job with review="anyone"'

    def __init__(self, job: str, worker: str) -> None:
        super().__init__(f"job {job!r} was submitted by {worker!r} itself", job=job, worker=worker)


class NotClaimed(Refused):
    """Only a claim can be revoked."""

    code = "not_claimed"

    def __init__(self, job: str, state: str) -> None:
        super().__init__(f"job {job!r} is not claimed, it is {state}", job=job, state=state)
        self.state = state


class DependentsStarted(Refused):
    """Others already build on the result."""

    code = "dependents_started"
    hint = "cancel or reopen those first"

    def __init__(self, job: str, dependents: Sequence[tuple[str, str]]) -> None:
        named = ", ".join(f"{name!r} ({state})" for name, state in dependents)
        super().__init__(f"jobs that build on {job!r} have started: {named}", job=job, dependents=dict(dependents))


class TokenUnknown(Refused):
    """No claim of this actor has this token."""

    code = "token_unknown"
    hint = "use the token of your own claim, under the actor name that claimed"

    def __init__(self, subject: str) -> None:
        super().__init__(f"{in_words(subject)}: this token belongs to no claim of this actor", subject=subject)


class ClaimLost(Refused):
    """The worker's claim is over; what it still has is too late."""

    code = "claim_lost"


class TokenSuperseded(ClaimLost):
    """Somebody else holds the job now; what this worker still has is too late."""

    code = "token_superseded"
    hint = "stop working on it; claim again if you still want the job"

    def __init__(self, subject: str, *, attempt: int, current: int, holder: str) -> None:
        message = f"{in_words(subject)}: this is attempt {attempt}'s token; attempt {current} is {holder}'s"
        super().__init__(message, subject=subject, attempt=attempt, current=current, holder=holder)
        self.attempt = attempt
        self.current = current
        self.holder = holder


class ReaderSuperseded(Refused):
    """Somebody opened this reader anew; the older session is locked out."""

    code = "reader_superseded"
    hint = "stop reading: the newer session is handed what this one has not acknowledged"

    def __init__(self, subject: str, *, attempt: int, current: int, holder: str) -> None:
        message = f"{in_words(subject)}: this is session {attempt}; session {current} is {holder}'s"
        super().__init__(message, subject=subject, session=attempt, current=current, holder=holder)
        self.session = attempt
        self.current = current
        self.holder = holder


class NotDelivered(Refused):
    """A message that was not handed out to the reader can neither be acknowledged nor skipped."""

    code = "not_delivered"
    hint = "read it first; acknowledge pages as they were handed out"

    def __init__(self, topic: str, reader: str, *, number: int, delivered: int) -> None:
        message = f"reader {reader!r} of {topic!r} was handed messages up to {delivered}, not {number}"
        super().__init__(message, topic=topic, reader=reader, number=number, delivered=delivered)
        self.number = number
        self.delivered = delivered


class PageUnacknowledged(Refused):
    """The page before was not acknowledged; it would be handed out again if the program ended now."""

    code = "page_unacknowledged"
    hint = "acknowledge each page once what it says is kept"

    def __init__(self, topic: str, reader: str, *, number: int) -> None:
        message = f"reader {reader!r} of {topic!r} has not acknowledged up to {number}"
        super().__init__(message, topic=topic, reader=reader, number=number)
        self.number = number


class LeaseLapsed(ClaimLost):
    """The lease ran out before it was renewed; nobody has taken the job since."""

    code = "lease_lapsed"
    hint = "claim again if you still want the job"

    def __init__(self, subject: str, *, attempt: int, lease_until: int) -> None:
        message = f"{in_words(subject)}: the lease of attempt {attempt} ran out at {_clock(lease_until)}"
        super().__init__(message, subject=subject, attempt=attempt, lease_until=lease_until)
        self.attempt = attempt
        self.lease_until: datetime = to_datetime(lease_until)


class ClaimEnded(ClaimLost):
    """The claim was submitted, failed, released, revoked or cancelled."""

    code = "claim_ended"
    hint = "stop working on it; if you did not end it yourself, read the job's reason"

    def __init__(self, subject: str, *, attempt: int, how: str) -> None:
        super().__init__(f"{in_words(subject)}: attempt {attempt} was {how}", subject=subject, attempt=attempt, how=how)
        self.attempt = attempt
        self.how = how


def _clock(at: int) -> str:
    return _text(to_datetime(at))


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")
