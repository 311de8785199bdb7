"""As `given`, for operations: each helper makes one event or command with ordinary values."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw

from coordinator import commands
from coordinator.approval import Approval, Checked
from events import operations
from events.operations import OperationState, Reconciled
from events.union import AnyEvent
from tests.decisions.given import LEASE, UNTIL, token

FINDING = "there is a draft that nobody has recorded"
AGREES = Checked(attempt=1)
DISAGREES = Checked(attempt=1, disagreement=FINDING)

_ENDED: dict[str, Any] = {"operation": "order", "attempt": 1}


def grant(name: object) -> str:
    return f"digest of grant {name}"


def fresh(attempt: int = 1, *, plan: bytes = b'{"boxes":4}', lease_us: int = LEASE) -> Approval:
    return Approval(worth="fresh", attempt=attempt, plan=Raw(plan), plan_digest="digest of the plan", lease_us=lease_us)


def worthless(worth: Literal["unknown", "expired", "mismatch"]) -> Approval:
    return Approval(worth=worth)


# Events


def queued(operation: str = "order", by: str = "ada", *, attempt: int = 1, **fields: Any) -> operations.OperationQueued:
    values: dict[str, Any] = {
        "kind": "reorder",
        "arguments": Raw(b'{"weeks":4}'),
        "plan": Raw(b'{"boxes":4}'),
        "plan_digest": "digest of the plan",
        "grant_digest": grant(attempt),
        "nonce": f"nonce {attempt}",
        "token_digest": token(operation, attempt),
        "lease_us": LEASE,
        "lease_until": UNTIL,
        "first": None if attempt == 1 else 1,
        **fields,
    }
    return operations.OperationQueued(operation=operation, operator=by, attempt=attempt, **values)


def started(**fields: Any) -> AnyEvent:
    return operations.OperationStarted(**{**_ENDED, **fields})


def progressed(progress: bytes = b'{"rows":7}', **fields: Any) -> AnyEvent:
    return operations.OperationProgressed(progress=Raw(progress), **{**_ENDED, **fields})


def renewed(lease_until: int, **fields: Any) -> AnyEvent:
    return operations.OperationRenewed(**{**_ENDED, "lease_us": LEASE, "lease_until": lease_until, **fields})


def cancel_asked(**fields: Any) -> AnyEvent:
    return operations.OperationCancelAsked(**{**_ENDED, **fields})


def succeeded(result: bytes = b'{"order":17}', **fields: Any) -> AnyEvent:
    return operations.OperationSucceeded(result=Raw(result), **{**_ENDED, **fields})


def failed(**fields: Any) -> AnyEvent:
    return operations.OperationFailed(**{**_ENDED, "reason": "no luck", **fields})


def stopped(**fields: Any) -> AnyEvent:
    return operations.OperationStopped(**{**_ENDED, "reason": "cancelled", **fields})


def lapsed(**fields: Any) -> AnyEvent:
    return operations.OperationLapsed(**{**_ENDED, "lease_until": UNTIL, **fields})


def reconciled(finding: Reconciled, **fields: Any) -> AnyEvent:
    return operations.OperationReconciled(**{**_ENDED, "finding": finding, "note": "looked at the drafts", **fields})


ORDER: dict[OperationState, list[AnyEvent]] = {
    "queued": [queued()],
    "running": [queued(), started()],
    "succeeded": [queued(), started(), succeeded()],
    "failed": [queued(), started(), failed()],
    "stopped": [queued(), started(), stopped()],
    "interrupted": [queued(), started(), lapsed()],
}
"""The operation `order` of ada, whose first attempt came into this state by the grant 1."""


# Commands


def apply(
    operation: str = "order", shown: object = 1, *, kind: str = "reorder", arguments: bytes = b'{"weeks":4}'
) -> commands.ApplyOperation:
    return commands.ApplyOperation(operation=operation, kind=kind, arguments=Raw(arguments), grant_digest=grant(shown))


def cancel(operation: str = "order", reason: str | None = None) -> commands.CancelOperation:
    return commands.CancelOperation(operation=operation, reason=reason)


def reconcile(
    finding: Reconciled, operation: str = "order", *, attempt: int = 1, **fields: Any
) -> commands.ReconcileOperation:
    values = {"note": "looked at the drafts", **fields}
    return commands.ReconcileOperation(operation=operation, attempt=attempt, finding=finding, **values)


def start(operation: str = "order", attempt: int = 1) -> commands.StartOperation:
    return commands.StartOperation(operation=operation, token_digest=token(operation, attempt))


def tell(operation: str = "order", attempt: int = 1) -> commands.RecordProgress:
    return commands.RecordProgress(
        operation=operation, token_digest=token(operation, attempt), progress=Raw(b'{"rows":7}')
    )


def renew(operation: str = "order", attempt: int = 1) -> commands.RenewOperation:
    return commands.RenewOperation(operation=operation, token_digest=token(operation, attempt))


def succeed(operation: str = "order", attempt: int = 1, **fields: Any) -> commands.SucceedOperation:
    values: dict[str, Any] = {"result": Raw(b'{"order":17}'), **fields}
    return commands.SucceedOperation(operation=operation, token_digest=token(operation, attempt), **values)


def fail(operation: str = "order", attempt: int = 1, **fields: Any) -> commands.FailOperation:
    values = {"reason": "no luck", **fields}
    return commands.FailOperation(operation=operation, token_digest=token(operation, attempt), **values)


def stop(operation: str = "order", attempt: int = 1, **fields: Any) -> commands.StopOperation:
    values = {"reason": "cancelled", **fields}
    return commands.StopOperation(operation=operation, token_digest=token(operation, attempt), **values)
