"""A job as callers see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

from msgspec import UNSET, Raw, Struct

from coordinator.clock import to_datetime
from coordinator.payloads import JsonValue, decode, decode_as
from events.jobs import JobAdded, JobClaimed, JobNoted, JobRevised, JobSubmitted, Review, State
from events.union import AnyEvent
from projections.jobs import JobRow
from projections.leases import LeaseRow

T = TypeVar("T")

JobState = State

EventAt = Callable[[int], AnyEvent]
"""Reads one event of the log by its position: payloads, results and notes stay there."""


class JobRef(Struct, frozen=True, kw_only=True, gc=False):
    """A job as one write left it: enough to act on it again.

    Attributes:
        id: the job's id.
        state: the state it was left in.
        version: what `claim`, `accept` and others compare with, to see whether the job has changed since.
        position: log position of the event that left it so.
    """

    id: str
    state: JobState
    version: int
    position: int


class Job(JobRef, frozen=True, kw_only=True, gc=False):
    """A job as it stood at one moment of the log.

    Attributes:
        attempt: number of the latest claim; 0 before the first.
        used: attempts that count against `max_attempts`; released ones do not.
        max_attempts: how many there may be.
        priority: higher is claimed first.
        review: who may accept: another actor ("other"), any ("anyone"), or nobody needs to ("none").
        paths: what a claim reserves, normalised.
        depends_on: ids of the jobs that must be accepted first.
        worker: who holds it or submitted it.
        lease_until: when the claim lapses unless it is renewed; None unless it is claimed.
        since: when it came into this state.
        reason: why the latest attempt came to nothing.
    """

    attempt: int
    used: int
    max_attempts: int
    priority: int
    review: Review
    paths: tuple[str, ...]
    depends_on: tuple[str, ...]
    worker: str | None
    lease_until: datetime | None
    since: datetime
    reason: str | None
    _payload: Raw
    _result: Raw | None
    _note: Raw | None

    def __repr__(self) -> str:
        return shown(self)

    @property
    def payload(self) -> Mapping[str, JsonValue]:
        """What the job was added or revised with."""
        return decode(self._payload)

    def payload_as(self, type_: type[T]) -> T:
        """The payload as a dataclass, a msgspec struct, a typed dict or a pydantic model.

        Raises:
            InvalidInput: it does not fit; the message names where.
        """
        return decode_as(self._payload, type_)

    @property
    def result(self) -> Mapping[str, JsonValue] | None:
        """What was submitted; None before that."""
        return None if self._result is None else decode(self._result)

    def result_as(self, type_: type[T]) -> T:
        """The result as `payload_as` gives the payload; of a job without a result, the empty object."""
        return decode_as(Raw(b"{}") if self._result is None else self._result, type_, "result")

    @property
    def note(self) -> Mapping[str, JsonValue] | None:
        """The last progress note of the latest claim."""
        return None if self._note is None else decode(self._note)


def shown(struct: Struct) -> str:
    """What `repr` tells of a struct: all but its raw bodies."""
    fields = (name for name in struct.__struct_fields__ if not name.startswith("_"))
    return f"{type(struct).__name__}({', '.join(f'{name}={getattr(struct, name)!r}' for name in fields)})"


def job_of(row: JobRow, lease: LeaseRow | None, event_at: EventAt) -> Job:
    """The public job for a row, its lease and the log."""
    if row.state != "claimed":
        lease = None  # of an attempt that has ended
    return Job(
        id=row.id,
        state=row.state,
        version=row.version,
        position=row.position,
        attempt=row.attempt,
        used=row.used,
        max_attempts=row.max_attempts,
        priority=row.priority,
        review=row.review,
        paths=row.paths,
        depends_on=row.depends_on,
        worker=row.worker,
        lease_until=None if lease is None else to_datetime(lease.lease_until),
        since=to_datetime(row.since),
        reason=row.reason,
        _payload=_payload(row.payload_at, event_at),
        _result=None if row.submitted is None else _result(event_at(row.submitted)),
        _note=None if row.noted is None else _note(event_at(row.noted)),
    )


def job_as_claimed(event: JobClaimed, *, position: int, at: int, event_at: EventAt) -> Job:
    """The job as this claim left it, told by the claim's event and the one that describes the job."""
    described = event_at(event.defined)
    if not isinstance(described, JobAdded | JobRevised):
        raise LookupError(f"position {event.defined} does not describe a job")
    payload_at = described.payload_at if isinstance(described, JobRevised) else None
    return Job(
        id=event.job,
        state="claimed",
        version=event.version,
        position=position,
        attempt=event.attempt,
        used=event.used,
        max_attempts=described.max_attempts,
        priority=described.priority,
        review=described.review,
        paths=described.paths,
        depends_on=described.depends_on,
        worker=event.worker,
        lease_until=to_datetime(event.lease_until),
        since=to_datetime(at),
        reason=event.reason,
        _payload=_payload(event.defined if payload_at is None else payload_at, event_at),
        _result=None,
        _note=None,
    )


def _payload(position: int, event_at: EventAt) -> Raw:
    event = event_at(position)
    if isinstance(event, JobAdded | JobRevised) and event.payload is not UNSET:
        return event.payload
    raise LookupError(f"position {position} holds no payload")


def _result(event: AnyEvent) -> Raw | None:
    return event.result if isinstance(event, JobSubmitted) else None


def _note(event: AnyEvent) -> Raw | None:
    return event.note if isinstance(event, JobNoted) else None
