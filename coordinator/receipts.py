"""Receipts, the actor's idempotency keys, and fingerprints, which tell whether two requests are the same."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from coordinator import limits
from coordinator.errors import InvalidInput
from coordinator.randomness import unique_hex
from events.streams import escaped

_HASHED: Final = "%sha256-"  # no joined receipt can hold it: there, "%" is followed by "25" or "2F" only
_sorted_json: Final = msgspec.json.Encoder(order="sorted").encode


def generate(now_us: int, randomness: bytes | None = None) -> str:
    """A receipt nobody else has: the time in 14 hex digits, then 16 random ones, so that receipts sort by time."""
    return f"{now_us:014x}{unique_hex(8) if randomness is None else randomness.hex()}"


def receipt_for(*parts: str) -> str:
    """A receipt made of the caller's own ids: the same ids give the same receipt, other ids another one.

    `receipt_for("run-7", "parser", "claim")` is `run-7/parser/claim`. A "/" inside a part is written `%2F`, a "%"
    `%25`. What would be too long ends in a SHA-256 of the whole instead.
    """
    if not parts:
        raise InvalidInput("parts", "is empty", hint='pass the ids that make it yours: receipt_for(run, job, "claim")')
    checked = [limits.name(f"parts[{index}]", part) for index, part in enumerate(parts)]
    joined = "/".join(map(escaped, checked))
    data = joined.encode()
    if len(data) <= limits.NAME_BYTES:
        return joined
    ending = _HASHED + sha256(data).hexdigest()
    return data[: limits.NAME_BYTES - len(ending)].decode(errors="ignore") + ending


def fingerprint(command: msgspec.Struct) -> bytes:
    """SHA-256 over the command's type and all its fields, those at their default left out, keys sorted.

    msgspec leaves defaults out by identity, so a command may only have defaults of which there is one object each:
    None, UNSET, False and (). Payload fields are `msgspec.Raw` in canonical form.
    """
    return sha256(_sorted_json(command)).digest()
