"""One command on its way through the journey, and what became of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from msgspec import Struct

from coordinator.answers import Answer, ClaimGranted
from coordinator.approval import Approval, Checked
from coordinator.commands import AnyCommand, ReleaseJob
from coordinator.receipts import fingerprint
from coordinator.tokens import Nonce, Token


class Request(Struct, kw_only=True, eq=False):
    """One command with who asks and under which receipt.

    `generated` says that the caller gave no receipt, and one was made for this request. Until it is asked a second
    time, `fresh` says that nobody can have used that one before.
    `candidate` is what a search from a snapshot found for `ClaimNext`, `approval` and `checked` what the world says to
    `ApplyOperation`; they are no part of what was asked. `nonce` is drawn for it once, however often it is tried.
    """

    actor: str
    command: AnyCommand
    receipt: str
    generated: bool = False
    context: str | None = None
    candidate: str | None = None
    approval: Approval | None = None
    checked: Checked | None = None
    nonce: Nonce | None = None
    fresh: bool = False
    fingerprint: bytes = b""

    def __post_init__(self) -> None:
        self.fresh = self.generated
        self.fingerprint = fingerprint(self.command)

    def drew(self, token: Token) -> bool:
        """Whether the token was granted to this very request, and not to an earlier one with the same receipt.

        An answer that was in doubt, and looked up by its receipt, can be either.
        """
        return self.nonce is not None and self.nonce.token_digest == token.digest


class Outcome(Struct, frozen=True):
    """What became of one request.

    Attributes:
        answer: what it is told; None also for a command that changed nothing.
        error: why not.
        position: position of the command's first event, or of the record of its refusal.
        repeated: the receipt was known, and the answer is the old one.
    """

    answer: Answer | None = None
    error: Exception | None = None
    position: int | None = None
    repeated: bool = False


class Added(NamedTuple):
    """What one commit added to the log: events behind position `after`, up to `until`, in these streams."""

    after: int = 0
    until: int = 0
    streams: Collection[str] = ()


NOTHING_ADDED = Added()


class News(NamedTuple):
    """What a batch means to those who wait.

    Attributes:
        added: what it appended to the log; None if nobody knows.
        ticked: it was looked for due leases; None if it should have been, and the turn did not come.
    """

    added: Added | None = NOTHING_ADDED
    ticked: bool | None = False


NO_NEWS = News()


def undo_unheard(request: Request, outcome: Outcome) -> Request | None:
    """What gives back a claim whose caller has gone and does not know the receipt; None where nothing must be."""
    claim = outcome.answer
    if not request.generated or not isinstance(claim, ClaimGranted):
        return None
    release = ReleaseJob(job=claim.job.id, token_digest=claim.token.digest, reason="its caller had gone")
    return Request(actor=request.actor, command=release, receipt=f"{request.receipt}/unheard", context=request.context)
