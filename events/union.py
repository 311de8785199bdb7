"""All events there are."""

from __future__ import annotations

from events.commands import CommandRefused
from events.jobs import (
    JobAccepted,
    JobAdded,
    JobBlocked,
    JobCancelled,
    JobClaimed,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobRejected,
    JobReleased,
    JobRenewed,
    JobReopened,
    JobReserved,
    JobRevised,
    JobRevoked,
    JobSubmitted,
    JobUnblocked,
)
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.operations import (
    OperationCancelAsked,
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

AnyEvent = (
    JobAdded
    | JobRevised
    | JobClaimed
    | JobRenewed
    | JobNoted
    | JobReserved
    | JobSubmitted
    | JobFailed
    | JobReleased
    | JobLapsed
    | JobRevoked
    | JobCancelled
    | JobAccepted
    | JobRejected
    | JobReopened
    | JobUnblocked
    | JobBlocked
    | MessageSent
    | ReaderOpened
    | MessagesDelivered
    | MessagesAcknowledged
    | OperationQueued
    | OperationStarted
    | OperationProgressed
    | OperationRenewed
    | OperationCancelAsked
    | OperationSucceeded
    | OperationFailed
    | OperationStopped
    | OperationLapsed
    | OperationReconciled
    | CommandRefused
)
