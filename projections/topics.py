"""One row a topic: how many messages it has."""

from __future__ import annotations

import msgspec

from events.envelope import Envelope
from events.messages import MessageSent
from projections.projection import Changes, Get, Projection


class TopicRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`last` is the number of the last message, `sent_at` its log time in µs."""

    topic: str
    last: int
    sent_at: int


def place(row: TopicRow) -> tuple[str, int]:
    return "", 0


def _sent(event: MessageSent, envelope: Envelope, get: Get[TopicRow]) -> Changes[TopicRow]:
    return ((event.topic, TopicRow(topic=event.topic, last=event.number, sent_at=envelope.at)),)


TOPICS = Projection(name="topics", row=TopicRow, place=place, folds={MessageSent: _sent})
