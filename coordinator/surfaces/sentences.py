"""The log in words: one sentence for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from coordinator.clock import to_datetime
from coordinator.payloads import decode
from events.commands import CommandRefused
from events.envelope import Envelope
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
    AnyOperationEvent,
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
from events.union import AnyEvent


class Line(NamedTuple):
    """One line of a timeline. `actor` is None for what the store found out itself."""

    position: int
    at: datetime
    actor: str | None
    subject: str
    sentence: str


def timeline(envelopes: Iterable[Envelope]) -> Iterator[Line]:
    """A line for each event; those of one subject must come from its beginning, for who held it."""
    holders: dict[str, str] = {}
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, JobClaimed):
            holders[event.stream] = event.worker
        yield Line(
            position=envelope.position,
            at=to_datetime(envelope.at),
            actor=envelope.actor,
            subject=event.stream.removeprefix("job/"),
            sentence=sentence(event, holders.get(event.stream, "its worker")) + _beside(envelope),
        )


def sentence(event: AnyEvent, holder: str) -> str:
    """What happened.

    Args:
        holder: who made the latest claim on the event's subject.
    """
    match event:
        case JobAdded():
            return f"added; it is {event.state}"
        case JobRevised():
            return f"revised; it is {event.state}"
        case JobClaimed():
            return f"claimed it, attempt {event.attempt}, for {event.lease_us / 1_000_000:g} s"
        case JobRenewed():
            return f"renewed attempt {event.attempt} for {event.lease_us / 1_000_000:g} s"
        case JobNoted():
            return "left a note"
        case JobReserved():
            return "reserved " + ", ".join(event.added)
        case JobSubmitted():
            return f"submitted the result of attempt {event.attempt}"
        case JobFailed():
            return f"gave attempt {event.attempt} up: {event.reason}"
        case JobReleased():
            return f"released attempt {event.attempt}" + _because(event.reason)
        case JobLapsed():
            return f"attempt {event.attempt} lapsed: {holder} did not renew it"
        case JobRevoked():
            return f"revoked attempt {event.attempt} of {holder}: {event.reason}"
        case JobCancelled():
            return "cancelled" + _because(event.reason)
        case JobAccepted():
            return f"accepted attempt {event.attempt}"
        case JobRejected():
            return f"rejected attempt {event.attempt}: {event.reason}"
        case JobReopened():
            return f"reopened; it is {event.state}"
        case JobUnblocked():
            return f"ready, as {event.by} was accepted"
        case JobBlocked():
            return f"blocked, as {event.by} was reopened"
        case MessageSent():
            return f"sent message {event.number}" + ("" if event.under is None else f", working on {event.under}")
        case ReaderOpened():
            return f"opened session {event.session}, behind message {event.acknowledged}"
        case MessagesDelivered():
            return f"was handed messages {event.first} to {event.last}"
        case MessagesAcknowledged():
            return f"acknowledged up to message {event.number}"
        case CommandRefused():
            return _refusal(event)
        case _:
            return _of_operation(event)


def _of_operation(event: AnyOperationEvent) -> str:
    match event:
        case OperationQueued():
            return f"approved attempt {event.attempt} of {event.kind}"
        case OperationStarted():
            return f"attempt {event.attempt} started"
        case OperationProgressed():
            return f"attempt {event.attempt} goes on"
        case OperationRenewed():
            return f"renewed attempt {event.attempt} for {event.lease_us / 1_000_000:g} s"
        case OperationCancelAsked():
            return f"asked for attempt {event.attempt} to stop" + _because(event.reason)
        case OperationSucceeded():
            return f"attempt {event.attempt} succeeded"
        case OperationFailed():
            return f"attempt {event.attempt} failed: {event.reason}"
        case OperationStopped():
            return f"attempt {event.attempt} was stopped: {event.reason}"
        case OperationLapsed():
            return f"attempt {event.attempt} was interrupted: nobody renewed it"
        case OperationReconciled():
            return f"found that attempt {event.attempt} was {event.finding}: {event.note}"


def _beside(envelope: Envelope) -> str:
    return "" if envelope.context is None else f" [{envelope.context}]"


def _because(reason: str | None) -> str:
    return "" if reason is None else f": {reason}"


def _refusal(event: CommandRefused) -> str:
    values = decode(event.values)
    if event.code == "token_superseded":
        attempt, current, holder = values.get("attempt"), values.get("current"), values.get("holder")
        why = f"this is attempt {attempt}'s token; attempt {current} is {holder}'s"
    else:
        why = event.code
    return f"{event.command} was refused: {why}"
