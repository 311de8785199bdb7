"""Which lease a token belongs to, by the token's digest. Rows never change: old tokens must be recognised too."""

from __future__ import annotations

import msgspec

from events.envelope import Envelope
from events.jobs import JobClaimed
from projections.projection import Changes, Get, Projection


class TokenRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    subject: str
    actor: str
    attempt: int


def _claimed(event: JobClaimed, envelope: Envelope, get: Get[TokenRow]) -> Changes[TokenRow]:
    return ((event.token_digest, TokenRow(subject=event.stream, actor=event.worker, attempt=event.attempt)),)


def place(row: TokenRow) -> tuple[str, int]:
    return "", 0


TOKENS = Projection(name="tokens", row=TokenRow, place=place, folds={JobClaimed: _claimed})
