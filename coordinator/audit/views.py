"""All views folded anew from nothing, and compared with the stored rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from coordinator.audit.spilled import Spill, SpilledMap
from coordinator.audit.violation import Violation
from events.envelope import Envelope
from projections.registry import PROJECTIONS
from projections.replay import Stored, as_stored, fold

_encode = msgspec.json.Encoder().encode


class RebuiltViews:
    """The rows that follow from the events read so far."""

    def __init__(self, spill: Spill) -> None:
        self._tables: dict[str, SpilledMap[Any]] = {
            projection.name: SpilledMap(spill, "view " + projection.name, _encode, projection.decode)
            for projection in PROJECTIONS
        }

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._tables)

    def read(self, envelope: Envelope) -> Iterator[Violation]:
        try:
            fold(envelope, self._tables)
        except Exception as error:  # whatever a broken log makes of a fold
            problem = f"the event cannot be folded: {type(error).__name__}: {error}"
            yield Violation(rule="fold", position=envelope.position, problem=problem)

    def rows(self, view: str) -> Iterator[tuple[str, Stored]]:
        """What the rows of a view should be, by key."""
        for key, row in self._tables[view].items():
            yield key, as_stored(view, row)


def differences(
    view: str, expected: Iterator[tuple[str, Stored]], stored: Iterator[tuple[str, Stored]]
) -> Iterator[Violation]:
    """Both by key in binary order: what differs."""
    ours, theirs = next(expected, None), next(stored, None)
    while ours is not None or theirs is not None:
        if theirs is None or (ours is not None and ours[0].encode() < theirs[0].encode()):
            yield _violation(f"{view} lacks the row {_named(ours)}")
            ours = next(expected, None)
        elif ours is None or theirs[0].encode() < ours[0].encode():
            yield _violation(f"{view} has a row {_named(theirs)} that no event accounts for")
            theirs = next(stored, None)
        else:
            if ours[1] != theirs[1]:
                yield _violation(f"{view} has another row {_named(ours)} than the log says")
            ours, theirs = next(expected, None), next(stored, None)


def _named(entry: tuple[str, Stored] | None) -> str:
    return "" if entry is None else repr(entry[0])


def _violation(problem: str) -> Violation:
    return Violation(rule="views", position=None, problem=problem)
