"""The rows of the log themselves: nothing missing, nothing changed, time never back, every event readable."""

from __future__ import annotations

import msgspec

from coordinator.auditing.rule import Findings
from coordinator.envelopes import envelope_of
from coordinator.stores.interface import LogRow
from events.codec import chain, type_of
from events.envelope import Envelope


class Chain:
    """Reads rows in order.

    Args:
        workspace: stands before event 1.

    Attributes:
        position, digest: of the last row; the digest is None if that row could not be read.
    """

    def __init__(self, workspace: bytes, findings: Findings) -> None:
        self.position = 0
        self.digest: bytes | None = workspace
        self._findings = findings
        self._at = 0
        self._command = 0

    def read(self, row: LogRow) -> Envelope | None:
        """The event of a row, if it can be read."""
        self._place(row)
        try:
            envelope = envelope_of(row)
        except (msgspec.DecodeError, TypeError, ValueError) as error:
            self._findings.add("decode", row.position, f"the event cannot be read: {error}")
            return None
        self._columns(row, envelope)
        return envelope

    def skip(self, last: int) -> None:
        """The rows up to here cannot be read."""
        self.position, self.digest = last, None

    def _place(self, row: LogRow) -> None:
        if row.position != self.position + 1:
            missing = self.position + 1
            named = f"{missing}" if row.position == missing + 1 else f"{missing} to {row.position - 1}"
            self._findings.add("gapless", row.position, f"position {named} is missing")
        if self.digest is not None and chain(self.digest, row[:-1]) != row.digest:
            problem = "its digest does not follow from its columns and the digest before it"
            self._findings.add("chain", row.position, problem)
        if row.at < self._at:
            self._findings.add("time", row.position, "log time runs back")
        self.position, self.digest, self._at = row.position, row.digest, max(self._at, row.at)

    def _columns(self, row: LogRow, envelope: Envelope) -> None:
        event = envelope.event
        if row.stream != event.stream or row.type != type_of(event):
            problem = f"the columns say {row.type} of {row.stream}, the event {type_of(event)} of {event.stream}"
            self._findings.add("columns", row.position, problem)
        if (row.receipt is None) != (row.fingerprint is None):
            self._findings.add(
                "columns", row.position, "it has a receipt without a fingerprint, or the other way round"
            )
        if row.command != row.position and row.receipt is not None:
            self._findings.add("columns", row.position, "a receipt stands on an event that is not its command's first")
        if row.command not in (row.position, self._command):
            problem = f"it is of the command at {row.command}, and those of {self._command} were before it"
            self._findings.add("columns", row.position, problem)
        self._command = row.command
