"""The line of those who wait for the turn: bytes in the turn's file, by which each knows whether it is next.

They are only hints, and keep nobody out for long: see `Turn`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

PLACES: Final = 256
"""More than there are processes, so that they seldom share one. It does no harm if they do."""

HEADER: Final = 2
SIZE: Final = HEADER + PLACES
WAITING: Final = 1


@dataclass(frozen=True, slots=True)
class Line:
    """The line at some moment. It goes round: behind the last place comes the first.

    Attributes:
        last: the place of whoever has given the turn back last.
        turns: counts how often that one has.
        places: a byte for each place, WAITING where somebody waits.
    """

    last: int
    turns: int
    places: bytes

    @classmethod
    def read(cls, found: bytes) -> Line:
        """The file is shorter than the line while nobody has waited at its end."""
        found = found.ljust(SIZE, b"\0")
        return cls(found[0], found[1], found[HEADER:])

    def waits_at(self, place: int) -> bool:
        return self.places[place] == WAITING

    def ahead_of(self, place: int) -> int:
        """How many come before whoever waits at `place`."""
        if self.last < place:
            return self.places.count(WAITING, self.last + 1, place)
        return self.places.count(WAITING, self.last + 1) + self.places.count(WAITING, 0, place)

    def waiting_before(self, place: int) -> list[int]:
        """The places of those who come before whoever waits at `place`."""
        if self.last < place:
            before = range(self.last + 1, place)
        else:
            before = (*range(self.last + 1, PLACES), *range(place))
        return [other for other in before if self.waits_at(other)]

    def moved_since(self, earlier: Line) -> bool:
        """Whether the turn was given back meanwhile."""
        return (self.last, self.turns) != (earlier.last, earlier.turns)

    def draw_place(self) -> int:
        """One where nobody waits."""
        return random.choice([place for place in range(PLACES) if not self.waits_at(place)] or [0])
