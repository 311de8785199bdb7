"""What the rules of the audit have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from coordinator.auditing.spilled import Spill, SpilledMap
from coordinator.auditing.violation import Violation
from events.envelope import Envelope

S = TypeVar("S", bound=msgspec.Struct)

_encode = msgspec.json.Encoder().encode

Reading = Callable[[Any, Envelope], None]
"""Reads one event of a certain type, which is that of the envelope."""


class Rule(Protocol):
    """Reads one event after another, and tells `Findings` what cannot be."""

    @property
    def readings(self) -> Mapping[Any, Callable[[Any, Envelope], None]]:
        """What is to be called for each type of event; the others are nothing to this rule."""
        ...


class Findings:
    """What was found since it was last taken."""

    def __init__(self) -> None:
        self._found: list[Violation] = []

    def add(self, rule: str, position: int | None, problem: str) -> None:
        self._found.append(Violation(rule=rule, position=position, problem=problem))

    def tell_of(self, position: int) -> bool:
        """Whether something was found at the position that was read last."""
        return bool(self._found) and self._found[-1].position == position

    def take(self) -> list[Violation]:
        found, self._found = self._found, []
        return found


def readings_of(rules: Iterable[Rule]) -> dict[type[Any], tuple[Reading, ...]]:
    """For each type of event all that is to be called, in the order of the rules."""
    found: dict[type[Any], tuple[Reading, ...]] = {}
    for rule in rules:
        for type_, reading in rule.readings.items():
            found[type_] = (*found.get(type_, ()), reading)
    return found


def spilled(spill: Spill, name: str, type_: type[S]) -> SpilledMap[S]:
    """A map of structs. Whoever changes one must set it again."""
    return SpilledMap(spill, name, lambda value: ("", 0, _encode(value).decode()), msgspec.json.Decoder(type_).decode)


class Holding(msgspec.Struct, gc=False):
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


def broken_lease(envelope: Envelope, lease_us: int, lease_until: int) -> str | None:
    """Why a lease cannot have been given like this; None if it can."""
    if lease_until == envelope.at + lease_us:
        return None
    return f"a lease of {lease_us} µs that was given at {envelope.at} does not end at {lease_until}"


def broken_lapse(holding: Holding | None, envelope: Envelope, attempt: int, lease_until: int) -> str | None:
    """Why no lease can have run out like this; None if one has."""
    if holding is None or (attempt, lease_until) != (holding.attempt, holding.lease_until):
        return f"no lease of attempt {attempt} ended at {lease_until}"
    if envelope.at < lease_until:
        return f"the lease of attempt {attempt} had not run out yet"
    return None
