"""One row a reserved path, under its comparison key. Parents are found by get, children by a range."""

from __future__ import annotations

import msgspec

from events.envelope import Envelope
from events.jobs import (
    AttemptEnded,
    JobCancelled,
    JobClaimed,
    JobFailed,
    JobLapsed,
    JobReleased,
    JobReserved,
    JobRevoked,
    JobSubmitted,
)
from projections.path_keys import path_key
from projections.projection import Changes, Get, Projection


class ReservationRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    path: str
    job: str
    worker: str
    attempt: int


def place(row: ReservationRow) -> tuple[str, int]:
    return "", 0


def _claimed(event: JobClaimed, envelope: Envelope, get: Get[ReservationRow]) -> Changes[ReservationRow]:
    return [
        (path_key(path), ReservationRow(path=path, job=event.job, worker=event.worker, attempt=event.attempt))
        for path in event.paths
    ]


def _reserved(event: JobReserved, envelope: Envelope, get: Get[ReservationRow]) -> Changes[ReservationRow]:
    gone = [(path_key(path), None) for path in event.absorbed]
    return gone + [
        (
            path_key(path),
            ReservationRow(path=path, job=event.job, worker=envelope.actor or "", attempt=event.attempt),
        )
        for path in event.added
    ]


def _freed(event: AttemptEnded | JobCancelled, envelope: Envelope, get: Get[ReservationRow]) -> Changes[ReservationRow]:
    return [(path_key(path), None) for path in event.paths]


RESERVATIONS = Projection(
    name="reservations",
    row=ReservationRow,
    place=place,
    ranged=True,
    folds={
        JobClaimed: _claimed,
        JobReserved: _reserved,
        JobSubmitted: _freed,
        JobFailed: _freed,
        JobReleased: _freed,
        JobLapsed: _freed,
        JobRevoked: _freed,
        JobCancelled: _freed,
    },
)
