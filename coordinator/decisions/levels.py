"""What a job must reach to get past a path: above every priority where the path is held, else above none or some."""

from __future__ import annotations

from bisect import bisect_right, insort

from coordinator.limits import PRIORITY_MAX, PRIORITY_MIN
from projections.path_keys import parents

HELD = PRIORITY_MAX + 1
_NOTHING = PRIORITY_MIN


class Levels:
    """The levels of all places. The highest of what was entered at a place is what counts there.

    A place is the key of a path, or that key and a slash, which means all that is beneath it. What is entered for
    `src/x` stands at `src/x`, beneath `src` and beneath the root.
    """

    def __init__(self) -> None:
        self._entered: dict[str, list[int]] = {}  # sorted

    def of(self, place: str) -> int:
        entered = self._entered.get(place)
        return entered[-1] if entered else _NOTHING

    def enter(self, key: str, level: int) -> None:
        for place in _places(key):
            insort(self._entered.setdefault(place, []), level)

    def leave(self, key: str, level: int) -> list[str]:
        """The places whose level may have fallen with that."""
        places = _places(key)
        for place in places:
            entered = self._entered[place]
            del entered[bisect_right(entered, level) - 1]
            if not entered:
                del self._entered[place]
        return places

    def in_the_way(self, keys: tuple[str, ...], priority: int) -> str | None:
        """A place that a job does not get past: one of its paths, a parent of one, or what is beneath one."""
        entered = self._entered
        for key in keys:
            for place in (*parents(key), key, key + "/"):
                if place in entered and entered[place][-1] > priority:
                    return place
        return None


def _places(key: str) -> list[str]:
    return [key, *(parent + "/" for parent in parents(key))]
