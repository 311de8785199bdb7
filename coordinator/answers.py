"""What a caller is told, derived from its command's events and from nothing else that could change.

The same code answers the first time and on a retry, so a repeated receipt gets the old answer also when the world has
moved on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from msgspec import Raw, Struct

from coordinator.jobs import Job, JobRef, job_as_claimed
from coordinator.messages import Message
from coordinator.tokens import Token, derive
from events.envelope import Envelope
from events.jobs import (
    AttemptEnded,
    JobAccepted,
    JobCancelled,
    JobClaimed,
    JobDefined,
    JobNoted,
    JobRejected,
    JobRenewed,
    JobReopened,
    JobReserved,
)
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.operations import OperationEvent, OperationQueued, OperationRenewed
from events.union import AnyEvent

T = TypeVar("T")


class ClaimGranted(Struct, frozen=True):
    """A claim: what a handle is made of. Times are µs of log time."""

    job: Job
    attempt: int
    fence: int
    lease_us: int
    lease_until: int
    paths: tuple[str, ...]
    token: Token


class LeaseRenewed(Struct, frozen=True):
    lease_us: int
    lease_until: int


class NoteTaken(Struct, frozen=True):
    position: int


class PathsReserved(Struct, frozen=True):
    paths: tuple[str, ...]


class MessageNumbered(Struct, frozen=True):
    number: int


class SessionOpened(Struct, frozen=True):
    """A reader's session, which begins behind the acknowledged message."""

    session: int
    acknowledged: int
    token: Token


class PageDelivered(Struct, frozen=True):
    messages: tuple[Message, ...]


class MessagesKept(Struct, frozen=True):
    number: int


class AttemptQueued(Struct, frozen=True):
    """An approved attempt of an operation: what its runner is given. Times are µs of log time."""

    operation: str
    kind: str
    arguments: Raw
    plan: Raw
    attempt: int
    fence: int
    lease_us: int
    lease_until: int
    token: Token


class OperationLeft(Struct, frozen=True):
    """An operation as a write left it."""

    operation: str
    attempt: int
    position: int


class LogReader(Protocol):
    """What an answer may read of the log."""

    def event_at(self, position: int) -> AnyEvent: ...

    def messages(self, topic: str, first: int, last: int) -> tuple[Message, ...]: ...


_LEAVES = (JobDefined, AttemptEnded, JobCancelled, JobAccepted, JobRejected, JobReopened)
"""The events after which a job has another version and state."""

Answer = (
    ClaimGranted
    | LeaseRenewed
    | NoteTaken
    | PathsReserved
    | JobRef
    | MessageNumbered
    | SessionOpened
    | PageDelivered
    | MessagesKept
    | AttemptQueued
    | OperationLeft
)


def answer(envelopes: Sequence[Envelope], *, key: bytes, log: LogReader) -> Answer:
    """The answer to the command that caused these events.

    Args:
        envelopes: all events of the command, in order; at least one.
        key: the workspace's secret, from which a granted token is derived again.
        log: for bodies that the events point to.
    """
    first = envelopes[0]
    match first.event:
        case JobClaimed() as event:
            return ClaimGranted(
                job=job_as_claimed(event, position=first.position, at=first.at, event_at=log.event_at),
                attempt=event.attempt,
                fence=first.position,
                lease_us=event.lease_us,
                lease_until=event.lease_until,
                paths=event.paths,
                token=derive(key, event.nonce, event.token_digest, fence=first.position),
            )
        case JobRenewed() as event:
            return LeaseRenewed(event.lease_us, event.lease_until)
        case JobNoted():
            return NoteTaken(first.position)
        case JobReserved() as event:
            return PathsReserved(event.paths)
        case MessageSent() as event:
            return MessageNumbered(event.number)
        case ReaderOpened() as event:
            token = derive(key, event.nonce, event.token_digest, fence=first.position)
            return SessionOpened(event.session, event.acknowledged, token)
        case MessagesDelivered() as event:
            return PageDelivered(log.messages(event.topic, event.first, event.last))
        case MessagesAcknowledged() as event:
            return MessagesKept(event.number)
        case OperationQueued() as event:
            return AttemptQueued(
                operation=event.operation,
                kind=event.kind,
                arguments=event.arguments,
                plan=event.plan,
                attempt=event.attempt,
                fence=first.position,
                lease_us=event.lease_us,
                lease_until=event.lease_until,
                token=derive(key, event.nonce, event.token_digest, fence=first.position),
            )
        case OperationRenewed() as event:
            return LeaseRenewed(event.lease_us, event.lease_until)
        case OperationEvent() as event:
            return OperationLeft(event.operation, event.attempt, first.position)
        case _:
            return _job_left(envelopes)


def expect(type_: type[T], answer: object) -> T:
    """The answer, which the command that was asked can only have answered in this way."""
    if not isinstance(answer, type_):
        raise LookupError(f"the answer is a {type(answer).__name__}, not a {type_.__name__}")
    return answer


def _job_left(envelopes: Sequence[Envelope]) -> JobRef:
    """The job as the last of the command's events about it left it."""
    first = envelopes[0].event
    for envelope in reversed(envelopes):
        event = envelope.event
        if isinstance(event, _LEAVES) and (event is first or event.stream == first.stream):
            return JobRef(id=event.job, state=event.state, version=event.version, position=envelope.position)
    raise LookupError(f"the command at {envelopes[0].position} left no job")
