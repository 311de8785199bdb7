"""What a decision is told besides the command and the rows."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from coordinator.approval import Approval, Checked
from coordinator.tokens import Nonce

T = TypeVar("T")


class Moment(Struct, frozen=True):
    """Who asks, and when. Everything that is not a rule comes in here.

    Attributes:
        actor: who asks.
        now: log time in µs UTC.
        nonce: a fresh nonce with the digest of its token; only for commands that grant a token.
        candidate: a job that a search outside the transaction found for `ClaimNext`; all guards still apply.
        approval: what the grant is worth that `ApplyOperation` shows.
        checked: how the attempt before it left the world.
    """

    actor: str
    now: int
    nonce: Nonce | None = None
    candidate: str | None = None
    approval: Approval | None = None
    checked: Checked | None = None

    def granted(self) -> Nonce:
        """The nonce of a command that grants a token."""
        if self.nonce is None:
            raise LookupError("this command was decided without a nonce")
        return self.nonce
