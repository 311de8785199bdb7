"""The "no" of decisions about operations."""

from __future__ import annotations

from coordinator.refusals import Refused


class OperationUnknown(Refused):
    """There is no such operation of this agent."""

    code = "operation_unknown"
    hint = "an operation answers only the agent that applied it"

    def __init__(self, operation: str) -> None:
        super().__init__(f"this agent has no operation {operation!r}", operation=operation)


class OperationBound(Refused):
    """The id belongs to another operation: of somebody else, of another kind, or with other arguments."""

    code = "operation_bound"
    hint = "preview again, under a new id"

    def __init__(self, operation: str) -> None:
        super().__init__(f"operation {operation!r} is bound to something else", operation=operation)


class ApprovalUnknown(Refused):
    """No preview of this process has handed the grant out, or so long ago that it is forgotten."""

    code = "approval_unknown"
    hint = "preview again, and have the new plan approved"

    def __init__(self, operation: str) -> None:
        super().__init__(f"operation {operation!r}: this grant is not known here", operation=operation)


class ApprovalExpired(Refused):
    """The grant was good for a short time, and that is over."""

    code = "approval_expired"
    hint = "preview again, and have the new plan approved"

    def __init__(self, operation: str) -> None:
        super().__init__(f"operation {operation!r}: the approval has expired", operation=operation)


class ApprovalMismatch(Refused):
    """The grant was handed out for something else."""

    code = "approval_mismatch"
    hint = "preview again, and have the new plan approved"

    def __init__(self, operation: str, *, approved: int | None = None, attempt: int | None = None) -> None:
        message = f"operation {operation!r}: the approval is for something else"
        if approved is not None:
            message = f"operation {operation!r}: attempt {approved} was approved; the next one would be {attempt}"
        super().__init__(message, operation=operation, approved=approved, attempt=attempt)
        self.approved = approved
        self.attempt = attempt


class ReconcileFirst(Refused):
    """What the last attempt left in the world does not agree with the log: another one might do it twice."""

    code = "reconcile_first"
    hint = "look at the world, and say with reconcile() what that attempt has done"

    def __init__(self, operation: str, *, attempt: int, finding: str) -> None:
        message = f"operation {operation!r}, attempt {attempt}: {finding}"
        super().__init__(message, operation=operation, attempt=attempt, finding=finding)
        self.attempt = attempt
        self.finding = finding


class AttemptChanged(Refused):
    """Another attempt has begun since."""

    code = "attempt_changed"
    hint = "look at its status again"

    def __init__(self, operation: str, *, seen: int, current: int) -> None:
        message = f"operation {operation!r} is at attempt {current}, not {seen}"
        super().__init__(message, operation=operation, seen=seen, current=current)
        self.seen = seen
        self.current = current


class OperationLive(Refused):
    """Only an attempt that has ended without success can be reconciled."""

    code = "operation_live"
    hint = "wait for it to end; of one that has succeeded, put right in the world what does not agree"

    def __init__(self, operation: str, state: str) -> None:
        message = f"operation {operation!r} is {state}: there is nothing to reconcile in the log"
        super().__init__(message, operation=operation, state=state)
        self.state = state
