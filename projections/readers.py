"""One row a reader: its two positions. Who holds its session is in the leases."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from events.envelope import Envelope
from events.messages import MessagesAcknowledged, MessagesDelivered, ReaderOpened
from projections.projection import SEPARATOR, Changes, Get, Projection, keys_of


class ReaderRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`acknowledged` <= `delivered` <= the topic's last message, always."""

    topic: str
    reader: str
    delivered: int = 0
    acknowledged: int = 0


def reader_key(topic: str, reader: str) -> str:
    return topic + SEPARATOR + reader


def readers_range(topic: str) -> tuple[str, str]:
    """The lowest key of the readers of a topic, and the first key behind them."""
    return keys_of(topic)


def place(row: ReaderRow) -> tuple[str, int]:
    return "", 0


def _opened(event: ReaderOpened, envelope: Envelope, get: Get[ReaderRow]) -> Changes[ReaderRow]:
    key = reader_key(event.topic, event.reader)
    return () if get(key) is not None else ((key, ReaderRow(topic=event.topic, reader=event.reader)),)


def _delivered(event: MessagesDelivered, envelope: Envelope, get: Get[ReaderRow]) -> Changes[ReaderRow]:
    key = reader_key(event.topic, event.reader)
    row = get(key)
    if row is None or event.last <= row.delivered:
        return ()
    return ((key, replace(row, delivered=event.last)),)


def _acknowledged(event: MessagesAcknowledged, envelope: Envelope, get: Get[ReaderRow]) -> Changes[ReaderRow]:
    key = reader_key(event.topic, event.reader)
    row = get(key)
    return () if row is None else ((key, replace(row, acknowledged=event.number)),)


READERS = Projection(
    name="readers",
    row=ReaderRow,
    place=place,
    folds={ReaderOpened: _opened, MessagesDelivered: _delivered, MessagesAcknowledged: _acknowledged},
)
