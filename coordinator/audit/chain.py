"""The rows of the log themselves: nothing missing, nothing changed, time never back, every event readable."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from coordinator.audit.violation import Violation
from coordinator.envelopes import envelope_of
from coordinator.stores.interface import LogRow
from events.codec import chain, type_of
from events.envelope import Envelope


class Chain:
    """Reads rows in order.

    Args:
        workspace: stands before event 1.
    """

    def __init__(self, workspace: bytes) -> None:
        self.position = 0
        self.digest = workspace
        self._at = 0

    def read(self, row: LogRow) -> Iterator[Violation | Envelope]:
        """What is wrong with a row; and its event, if it can be read."""
        if row.position != self.position + 1:
            missing = (
                f"{self.position + 1}" if row.position == self.position + 2 else f"{self.position + 1} and following"
            )
            yield _violation("gapless", row, f"position {missing} is missing")
        if chain(self.digest, tuple(row)[:-1]) != row.digest:  # pyright: ignore[reportArgumentType]
            yield _violation("chain", row, "its digest does not follow from its columns and the digest before it")
        if row.at < self._at:
            yield _violation("time", row, "log time runs back")
        self.position, self.digest, self._at = row.position, row.digest, max(self._at, row.at)
        try:
            envelope = envelope_of(row)
        except (msgspec.DecodeError, TypeError, ValueError) as error:
            yield _violation("decode", row, f"the event cannot be read: {error}")
            return
        yield from _columns(row, envelope)
        yield envelope


def _columns(row: LogRow, envelope: Envelope) -> Iterator[Violation]:
    event = envelope.event
    if row.stream != event.stream or row.type != type_of(event):
        yield _violation("columns", row, f"the columns say {row.type} of {row.stream}, the event {type_of(event)}")
    first = row.command == row.position
    if row.command > row.position or (row.receipt is None) != (row.fingerprint is None):
        yield _violation("columns", row, "receipt, fingerprint and command do not fit together")
    elif not first and row.receipt is not None:
        yield _violation("columns", row, "a receipt stands on an event that is not its command's first")


def _violation(rule: str, row: LogRow, problem: str) -> Violation:
    return Violation(rule=rule, position=row.position, problem=problem)
