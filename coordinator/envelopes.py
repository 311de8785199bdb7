"""Reading events back from the rows of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

import msgspec

from coordinator.errors import damaged
from coordinator.messages import Message, message_of
from coordinator.stores.interface import LogRow, Snapshot
from coordinator.views import Views
from events.codec import TAGS, decode, decode_message
from events.envelope import Envelope
from events.messages import MessageSent
from events.streams import topic_stream
from events.union import AnyEvent
from projections.marks import STEP, mark_key

_PAGE = 256


class reading:
    """Around all that reads what is stored: what cannot be decoded, or is no time, was not written by us.

    A class and not a generator, because each read pays for it.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, (msgspec.DecodeError, OverflowError)):
            raise damaged(error) from error


def envelope_of(row: LogRow) -> Envelope:
    """A stored row with its event decoded."""
    return Envelope(
        row.position,
        row.at,
        row.actor,
        row.origin,
        row.context,
        row.receipt,
        row.fingerprint,
        row.command,
        decode(row.body),
    )


def event_at(snapshot: Snapshot, position: int) -> AnyEvent:
    """The event at a position that is known to exist."""
    row = snapshot.event(position)
    if row is None:
        raise damaged(f"the log has no position {position}")
    return decode(row.body)


def events_of_command(snapshot: Snapshot, first: int) -> list[Envelope]:
    """All events of the command that begins at a position; they follow each other."""
    envelopes: list[Envelope] = []
    after = first - 1
    while True:
        page = snapshot.events(after=after, limit=_PAGE)
        for row in page:
            if row.command != first:
                return envelopes
            envelopes.append(envelope_of(row))
        if len(page) < _PAGE:
            return envelopes
        after = page[-1].position


class StoredLog:
    """What answers read of the log: events that are stored, and those of a batch in the making.

    Args:
        snapshot: the log as it is stored.
        views: rows as the batch leaves them.
        pending: the events of the batch, which begin behind the stored ones.
        known: events that need not be read again, by position.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        views: Views,
        pending: Sequence[Envelope] = (),
        known: Mapping[int, AnyEvent] | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._views = views
        self._pending = pending
        self._known: Mapping[int, AnyEvent] = known or {}

    def event_at(self, position: int) -> AnyEvent:
        """The event at a position that is known to exist."""
        if self._pending and 0 <= position - self._pending[0].position < len(self._pending):
            return self._pending[position - self._pending[0].position].event
        known = self._known.get(position)
        return event_at(self._snapshot, position) if known is None else known

    def messages(self, topic: str, first: int, last: int) -> tuple[Message, ...]:
        """The messages of a topic from one number to another, which are known to exist."""
        mark = self._views.marks.get(mark_key(topic, first))
        if mark is None:
            raise LookupError(f"topic {topic!r} has no mark for message {first}")
        passed = (first - 1) % STEP  # from the mark to the first that is wanted
        wanted = last - first + 1
        rows = self._snapshot.bodies(topic_stream(topic), _SENT, after=mark.position - 1, limit=passed + wanted)
        found = [message_of(decode_message(body), position, at, actor) for position, at, actor, body in rows[passed:]]
        for envelope in self._pending:
            event = envelope.event
            if len(found) == wanted:
                break
            if isinstance(event, MessageSent) and event.topic == topic and event.number >= first:
                found.append(message_of(event, envelope.position, envelope.at, envelope.actor))
        if len(found) != wanted:
            raise LookupError(f"topic {topic!r} has not all messages from {first} to {last}")
        return tuple(found)


_SENT = TAGS[MessageSent]
