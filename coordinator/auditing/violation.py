"""Something in a log that cannot have come about by the rules."""

from __future__ import annotations

from msgspec import Struct


class Violation(Struct, frozen=True, kw_only=True):
    """One rule that does not hold at one place.

    Attributes:
        rule: a stable word for programs, such as `chain` or `guard`.
        position: of the event in the log; None for what concerns no single event.
        problem: what is wrong, in a sentence.
    """

    rule: str
    position: int | None
    problem: str
