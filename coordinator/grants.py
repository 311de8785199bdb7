"""The approvals that previews have handed out, in this process's memory and nowhere else."""

from __future__ import annotations

import secrets
from hashlib import sha256

from msgspec import Struct

from coordinator.approval import Approval
from coordinator.clock import Clock

EXPIRES_US = 120_000_000

_MOST = 1_000  # when more are handed out, or they come to more than this, the oldest are forgotten
_MOST_BYTES = 32 * 1024 * 1024

UNKNOWN = Approval(worth="unknown")
_EXPIRED = Approval(worth="expired")
_MISMATCH = Approval(worth="mismatch")


class Terms(Struct, frozen=True, kw_only=True):
    """What a grant fits exactly, besides the attempt."""

    operation: str
    operator: str
    kind: str
    arguments: bytes


class _Handed(Struct, frozen=True):
    terms: Terms
    approval: Approval
    wall_until: int
    boot_until: int


class Grants:
    """A grant is good for two minutes, by the wall clock or by the one that counts suspend, whichever is over first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._handed: dict[str, _Handed] = {}  # by the grant's digest, the oldest first
        self._bytes = 0

    def hand_out(self, terms: Terms, approval: Approval) -> tuple[str, int]:
        """A new grant, and when it expires in µs of the wall clock."""
        secret = "grant-" + secrets.token_urlsafe(32)
        until = self._clock.wall() + EXPIRES_US
        self._handed[grant_digest(secret)] = _Handed(terms, approval, until, self._clock.boot() + EXPIRES_US)
        self._bytes += _size(terms, approval)
        while len(self._handed) > 1 and (len(self._handed) > _MOST or self._bytes > _MOST_BYTES):
            oldest = self._handed.pop(next(iter(self._handed)))
            self._bytes -= _size(oldest.terms, oldest.approval)
        return secret, until

    def worth(self, digest: str, terms: Terms) -> Approval:
        """What a grant is worth to whoever asks on these terms."""
        handed = self._handed.get(digest)
        if handed is None:
            return UNKNOWN
        if handed.terms != terms:
            return _MISMATCH
        if self._clock.wall() >= handed.wall_until or self._clock.boot() >= handed.boot_until:
            return _EXPIRED
        return handed.approval


def _size(terms: Terms, approval: Approval) -> int:
    return len(terms.arguments) + len(bytes(approval.plan))


def grant_digest(secret: str) -> str:
    """What the log keeps of a grant."""
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()
