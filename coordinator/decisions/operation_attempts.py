"""What the runner of an operation's attempt may record, for as long as its token holds."""

from __future__ import annotations

from coordinator.commands import (
    AttemptCommand,
    FailOperation,
    RecordProgress,
    RenewOperation,
    StartOperation,
    StopOperation,
    SucceedOperation,
)
from coordinator.decisions.lookup import hold
from coordinator.decisions.moment import Moment
from coordinator.views import Views
from events.operations import (
    OperationFailed,
    OperationLapsed,
    OperationProgressed,
    OperationRenewed,
    OperationStarted,
    OperationStopped,
    OperationSucceeded,
)
from events.streams import name_in
from events.union import AnyEvent
from projections.leases import LeaseRow


def start_operation(command: StartOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    attempt = _held(command, views, moment).attempt
    return [OperationStarted(operation=command.operation, attempt=attempt)]


def record_progress(command: RecordProgress, views: Views, moment: Moment) -> list[AnyEvent]:
    attempt = _held(command, views, moment).attempt
    return [OperationProgressed(operation=command.operation, attempt=attempt, progress=command.progress)]


def renew_operation(command: RenewOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    lease = _held(command, views, moment)
    return [
        OperationRenewed(
            operation=command.operation,
            attempt=lease.attempt,
            lease_us=lease.lease_us,
            lease_until=moment.now + lease.lease_us,
        )
    ]


def succeed_operation(command: SucceedOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    attempt = _held(command, views, moment).attempt
    return [
        OperationSucceeded(
            operation=command.operation, attempt=attempt, result=command.result, artifacts=command.artifacts
        )
    ]


def fail_operation(command: FailOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    attempt = _held(command, views, moment).attempt
    return [
        OperationFailed(
            operation=command.operation,
            attempt=attempt,
            reason=command.reason,
            stderr=command.stderr,
        )
    ]


def stop_operation(command: StopOperation, views: Views, moment: Moment) -> list[AnyEvent]:
    attempt = _held(command, views, moment).attempt
    return [
        OperationStopped(
            operation=command.operation,
            attempt=attempt,
            reason=command.reason,
            stderr=command.stderr,
        )
    ]


def lapse_operation(lease: LeaseRow) -> OperationLapsed:
    """The event for an attempt's lease that is due."""
    operation = name_in(lease.subject)
    return OperationLapsed(operation=operation, attempt=lease.attempt, lease_until=lease.lease_until)


def _held(command: AttemptCommand, views: Views, moment: Moment) -> LeaseRow:
    return hold(command.subject, command.token_digest, views, moment)
