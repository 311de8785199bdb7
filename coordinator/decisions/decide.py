"""Which rule decides which command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordinator.commands import (
    AcceptJob,
    AcknowledgeMessages,
    AddJob,
    AnyCommand,
    ApplyOperation,
    CancelJob,
    CancelOperation,
    ClaimJob,
    ClaimNext,
    FailJob,
    FailOperation,
    NoteProgress,
    OpenReader,
    ReadMessages,
    ReconcileOperation,
    RecordProgress,
    RejectJob,
    ReleaseJob,
    RenewClaim,
    RenewOperation,
    ReopenJob,
    ReservePaths,
    ReviseJob,
    RevokeClaim,
    SendMessage,
    StartOperation,
    StopOperation,
    SubmitJob,
    SucceedOperation,
)
from coordinator.decisions.attempts import (
    fail_job,
    note_progress,
    release_job,
    renew_claim,
    reserve_paths,
    revoke_claim,
    submit_job,
)
from coordinator.decisions.claims import claim_job, claim_next
from coordinator.decisions.jobs import add_job, cancel_job, reopen_job, revise_job
from coordinator.decisions.messages import acknowledge_messages, open_reader, read_messages, send_message
from coordinator.decisions.moment import Moment
from coordinator.decisions.operation_attempts import (
    fail_operation,
    record_progress,
    renew_operation,
    start_operation,
    stop_operation,
    succeed_operation,
)
from coordinator.decisions.operations import apply_operation, cancel_operation, reconcile_operation
from coordinator.decisions.reviews import accept_job, reject_job
from coordinator.views import Views
from events.union import AnyEvent

Decision = Callable[[Any, Views, Moment], list[AnyEvent]]

DECISIONS: dict[type[AnyCommand], Decision] = {
    AddJob: add_job,
    ReviseJob: revise_job,
    CancelJob: cancel_job,
    ReopenJob: reopen_job,
    ClaimJob: claim_job,
    ClaimNext: claim_next,
    RenewClaim: renew_claim,
    NoteProgress: note_progress,
    ReservePaths: reserve_paths,
    SubmitJob: submit_job,
    FailJob: fail_job,
    ReleaseJob: release_job,
    RevokeClaim: revoke_claim,
    AcceptJob: accept_job,
    RejectJob: reject_job,
    SendMessage: send_message,
    OpenReader: open_reader,
    ReadMessages: read_messages,
    AcknowledgeMessages: acknowledge_messages,
    ApplyOperation: apply_operation,
    CancelOperation: cancel_operation,
    ReconcileOperation: reconcile_operation,
    StartOperation: start_operation,
    RecordProgress: record_progress,
    RenewOperation: renew_operation,
    SucceedOperation: succeed_operation,
    FailOperation: fail_operation,
    StopOperation: stop_operation,
}

GRANTS: frozenset[type[AnyCommand]] = frozenset({ClaimJob, ClaimNext, OpenReader, ApplyOperation})
"""The commands that need a nonce, because they grant a token."""


def decide(command: AnyCommand, views: Views, moment: Moment) -> list[AnyEvent]:
    """The events that this command causes; none if it changes nothing.

    Raises:
        Refused: the rules say no.
        LookDeeper: see `claim_next`.
        CheckOutdated: see `apply_operation`.
    """
    return DECISIONS[type(command)](command, views, moment)
