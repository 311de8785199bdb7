"""One row an operation: its latest attempt, and where in the log the rest stands."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from events.envelope import Envelope
from events.operations import (
    OperationCancelAsked,
    OperationEvent,
    OperationFailed,
    OperationLapsed,
    OperationProgressed,
    OperationQueued,
    OperationReconciled,
    OperationStarted,
    OperationState,
    OperationStopped,
    OperationSucceeded,
)
from projections.projection import Changes, Fold, Get, Projection

LIVE: frozenset[OperationState] = frozenset({"queued", "running"})


class OperationRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The other fields than these are positions of events of the latest attempt: `first` of the first one of all,
    `queued` of that which approved it. `since` is when it came into its state, in µs of log time.
    """

    id: str
    kind: str
    operator: str
    arguments_digest: str
    state: OperationState
    attempt: int
    since: int
    first: int
    queued: int
    started: int | None = None
    progressed: int | None = None
    cancel_asked: int | None = None
    ended: int | None = None
    reconciled: int | None = None

    def fits(self, kind: str, arguments: bytes) -> bool:
        """Whether it is of this kind, with these arguments."""
        return self.kind == kind and self.arguments_digest == sha256(arguments).hexdigest()


def place(row: OperationRow) -> tuple[str, int]:
    return row.operator, -row.first  # the newest first


def _queued(event: OperationQueued, envelope: Envelope, get: Get[OperationRow]) -> Changes[OperationRow]:
    row = OperationRow(
        id=event.operation,
        kind=event.kind,
        operator=event.operator,
        arguments_digest=event.arguments_digest,
        state="queued",
        attempt=event.attempt,
        since=envelope.at,
        first=event.first or envelope.position,
        queued=envelope.position,
    )
    return ((row.id, row),)


def _changed(evolve: Callable[[Any, Envelope, OperationRow], OperationRow]) -> Fold[OperationRow]:
    def fold(event: OperationEvent, envelope: Envelope, get: Get[OperationRow]) -> Changes[OperationRow]:
        row = get(event.operation)
        return () if row is None else ((row.id, evolve(event, envelope, row)),)

    return fold


def _started(event: OperationStarted, envelope: Envelope, row: OperationRow) -> OperationRow:
    return replace(row, state="running", since=envelope.at, started=envelope.position)


def _progressed(event: OperationProgressed, envelope: Envelope, row: OperationRow) -> OperationRow:
    return replace(row, progressed=envelope.position)


def _cancel_asked(event: OperationCancelAsked, envelope: Envelope, row: OperationRow) -> OperationRow:
    return replace(row, cancel_asked=envelope.position)


def _ended(state: OperationState) -> Callable[[Any, Envelope, OperationRow], OperationRow]:
    return lambda event, envelope, row: replace(row, state=state, since=envelope.at, ended=envelope.position)


def _reconciled(event: OperationReconciled, envelope: Envelope, row: OperationRow) -> OperationRow:
    row = replace(row, reconciled=envelope.position)
    return replace(row, state="succeeded", since=envelope.at) if event.finding == "done" else row


OPERATIONS = Projection(
    name="operations",
    row=OperationRow,
    place=place,
    folds={
        OperationQueued: _queued,
        OperationStarted: _changed(_started),
        OperationProgressed: _changed(_progressed),
        OperationCancelAsked: _changed(_cancel_asked),
        OperationSucceeded: _changed(_ended("succeeded")),
        OperationFailed: _changed(_ended("failed")),
        OperationStopped: _changed(_ended("stopped")),
        OperationLapsed: _changed(_ended("interrupted")),
        OperationReconciled: _changed(_reconciled),
    },
)
