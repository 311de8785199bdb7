"""All views folded anew from nothing, and compared with the stored rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from coordinator.auditing.rule import Findings
from coordinator.auditing.spilled import Spill, SpilledMap
from coordinator.auditing.violation import Violation
from events.envelope import Envelope
from projections.registry import FOLDS, PROJECTIONS
from projections.replay import Stored, as_stored, fold


class RebuiltViews:
    """The rows that follow from the events read so far."""

    def __init__(self, spill: Spill, findings: Findings) -> None:
        self._findings = findings
        self._tables: dict[str, SpilledMap[Any]] = {
            projection.name: SpilledMap(
                spill, "view " + projection.name, partial(as_stored, projection.name), projection.decode
            )
            for projection in PROJECTIONS
        }
        self.readings = {type_: self._read for type_, folds in FOLDS.items() if folds}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._tables)

    def rows(self, view: str) -> Iterator[tuple[str, Stored]]:
        """What the rows of a view should be, by key."""
        return self._tables[view].entries() if view in self._tables else iter(())

    def _read(self, event: object, envelope: Envelope) -> None:
        try:
            fold(envelope, self._tables)
        except Exception as error:  # whatever a broken log makes of a fold
            if self._findings.tell_of(envelope.position):
                return  # a rule has said it better
            problem = f"the event cannot be folded: {type(error).__name__}: {error}"
            self._findings.add("fold", envelope.position, problem)


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
