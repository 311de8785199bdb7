"""One row a topic: how many messages it has."""

from __future__ import annotations

import msgspec

from events.envelope import Envelope
from events.messages import MessageSent
from projections.projection import Changes, Get, Projection


class TopicRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`last` is the number of the last message, `sent_at` its log time in µs; `largest` of all bodies, in bytes."""

    topic: str
    last: int
    sent_at: int
    largest: int


def place(row: TopicRow) -> tuple[str, int]:
    return "", 0


def _sent(event: MessageSent, envelope: Envelope, get: Get[TopicRow]) -> Changes[TopicRow]:
    before = get(event.topic)
    largest = max(len(bytes(event.body)), 0 if before is None else before.largest)
    return ((event.topic, TopicRow(topic=event.topic, last=event.number, sent_at=envelope.at, largest=largest)),)


TOPICS = Projection(name="topics", row=TopicRow, place=place, folds={MessageSent: _sent})
