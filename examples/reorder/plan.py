"""What to buy: pure arithmetic over the stock history."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, sqrt
from pathlib import Path
from statistics import pstdev
from typing import Annotated

from msgspec import Meta, Struct

from examples.reorder.warehouse import Day, History, opened, pull

SAFETY = 1.65
"""Standard deviations of a week's demand that are kept in reserve: enough for 95 of 100 weeks."""


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person asks for: enough of all that `supplier` sells for so many weeks."""

    supplier: Annotated[str, Meta(min_length=1, max_length=100)]
    weeks: Annotated[int, Meta(ge=1, le=52)]


class Line(Struct, frozen=True, kw_only=True):
    """One product in an order, in whole packs."""

    product: int
    packs: int
    units: int
    cents: int


class Plan(Struct, frozen=True, kw_only=True):
    """What should be ordered; without lines nothing is needed."""

    supplier: str
    weeks: int
    lines: tuple[Line, ...]

    @property
    def units(self) -> int:
        return sum(line.units for line in self.lines)

    @property
    def cents(self) -> int:
        return sum(line.cents for line in self.lines)


def preview(database: Path, arguments: Arguments) -> Plan:
    """The plan as the history has it now. Nothing is written; an unknown supplier is refused, as `pull` does it."""
    with opened(database) as connection:
        return plan_order(arguments, pull(connection, arguments.supplier))


def plan_order(arguments: Arguments, histories: Iterable[History]) -> Plan:
    """A line for each product that will run out."""
    lines = [line for history in histories if (line := plan_line(history, arguments.weeks)) is not None]
    return Plan(supplier=arguments.supplier, weeks=arguments.weeks, lines=tuple(lines))


def plan_line(history: History, weeks: int) -> Line | None:
    """Mean demand for so many weeks and a reserve, less what lies on the shelf, in whole packs."""
    sold = weekly(history.days)
    if not sold:
        return None
    # Whole numbers, as 7.000000000000001 packs would be eight.
    demand = -(-sum(sold) * weeks // len(sold))
    reserve = ceil(SAFETY * pstdev(sold) * sqrt(weeks))
    missing = demand + reserve - history.days[-1].on_hand
    if missing <= 0:
        return None
    product = history.product
    packs = -(-missing // product.pack)
    return Line(product=product.product, packs=packs, units=packs * product.pack, cents=packs * product.pack_cents)


def weekly(days: tuple[Day, ...]) -> list[int]:
    """What was sold in each whole week, counted back from the last day; days before the first are left out."""
    first = len(days) % 7
    return [sum(day.sold for day in days[start : start + 7]) for start in range(first, len(days), 7)]
