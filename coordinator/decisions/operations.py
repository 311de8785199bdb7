"""Operations: an approved attempt is queued, cancelled, and afterwards reconciled with the world."""

from __future__ import annotations

from coordinator.commands import ApplyOperation, CancelOperation, OperationCommand, ReconcileOperation
from coordinator.decisions.moment import Moment
from coordinator.operation_refusals import (
    ApprovalExpired,
    ApprovalMismatch,
    ApprovalUnknown,
    AttemptChanged,
    OperationBound,
    OperationLive,
    OperationUnknown,
    ReconcileFirst,
)
from coordinator.views import Views
from events.operations import OperationCancelAsked, OperationQueued, OperationReconciled
from events.union import AnyEvent
from projections.grants import GrantRow
from projections.operations import LIVE, OperationRow


class CheckOutdated(Exception):
    """The world was compared with another attempt than the newest one: compare it again, and ask again."""


def apply_operation(command: ApplyOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    """The first that matches decides; no event means that the current status is the answer.

    Raises:
        CheckOutdated: how the last attempt left the world must be known first.
    """
    row = views.operations.get(command.operation)
    if row is not None and not _same(row, command, moment):
        raise OperationBound(command.operation)
    used = views.grants.get(command.grant_digest)
    if row is not None and (row.state == "succeeded" or _has_started(used, row) or row.state in LIVE):
        return []
    if used is not None:
        raise ApprovalMismatch(command.operation)  # whatever this process remembers of it
    attempt = 1 if row is None else row.attempt + 1
    approval = moment.approval
    if approval is None or approval.worth == "unknown":
        raise ApprovalUnknown(command.operation)
    if approval.worth == "expired":
        raise ApprovalExpired(command.operation)
    if approval.worth == "mismatch":
        raise ApprovalMismatch(command.operation)
    if approval.attempt != attempt:
        raise ApprovalMismatch(command.operation, approved=approval.attempt, attempt=attempt)
    if row is not None and row.reconciled is None:
        _refuse_disagreement(row, moment)
    nonce = moment.granted()
    return [
        OperationQueued(
            operation=command.operation,
            attempt=attempt,
            kind=command.kind,
            operator=moment.actor,
            arguments=command.arguments,
            plan=approval.plan,
            plan_digest=approval.plan_digest,
            grant_digest=command.grant_digest,
            nonce=nonce.value,
            token_digest=nonce.token_digest,
            lease_us=approval.lease_us,
            lease_until=moment.now + approval.lease_us,
            first=None if row is None else row.first,
        )
    ]


def cancel_operation(command: CancelOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    row = own_operation(command, views, moment)
    if row.state not in LIVE or row.cancel_asked is not None:
        return []
    return [OperationCancelAsked(operation=row.id, attempt=row.attempt, reason=command.reason)]


def reconcile_operation(command: ReconcileOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    row = own_operation(command, views, moment)
    if row.attempt != command.attempt:
        raise AttemptChanged(row.id, seen=command.attempt, current=row.attempt)
    if row.state in LIVE or row.state == "succeeded":
        raise OperationLive(row.id, row.state)
    return [
        OperationReconciled(
            operation=row.id, attempt=row.attempt, finding=command.finding, note=command.note, result=command.result
        )
    ]


def own_operation(command: OperationCommand, views: Views, moment: Moment) -> OperationRow:
    """The operation, which for anybody but its operator does not exist."""
    row = views.operations.get(command.operation)
    if row is None or row.operator != moment.actor:
        raise OperationUnknown(command.operation)
    return row


def _same(row: OperationRow, command: ApplyOperation, moment: Moment) -> bool:
    return row.operator == moment.actor and row.fits(command.kind, bytes(command.arguments))


def _has_started(used: GrantRow | None, row: OperationRow) -> bool:
    return used is not None and used.operation == row.id


def _refuse_disagreement(row: OperationRow, moment: Moment) -> None:
    checked = moment.checked
    if checked is None or checked.attempt != row.attempt:
        raise CheckOutdated
    if checked.disagreement is not None:
        raise ReconcileFirst(row.id, attempt=row.attempt, finding=checked.disagreement)
