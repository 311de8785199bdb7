"""What the rules of the audit have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

import msgspec

from coordinator.audit.spilled import Spill, SpilledMap
from coordinator.audit.violation import Violation
from events.envelope import Envelope

S = TypeVar("S", bound=msgspec.Struct)

_encode = msgspec.json.Encoder().encode


class Rule(Protocol):
    """Reads one event after another, and says what cannot be."""

    def read(self, envelope: Envelope) -> Iterator[Violation]: ...


def spilled(spill: Spill, name: str, type_: type[S]) -> SpilledMap[S]:
    """A map of structs."""
    return SpilledMap(spill, name, _encode, msgspec.json.Decoder(type_).decode)


class Holding(msgspec.Struct):
    """Who holds a lease, as far as the log was read."""

    actor: str
    attempt: int
    lease_until: int


def broken_guard(holding: Holding | None, envelope: Envelope, attempt: int) -> str | None:
    """Why a write that must show a live token cannot have shown one; None if it can."""
    if holding is None:
        return "nobody held it"
    if envelope.actor != holding.actor:
        return f"{holding.actor!r} held it, not {envelope.actor!r}"
    if attempt != holding.attempt:
        return f"attempt {holding.attempt} held it, not {attempt}"
    if envelope.at >= holding.lease_until:
        return f"the lease of attempt {attempt} had run out"
    return None
