"""Reading events back from the rows of the log."""

from __future__ import annotations

from types import TracebackType

import msgspec

from coordinator.errors import damaged
from coordinator.stores.interface import LogRow, Snapshot
from events.codec import decode
from events.envelope import Envelope
from events.union import AnyEvent

_PAGE = 256


class reading:
    """Around all that reads what is stored: whatever cannot be decoded was not written by us.

    A class and not a generator, because each read pays for it.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, msgspec.DecodeError):
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
