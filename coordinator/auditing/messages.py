"""Messages: numbered without gaps, handed out in order, acknowledged <= delivered <= last."""

from __future__ import annotations

import msgspec

from coordinator.auditing.rule import Findings, spilled
from coordinator.auditing.spilled import Spill
from events.envelope import Envelope
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderEvent, ReaderOpened


class _Topic(msgspec.Struct, gc=False):
    last: int = 0


class _Reader(msgspec.Struct, gc=False):
    session: int = 0
    holder: str = ""
    delivered: int = 0
    acknowledged: int = 0


class Messages:
    """What must hold for topics and readers."""

    def __init__(self, spill: Spill, findings: Findings) -> None:
        self._findings = findings
        self._topics = spilled(spill, "audit topics", _Topic)
        self._readers = spilled(spill, "audit readers", _Reader)
        self.readings = {
            MessageSent: self._sent,
            ReaderOpened: self._opened,
            MessagesDelivered: self._delivered,
            MessagesAcknowledged: self._acknowledged,
        }

    def _sent(self, event: MessageSent, envelope: Envelope) -> None:
        topic = self._topics.get(event.topic) or _Topic()
        if event.number != topic.last + 1:
            problem = f"message {event.number} of {event.topic!r} follows {topic.last}"
            self._findings.add("numbers", envelope.position, problem)
        topic.last = event.number
        self._topics.set(event.topic, topic)

    def _opened(self, event: ReaderOpened, envelope: Envelope) -> None:
        reader = self._reader(event)
        if event.session != reader.session + 1:
            self._broken(event, envelope, f"session {event.session} follows {reader.session}")
        if event.acknowledged != reader.acknowledged:
            problem = f"it was opened behind {event.acknowledged}, but {reader.acknowledged} was acknowledged"
            self._broken(event, envelope, problem)
        if event.holder != envelope.actor:
            self._broken(event, envelope, f"{envelope.actor!r} opened it for {event.holder!r}")
        reader.session, reader.holder = event.session, event.holder
        self._readers.set(event.stream, reader)

    def _delivered(self, event: MessagesDelivered, envelope: Envelope) -> None:
        reader = self._held(event, envelope)
        last = (self._topics.get(event.topic) or _Topic()).last
        if not 1 <= event.first <= event.last <= last:
            problem = f"messages {event.first} to {event.last} were handed out, of {last}"
            self._broken(event, envelope, problem)
        if event.first > reader.delivered + 1:
            problem = f"messages {reader.delivered + 1} to {event.first - 1} were skipped"
            self._broken(event, envelope, problem)
        reader.delivered = max(reader.delivered, event.last)
        self._readers.set(event.stream, reader)

    def _acknowledged(self, event: MessagesAcknowledged, envelope: Envelope) -> None:
        reader = self._held(event, envelope)
        if not reader.acknowledged < event.number <= reader.delivered:
            before = f"{reader.acknowledged} before and {reader.delivered} delivered"
            self._broken(event, envelope, f"{event.number} was acknowledged, with {before}")
        reader.acknowledged = max(reader.acknowledged, event.number)
        self._readers.set(event.stream, reader)

    def _held(self, event: ReaderEvent, envelope: Envelope) -> _Reader:
        reader = self._reader(event)
        if event.session != reader.session or envelope.actor != reader.holder:
            held = f"session {reader.session} of {reader.holder!r} held it"
            self._broken(event, envelope, f"{held}, not {event.session} of {envelope.actor!r}")
        return reader

    def _reader(self, event: ReaderEvent) -> _Reader:
        return self._readers.get(event.stream) or _Reader()

    def _broken(self, event: ReaderEvent, envelope: Envelope, problem: str) -> None:
        self._findings.add("positions", envelope.position, f"reader {event.reader!r} of {event.topic!r}: {problem}")
