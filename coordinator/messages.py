"""Messages, topics and readers as callers see them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from msgspec import Raw, Struct

from coordinator.clock import to_datetime
from coordinator.errors import damaged
from coordinator.payloads import JsonValue, decode, decode_as
from events.messages import MessageSent

T = TypeVar("T")


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One entry of a topic.

    Attributes:
        topic: the topic's name.
        number: 1, 2, 3 … within the topic, without gaps.
        sender: the actor that sent it.
        position: of its event in the log.
    """

    topic: str
    number: int
    sender: str
    position: int
    _at: int
    _body: Raw

    def __repr__(self) -> str:
        return f"Message(topic={self.topic!r}, number={self.number}, sender={self.sender!r}, at={self.at!r})"

    @property
    def at(self) -> datetime:
        """When it was sent, in log time."""
        return to_datetime(self._at)

    @property
    def body(self) -> Mapping[str, JsonValue]:
        """What was sent."""
        return decode(self._body)

    def body_as(self, type_: type[T]) -> T:
        """The body as a dataclass, a msgspec struct, a typed dict or a pydantic model.

        Raises:
            InvalidInput: it does not fit; the message names where.
        """
        return decode_as(self._body, type_, "body")


def message_of(event: MessageSent, position: int, at: int, actor: str | None) -> Message:
    """A message as its event and the log tell it."""
    if actor is None:
        raise damaged(f"message {event.number} of {event.topic!r} has no sender")
    return Message(topic=event.topic, number=event.number, sender=actor, position=position, _at=at, _body=event.body)


class Topic(Struct, frozen=True, kw_only=True, gc=False):
    """A topic that somebody has sent to.

    Attributes:
        name: its name.
        last: number of its last message; so many there are.
        sent_at: when that was sent.
    """

    name: str
    last: int
    sent_at: datetime


class ReaderPositions(Struct, frozen=True, kw_only=True, gc=False):
    """Where a reader stands in its topic.

    Attributes:
        topic: the topic's name.
        name: the reader's name.
        last: number of the topic's last message.
        delivered: the last message that was handed out to this reader.
        acknowledged: the last message that it has said it kept.
        holder: the actor that opened the latest session.
        session: number of that session.
    """

    topic: str
    name: str
    last: int
    delivered: int
    acknowledged: int
    holder: str
    session: int

    @property
    def unread(self) -> int:
        """How many messages it has not acknowledged."""
        return self.last - self.acknowledged
