"""One row a job: its state and what decides about it. Bodies (payload, result, note) stay in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from events.envelope import Envelope
from events.jobs import (
    AttemptEnded,
    JobAccepted,
    JobAdded,
    JobBlocked,
    JobCancelled,
    JobClaimed,
    JobEvent,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobRejected,
    JobReleased,
    JobReopened,
    JobRevised,
    JobRevoked,
    JobSubmitted,
    JobUnblocked,
    Review,
    State,
)
from projections.projection import Changes, Fold, Get, Projection

SETTLED: frozenset[State] = frozenset({"accepted", "failed", "cancelled"})
"""States that only a person's word (reopen, cancel) leads out of."""

_PRIORITY_STEP = 1 << 47  # ranks put priority first, then the position since which the job is ready


class JobRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A job as it stands.

    `position` is that of the last event that counted in `version`, `since` its log time in µs; `ready_at` the position
    since which it waits in its place in the queue; `defined` that of the event that describes it; `payload_at`,
    `submitted` and `noted` those of the events that hold payload, result and last note.
    """

    id: str
    state: State
    version: int
    attempt: int = 0
    used: int = 0
    priority: int = 0
    max_attempts: int
    review: Review
    paths: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    worker: str | None = None
    reason: str | None = None
    since: int
    position: int
    ready_at: int
    defined: int
    payload_at: int
    submitted: int | None = None
    noted: int | None = None


def place(row: JobRow) -> tuple[str, int]:
    return row.state, row.ready_at - row.priority * _PRIORITY_STEP


def rank_before(priority: int) -> int:
    """The highest rank that only jobs of a higher priority have."""
    return -priority * _PRIORITY_STEP


def _added(event: JobAdded, envelope: Envelope, row: JobRow | None) -> JobRow:
    return JobRow(
        id=event.job,
        state=event.state,
        version=event.version,
        priority=event.priority,
        max_attempts=event.max_attempts,
        review=event.review,
        paths=event.paths,
        depends_on=event.depends_on,
        since=envelope.at,
        position=envelope.position,
        ready_at=envelope.position,
        defined=envelope.position,
        payload_at=envelope.position,
    )


def _revised(event: JobRevised, envelope: Envelope, row: JobRow) -> JobRow:
    became_ready = event.state == "ready" and row.state != "ready"
    return replace(
        row,
        state=event.state,
        version=event.version,
        priority=event.priority,
        max_attempts=event.max_attempts,
        review=event.review,
        paths=event.paths,
        depends_on=event.depends_on,
        since=row.since if event.state == row.state else envelope.at,
        position=envelope.position,
        ready_at=envelope.position if became_ready else row.ready_at,
        defined=envelope.position,
        payload_at=envelope.position if event.payload_at is None else event.payload_at,
    )


def _claimed(event: JobClaimed, envelope: Envelope, row: JobRow) -> JobRow:
    return replace(
        row,
        state="claimed",
        version=event.version,
        attempt=event.attempt,
        used=event.used,
        worker=event.worker,
        since=envelope.at,
        position=envelope.position,
        submitted=None,
        noted=None,
    )


def _submitted(event: JobSubmitted, envelope: Envelope, row: JobRow) -> JobRow:
    return replace(
        row,
        state=event.state,
        version=event.version,
        reason=None,
        since=envelope.at,
        position=envelope.position,
        submitted=envelope.position,
    )


def _given_back(
    event: AttemptEnded | JobRejected | JobCancelled | JobReopened, envelope: Envelope, row: JobRow, reason: str | None
) -> JobRow:
    """Any event after which nobody holds the job, and which says why."""
    return replace(
        row,
        state=event.state,
        version=event.version,
        used=event.used if isinstance(event, AttemptEnded) else row.used,
        worker=None,
        reason=reason,
        since=envelope.at,
        position=envelope.position,
        ready_at=envelope.position,
    )


def _ended(event: JobFailed | JobReleased | JobRevoked | JobRejected, envelope: Envelope, row: JobRow) -> JobRow:
    return _given_back(event, envelope, row, event.reason)


def _lapsed(event: JobLapsed, envelope: Envelope, row: JobRow) -> JobRow:
    return _given_back(event, envelope, row, f"attempt {event.attempt} of {row.worker} lapsed")


def _cancelled(event: JobCancelled, envelope: Envelope, row: JobRow) -> JobRow:
    return _given_back(event, envelope, row, event.reason)


def _reopened(event: JobReopened, envelope: Envelope, row: JobRow) -> JobRow:
    return replace(_given_back(event, envelope, row, None), used=0, submitted=None)


def _accepted(event: JobAccepted, envelope: Envelope, row: JobRow) -> JobRow:
    return replace(row, state=event.state, version=event.version, since=envelope.at, position=envelope.position)


def _noted(event: JobNoted, envelope: Envelope, row: JobRow) -> JobRow:
    return replace(row, noted=envelope.position)


def _unblocked(event: JobUnblocked, envelope: Envelope, row: JobRow) -> JobRow:
    return replace(row, state="ready", since=envelope.at, ready_at=envelope.position)


def _blocked(event: JobBlocked, envelope: Envelope, row: JobRow) -> JobRow:
    return replace(row, state="blocked", since=envelope.at)


def _of_own_row(evolve: Callable[[Any, Envelope, Any], JobRow]) -> Fold[JobRow]:
    """Every event about a job changes exactly the row of that job."""

    def fold(event: JobEvent, envelope: Envelope, get: Get[JobRow]) -> Changes[JobRow]:
        return ((event.job, evolve(event, envelope, get(event.job))),)

    return fold


JOBS = Projection(
    name="jobs",
    row=JobRow,
    place=place,
    folds={
        event: _of_own_row(evolve)
        for event, evolve in {
            JobAdded: _added,
            JobRevised: _revised,
            JobClaimed: _claimed,
            JobNoted: _noted,
            JobSubmitted: _submitted,
            JobFailed: _ended,
            JobReleased: _ended,
            JobLapsed: _lapsed,
            JobRevoked: _ended,
            JobCancelled: _cancelled,
            JobAccepted: _accepted,
            JobRejected: _ended,
            JobReopened: _reopened,
            JobUnblocked: _unblocked,
            JobBlocked: _blocked,
        }.items()
    },
)
