"""Tokens: the secret of one claim, and how it is drawn so that the log never holds it.

The log holds a nonce and the SHA-256 of the token. Whoever has the workspace key can make the token again from the
nonce, so a retry is given the original token; whoever has only the log learns nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec import Struct

from coordinator.errors import InvalidInput, Unavailable
from coordinator.limits import kind
from coordinator.randomness import unique_hex

if TYPE_CHECKING:
    from hashlib import _Hash as HASH  # pyright: ignore[reportPrivateUsage]

_BLOCK: Final = 64
_TEXT: Final = re.compile(r"([1-9][0-9]{0,18})-([0-9a-fA-F]{64})", re.ASCII)


class Token:
    """The 256-bit secret that every later write of a claim must show. Shows itself only through `reveal()`.

    Attributes:
        fence: log position of the event that granted it.
        digest: SHA-256 of the secret, in hex; the log holds it.
    """

    __slots__ = ("_secret", "digest", "fence")

    _secret: bytes
    digest: str
    fence: int

    def __init__(self, secret: bytes, fence: int) -> None:
        if type(secret) is not bytes or len(secret) != 32:
            raise ValueError("a token is made of 32 bytes")
        object.__setattr__(self, "_secret", secret)
        object.__setattr__(self, "fence", fence)
        object.__setattr__(self, "digest", sha256(secret).hexdigest())

    @classmethod
    def parse(cls, field: str, text: object) -> Token:
        """The token that `reveal()` wrote as `text`. A token is returned as it is."""
        if isinstance(text, Token):
            return text
        if not isinstance(text, str):
            raise InvalidInput(field, f"must be a token or its text, not {kind(text)}")
        found = _TEXT.fullmatch(text)
        if found is None:
            hint = "a token is a number, a hyphen and 64 hex digits, as reveal() writes it"
            raise InvalidInput(field, "is not a token", hint=hint)
        return cls(bytes.fromhex(found[2]), int(found[1]))

    def reveal(self) -> str:
        """The fence, a hyphen, and the secret itself in 64 hex digits. Keep it out of logs and messages."""
        return f"{self.fence}-{self._secret.hex()}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Token):
            return NotImplemented
        return compare_digest(self._secret, other._secret) and self.fence == other.fence

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return "Token(…)"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("a token cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a token cannot be changed")

    def __copy__(self) -> Token:
        return self

    def __deepcopy__(self, memo: Any) -> Token:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a token is not pickled by accident: use reveal() and Token.parse()")


class Nonce(Struct, frozen=True):
    """What the event of a new lease holds: enough to make its token again, for whoever has the key."""

    value: str
    token_digest: str


def draw(key: bytes, randomness: bytes | None = None) -> Nonce:
    """A new nonce and the digest of its token."""
    value = unique_hex(16) if randomness is None else randomness.hex()
    return Nonce(value, sha256(_secret(key, value)).hexdigest())


def derive(key: bytes, nonce: str, expected_digest: str, *, fence: int) -> Token:
    """The token of `nonce`, handed out only if it is the one whose digest the event at `fence` holds."""
    token = Token(_secret(key, nonce), fence)
    if not compare_digest(token.digest.encode(), expected_digest.encode()):
        raise Unavailable(
            "the workspace key does not fit this log: it makes another token than the one that was handed out",
            hint="restore the key that belongs to this log; until then its claims can only lapse",
        )
    return token


@lru_cache(maxsize=512)  # it is drawn for the event, and then for the answer
def _secret(key: bytes, nonce: str) -> bytes:
    """HMAC-SHA256, from hashes that have begun with the key: beginning anew each time takes longer than the rest."""
    begun_inner, begun_outer = _begun(key)
    inner, outer = begun_inner.copy(), begun_outer.copy()
    inner.update(nonce.encode())
    outer.update(inner.digest())
    return outer.digest()


@lru_cache(maxsize=8)
def _begun(key: bytes) -> tuple[HASH, HASH]:
    """SHA-256 over the key's inner and outer pad (RFC 2104); the key is shorter than a block."""
    padded = key.ljust(_BLOCK, b"\0")
    return sha256(bytes(byte ^ 0x36 for byte in padded)), sha256(bytes(byte ^ 0x5C for byte in padded))
