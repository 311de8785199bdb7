"""One row a subject: its latest lease, and how it ended.

The row stays after the end, so that a token that comes too late can be told why: superseded, lapsed or ended. When a
lease is followed by another, its row moves to the digest of its token: old tokens must be recognised too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from events.envelope import Envelope
from events.jobs import (
    JobCancelled,
    JobClaimed,
    JobEvent,
    JobFailed,
    JobLapsed,
    JobReleased,
    JobRenewed,
    JobReserved,
    JobRevoked,
    JobSubmitted,
)
from events.messages import ReaderOpened
from events.operations import (
    OperationEvent,
    OperationFailed,
    OperationLapsed,
    OperationQueued,
    OperationRenewed,
    OperationStopped,
    OperationSucceeded,
)
from projections.projection import Changes, Fold, Get, Projection

End = Literal["submitted", "failed", "released", "lapsed", "revoked", "cancelled", "superseded", "succeeded", "stopped"]


class LeaseRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The latest lease on `subject`. `fence` is the position of the event that granted it; times are µs of log time.

    A reader's session has no end: its `lease_us` and `lease_until` are 0.
    """

    subject: str
    actor: str
    attempt: int
    fence: int
    token_digest: str
    lease_us: int = 0
    lease_until: int = 0
    paths: tuple[str, ...] = ()
    ended: End | None = None


def falls_due(row: LeaseRow) -> bool:
    """Whether it will lapse by itself."""
    return row.ended is None and row.lease_until > 0


def place(row: LeaseRow) -> tuple[str, int]:
    return ("live", row.lease_until) if falls_due(row) else ("", 0)


def _followed(row: LeaseRow, get: Get[LeaseRow]) -> Changes[LeaseRow]:
    """The new lease, and the one before it under the digest of its token."""
    before = get(row.subject) if row.attempt > 1 else None
    return ((row.subject, row),) if before is None else ((row.subject, row), (before.token_digest, before))


def _claimed(event: JobClaimed, envelope: Envelope, get: Get[LeaseRow]) -> Changes[LeaseRow]:
    row = LeaseRow(
        subject=event.stream,
        actor=event.worker,
        attempt=event.attempt,
        fence=envelope.position,
        token_digest=event.token_digest,
        lease_us=event.lease_us,
        lease_until=event.lease_until,
        paths=event.paths,
    )
    return _followed(row, get)


def _opened(event: ReaderOpened, envelope: Envelope, get: Get[LeaseRow]) -> Changes[LeaseRow]:
    row = LeaseRow(
        subject=event.stream,
        actor=event.holder,
        attempt=event.session,
        fence=envelope.position,
        token_digest=event.token_digest,
    )
    before = get(row.subject) if event.session > 1 else None
    if before is None:
        return ((row.subject, row),)
    return (row.subject, row), (before.token_digest, replace(before, ended="superseded"))


def _queued(event: OperationQueued, envelope: Envelope, get: Get[LeaseRow]) -> Changes[LeaseRow]:
    row = LeaseRow(
        subject=event.stream,
        actor=event.operator,
        attempt=event.attempt,
        fence=envelope.position,
        token_digest=event.token_digest,
        lease_us=event.lease_us,
        lease_until=event.lease_until,
    )
    return _followed(row, get)


def _changed(evolve: Callable[[Any, LeaseRow], LeaseRow]) -> Fold[LeaseRow]:
    def fold(event: JobEvent | OperationEvent, envelope: Envelope, get: Get[LeaseRow]) -> Changes[LeaseRow]:
        row = get(event.stream)
        return () if row is None else ((row.subject, evolve(event, row)),)

    return fold


def _renewed(event: JobRenewed | OperationRenewed, row: LeaseRow) -> LeaseRow:
    return replace(row, lease_us=event.lease_us, lease_until=event.lease_until)


def _reserved(event: JobReserved, row: LeaseRow) -> LeaseRow:
    return replace(row, paths=event.paths)


def _cancelled(event: JobCancelled, row: LeaseRow) -> LeaseRow:
    return row if event.attempt is None else replace(row, ended="cancelled", paths=())


def _ended(how: End) -> Callable[[Any, LeaseRow], LeaseRow]:
    return lambda event, row: replace(row, ended=how, paths=())


LEASES = Projection(
    name="leases",
    row=LeaseRow,
    place=place,
    folds={
        JobClaimed: _claimed,
        JobRenewed: _changed(_renewed),
        JobReserved: _changed(_reserved),
        JobSubmitted: _changed(_ended("submitted")),
        JobFailed: _changed(_ended("failed")),
        JobReleased: _changed(_ended("released")),
        JobLapsed: _changed(_ended("lapsed")),
        JobRevoked: _changed(_ended("revoked")),
        JobCancelled: _changed(_cancelled),
        ReaderOpened: _opened,
        OperationQueued: _queued,
        OperationRenewed: _changed(_renewed),
        OperationSucceeded: _changed(_ended("succeeded")),
        OperationFailed: _changed(_ended("failed")),
        OperationStopped: _changed(_ended("stopped")),
        OperationLapsed: _changed(_ended("lapsed")),
    },
)
