"""Operations: no grant starts two attempts, no two attempts are live at once, every write is inside its lease."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from coordinator.audit.rule import Holding, broken_guard, spilled
from coordinator.audit.spilled import Spill
from coordinator.audit.violation import Violation
from events.envelope import Envelope
from events.operations import (
    OperationCancelAsked,
    OperationEvent,
    OperationFailed,
    OperationLapsed,
    OperationQueued,
    OperationReconciled,
    OperationRenewed,
    OperationStopped,
    OperationSucceeded,
)

_ENDS = (OperationSucceeded, OperationFailed, OperationStopped, OperationLapsed)


class _Grant(msgspec.Struct, frozen=True):
    position: int


class _Operation(msgspec.Struct, frozen=True):
    operator: str
    kind: str
    arguments_digest: str
    attempt: int
    holding: Holding | None = None
    succeeded: bool = False


class Operations:
    """What must hold for operations."""

    def __init__(self, spill: Spill) -> None:
        self._operations = spilled(spill, "audit operations", _Operation)
        self._grants = spilled(spill, "audit grants", _Grant)

    def read(self, envelope: Envelope) -> Iterator[Violation]:
        event = envelope.event
        if not isinstance(event, OperationEvent):
            return
        operation = self._operations.get(event.operation)
        if isinstance(event, OperationQueued):
            for rule, problem in self._queued(event, operation, envelope):
                yield _violation(rule, envelope, event, problem)
            self._grants.set(event.grant_digest, _Grant(envelope.position))
            holding = Holding(event.operator, event.attempt, event.lease_until)
            after = _Operation(event.operator, event.kind, event.arguments_digest, event.attempt, holding)
            self._operations.set(event.operation, after)
            return
        if operation is None:
            yield _violation("operation", envelope, event, "it was never queued")
            return
        problem = _problem(event, operation, envelope)
        if problem is not None:
            yield _violation("guard" if not isinstance(event, OperationLapsed) else "lapse", envelope, event, problem)
        self._operations.set(event.operation, _after(event, operation))

    def _queued(
        self, event: OperationQueued, operation: _Operation | None, envelope: Envelope
    ) -> Iterator[tuple[str, str]]:
        used = self._grants.get(event.grant_digest)
        if used is not None:
            yield "grant", f"its grant has started an attempt at position {used.position}"
        if event.operator != envelope.actor:
            yield "operator", f"{envelope.actor!r} queued it for {event.operator!r}"
        if operation is None:
            if event.attempt != 1:
                yield "attempt", f"it begins with attempt {event.attempt}"
            return
        if operation.holding is not None:
            yield "one attempt", f"attempt {operation.attempt} was still live"
        if operation.succeeded:
            yield "one attempt", f"attempt {operation.attempt} had succeeded"
        if event.attempt != operation.attempt + 1:
            yield "attempt", f"attempt {event.attempt} follows {operation.attempt}"
        before = operation.operator, operation.kind, operation.arguments_digest
        if before != (event.operator, event.kind, event.arguments_digest):
            yield "operator", "it was bound to another operator, kind or other arguments"


def _problem(event: OperationEvent, operation: _Operation, envelope: Envelope) -> str | None:
    match event:
        case OperationLapsed():
            holding = operation.holding
            if holding is None or event.lease_until != holding.lease_until or envelope.at < event.lease_until:
                return "it had no lease that ran out then"
            return None
        case OperationReconciled() | OperationCancelAsked():
            if envelope.actor != operation.operator:
                return f"{envelope.actor!r} is not its operator"
            live = operation.holding is not None
            if isinstance(event, OperationReconciled) and (live or operation.succeeded):
                return "there was nothing to reconcile"
            return None
        case _:
            return broken_guard(operation.holding, envelope, event.attempt)


def _after(event: OperationEvent, operation: _Operation) -> _Operation:
    match event:
        case OperationRenewed():
            if operation.holding is None:
                return operation
            holding = Holding(operation.operator, operation.holding.attempt, event.lease_until)
            return replace(operation, holding=holding)
        case OperationReconciled():
            return replace(operation, succeeded=event.finding == "done")
        case _ if isinstance(event, _ENDS):
            return replace(operation, holding=None, succeeded=isinstance(event, OperationSucceeded))
        case _:
            return operation


def _violation(rule: str, envelope: Envelope, event: OperationEvent, problem: str) -> Violation:
    return Violation(
        rule=rule,
        position=envelope.position,
        problem=f"operation {event.operation!r}, attempt {event.attempt}: {problem}",
    )
