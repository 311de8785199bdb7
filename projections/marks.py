"""Where in the log every 64th message of a topic stands, so that any message is found in a few steps."""

from __future__ import annotations

import msgspec

from events.envelope import Envelope
from events.messages import MessageSent
from projections.projection import SEPARATOR, Changes, Get, Projection

STEP = 64


class MarkRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    position: int


def mark_key(topic: str, number: int) -> str:
    """The key of the last mark at or before a message."""
    return f"{topic}{SEPARATOR}{(number - 1) // STEP}"


def place(row: MarkRow) -> tuple[str, int]:
    return "", 0


def _sent(event: MessageSent, envelope: Envelope, get: Get[MarkRow]) -> Changes[MarkRow]:
    if event.number % STEP != 1:
        return ()
    return ((mark_key(event.topic, event.number), MarkRow(position=envelope.position)),)


MARKS = Projection(name="marks", row=MarkRow, place=place, folds={MessageSent: _sent})
