"""What a projection is: for each type of event, a pure function to the rows that it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from events.envelope import Envelope

Row = TypeVar("Row", bound=msgspec.Struct)

Get = Callable[[str], Row | None]
"""Gives the row that stands under a key now."""

Changes = Sequence[tuple[str, Row | None]]
"""Keys with their new rows; None removes one. All are there before the first takes effect."""

Fold = Callable[[Any, Envelope, Get[Row]], Changes[Row]]
"""A pure function of one event, its envelope and the rows before it."""


SEPARATOR = "\x1f"
"""Between the parts of a key: no id and no name can hold a control character."""


def keys_of(first: str) -> tuple[str, str]:
    """The lowest of the keys of more than one part that begin with this part, and the first key behind them."""
    return first + SEPARATOR, first + chr(ord(SEPARATOR) + 1)


@dataclass(frozen=True, slots=True)
class Projection(Generic[Row]):
    """Keyed rows that are folded from events.

    Attributes:
        name: the view under which the rows are stored.
        row: the type of its rows.
        place: bucket and rank of a row, by which it is scanned.
        folds: what to do with which type of event; others pass by.
        ranged: rows are looked for by ranges of keys, so that it pays to remember all of them while they are few.
    """

    name: str
    row: type[Row]
    place: Callable[[Row], tuple[str, int]]
    folds: Mapping[type, Fold[Row]]
    ranged: bool = False
    decode: Callable[[str | bytes], Row] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decode", msgspec.json.Decoder(self.row).decode)
