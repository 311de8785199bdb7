"""Operations: no grant starts two attempts, no two attempts are live at once, every write is inside its lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from coordinator.auditing.rule import Findings, Holding, broken_guard, broken_lapse, broken_lease, spilled
from coordinator.auditing.spilled import Spill
from events.envelope import Envelope
from events.operations import (
    OperationCancelAsked,
    OperationEvent,
    OperationFailed,
    OperationLapsed,
    OperationProgressed,
    OperationQueued,
    OperationReconciled,
    OperationRenewed,
    OperationStarted,
    OperationStopped,
    OperationSucceeded,
)


class _Grant(msgspec.Struct, gc=False):
    position: int


class _Operation(msgspec.Struct):
    operator: str
    kind: str
    arguments_digest: str
    attempt: int = 0
    holding: Holding | None = None
    succeeded: bool = False


class Operations:
    """What must hold for operations."""

    def __init__(self, spill: Spill, findings: Findings) -> None:
        self._findings = findings
        self._operations = spilled(spill, "audit operations", _Operation)
        self._grants = spilled(spill, "audit grants", _Grant)
        self.readings = {
            OperationQueued: self._queued,
            OperationStarted: self._known(self._guarded),
            OperationProgressed: self._known(self._guarded),
            OperationRenewed: self._known(self._renewed),
            OperationSucceeded: self._known(self._ended),
            OperationFailed: self._known(self._ended),
            OperationStopped: self._known(self._ended),
            OperationLapsed: self._known(self._lapsed),
            OperationCancelAsked: self._known(self._cancel_asked),
            OperationReconciled: self._known(self._reconciled),
        }

    def _queued(self, event: OperationQueued, envelope: Envelope) -> None:
        used = self._grants.get(event.grant_digest)
        if used is not None:
            self._broken("grant", event, envelope, f"its grant has started an attempt at position {used.position}")
        bound = event.operator, event.kind, event.arguments_digest
        operation = self._operations.get(event.operation) or _Operation(*bound)
        if event.operator != envelope.actor:
            self._broken("operator", event, envelope, f"{envelope.actor!r} queued it for {event.operator!r}")
        if bound != (operation.operator, operation.kind, operation.arguments_digest):
            self._broken("operator", event, envelope, "it was bound to another operator, kind or other arguments")
        if operation.holding is not None:
            self._broken("one attempt", event, envelope, f"attempt {operation.attempt} was still live")
        if operation.succeeded:
            self._broken("one attempt", event, envelope, f"attempt {operation.attempt} had succeeded")
        if event.attempt != operation.attempt + 1:
            self._broken("attempt", event, envelope, f"it follows attempt {operation.attempt}")
        if (why := broken_lease(envelope, event.lease_us, event.lease_until)) is not None:
            self._broken("lease", event, envelope, why)
        self._grants.set(event.grant_digest, _Grant(envelope.position))
        operation.attempt = event.attempt
        operation.holding = Holding(event.operator, event.attempt, event.lease_until)
        self._operations.set(event.operation, operation)

    def _known(self, read: Callable[[Any, Envelope, _Operation], None]) -> Callable[[OperationEvent, Envelope], None]:
        """Reads an event of an operation that exists, and keeps what the reading changed."""

        def read_known(event: OperationEvent, envelope: Envelope) -> None:
            operation = self._operations.get(event.operation)
            if operation is None:
                self._broken("operation", event, envelope, "it was never queued")
                return
            read(event, envelope, operation)
            self._operations.set(event.operation, operation)

        return read_known

    def _guarded(self, event: OperationEvent, envelope: Envelope, operation: _Operation) -> None:
        if (why := broken_guard(operation.holding, envelope, event.attempt)) is not None:
            self._broken("guard", event, envelope, why)

    def _renewed(self, event: OperationRenewed, envelope: Envelope, operation: _Operation) -> None:
        self._guarded(event, envelope, operation)
        if (why := broken_lease(envelope, event.lease_us, event.lease_until)) is not None:
            self._broken("lease", event, envelope, why)
        if operation.holding is not None:
            operation.holding.lease_until = event.lease_until

    def _ended(self, event: OperationEvent, envelope: Envelope, operation: _Operation) -> None:
        self._guarded(event, envelope, operation)
        operation.holding = None
        operation.succeeded = isinstance(event, OperationSucceeded)

    def _lapsed(self, event: OperationLapsed, envelope: Envelope, operation: _Operation) -> None:
        if (why := broken_lapse(operation.holding, envelope, event.attempt, event.lease_until)) is not None:
            self._broken("lapse", event, envelope, why)
        operation.holding = None

    def _cancel_asked(self, event: OperationCancelAsked, envelope: Envelope, operation: _Operation) -> None:
        self._of_operator(event, envelope, operation)
        if operation.holding is None:
            self._broken("state", event, envelope, "nothing was live that could be cancelled")

    def _reconciled(self, event: OperationReconciled, envelope: Envelope, operation: _Operation) -> None:
        self._of_operator(event, envelope, operation)
        if operation.holding is not None or operation.succeeded:
            self._broken("state", event, envelope, "there was nothing to reconcile")
        operation.succeeded = event.finding == "done"

    def _of_operator(self, event: OperationEvent, envelope: Envelope, operation: _Operation) -> None:
        if envelope.actor != operation.operator:
            self._broken("operator", event, envelope, f"{envelope.actor!r} is not its operator")
        if event.attempt != operation.attempt:
            self._broken("attempt", event, envelope, f"attempt {operation.attempt} is the newest")

    def _broken(self, rule: str, event: OperationEvent, envelope: Envelope, problem: str) -> None:
        about = f"operation {event.operation!r}, attempt {event.attempt}"
        self._findings.add(rule, envelope.position, f"{about}: {problem}")
