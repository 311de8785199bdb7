"""Messages: numbered without gaps, handed out in order, acknowledged <= delivered <= last."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from coordinator.audit.rule import spilled
from coordinator.audit.spilled import Spill
from coordinator.audit.violation import Violation
from events.envelope import Envelope
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderEvent, ReaderOpened


class _Topic(msgspec.Struct, frozen=True):
    last: int


class _Reader(msgspec.Struct, frozen=True):
    session: int = 0
    holder: str = ""
    delivered: int = 0
    acknowledged: int = 0


class Messages:
    """What must hold for topics and readers."""

    def __init__(self, spill: Spill) -> None:
        self._topics = spilled(spill, "audit topics", _Topic)
        self._readers = spilled(spill, "audit readers", _Reader)

    def read(self, envelope: Envelope) -> Iterator[Violation]:
        event = envelope.event
        if isinstance(event, MessageSent):
            last = self._last(event.topic)
            if event.number != last + 1:
                yield _violation("numbers", envelope, f"message {event.number} of {event.topic!r} follows {last}")
            self._topics.set(event.topic, _Topic(event.number))
        elif isinstance(event, ReaderEvent):
            reader = self._readers.get(event.stream) or _Reader()
            problem = self._problem(event, reader, envelope)
            if problem is not None:
                yield _violation("positions", envelope, f"reader {event.reader!r} of {event.topic!r}: {problem}")
            self._readers.set(event.stream, _after(event, reader))

    def _problem(self, event: ReaderEvent, reader: _Reader, envelope: Envelope) -> str | None:
        if isinstance(event, ReaderOpened):
            if event.session != reader.session + 1:
                return f"session {event.session} follows {reader.session}"
            if event.acknowledged != reader.acknowledged:
                return f"it was opened behind {event.acknowledged}, but {reader.acknowledged} was acknowledged"
            return None
        if event.session != reader.session or envelope.actor != reader.holder:
            return f"session {reader.session} of {reader.holder!r} held it, not {event.session} of {envelope.actor!r}"
        if isinstance(event, MessagesDelivered):
            if event.first > event.last or event.last > self._last(event.topic):
                return f"messages {event.first} to {event.last} were handed out, of {self._last(event.topic)}"
            if event.first > reader.delivered + 1:
                return f"messages {reader.delivered + 1} to {event.first - 1} were skipped"
        if isinstance(event, MessagesAcknowledged) and not reader.acknowledged < event.number <= reader.delivered:
            return (
                f"{event.number} was acknowledged, with {reader.acknowledged} before and {reader.delivered} delivered"
            )
        return None

    def _last(self, topic: str) -> int:
        row = self._topics.get(topic)
        return 0 if row is None else row.last


def _after(event: ReaderEvent, reader: _Reader) -> _Reader:
    match event:
        case ReaderOpened():
            return replace(reader, session=event.session, holder=event.holder)
        case MessagesDelivered():
            return replace(reader, delivered=max(reader.delivered, event.last))
        case MessagesAcknowledged():
            return replace(reader, acknowledged=max(reader.acknowledged, event.number))
        case _:
            return reader


def _violation(rule: str, envelope: Envelope, problem: str) -> Violation:
    return Violation(rule=rule, position=envelope.position, problem=problem)
