"""Facts about commands themselves."""

from __future__ import annotations

from msgspec import Raw

from events.base import Event


class CommandRefused(Event, frozen=True, kw_only=True, tag="command.refused"):
    """A decision said no. Nothing else changed."""

    command: str
    code: str
    subject: str
    values: Raw
    receipt_digest: str  # SHA-256 of the receipt: the receipt itself stays free to be used
    left_out: int = 0  # refusals of this actor that were not recorded since the last recorded one

    @property
    def stream(self) -> str:
        return self.subject
