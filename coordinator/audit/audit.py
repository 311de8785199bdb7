"""The audit: every row of the log is read, every rule said anew, every view folded anew and compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing

from msgspec import Struct

from coordinator.audit.chain import Chain
from coordinator.audit.jobs import Jobs
from coordinator.audit.messages import Messages
from coordinator.audit.operations import Operations
from coordinator.audit.paths import Paths
from coordinator.audit.rule import Rule
from coordinator.audit.spilled import Spill
from coordinator.audit.views import RebuiltViews, differences
from coordinator.audit.violation import Violation
from coordinator.stores.inspection import Inspection
from coordinator.stores.interface import LogRow
from projections.registry import FOLDS_VERSION

_PAGE = 1_000


class Anchor(Struct, frozen=True):
    """Where a log ended once, noted elsewhere: it catches a log that was cut off or written anew.

    Attributes:
        position: of the last event then.
        digest: its digest in hex.
    """

    position: int
    digest: str

    def __str__(self) -> str:
        return f"{self.position}:{self.digest}"


def audit(
    path: str | os.PathLike[str],
    *,
    anchor: Anchor | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Iterator[Violation]:
    """Everything in a workspace that cannot have come about by the rules; nothing if all holds. Never writes.

    It may be in use meanwhile: what is appended until the reading gets there is read too. Memory does not grow with
    the log.

    Args:
        path: the workspace's file, or a copy of it.
        anchor: where the log ended once.
        progress: called with the positions that were read, and how many there are.

    Raises:
        NotAWorkspace: the file is no workspace, or too damaged to tell.
        Unavailable: it cannot be reached.
    """
    with closing(Inspection(path)) as inspection, closing(Spill()) as spill:
        reading = _Reading(inspection, spill, anchor)
        while True:
            inspection.begin()  # a page each: a long read would keep the write-ahead log from being checkpointed
            head = inspection.head()
            last = head.position - reading.position <= _PAGE
            yield from reading.page()
            progress(reading.position, max(head.position, reading.position))
            if last or reading.at_end:
                break
            inspection.end()
        yield from reading.rest()


class _Reading:
    """How far the log was read, and by which rules."""

    def __init__(self, inspection: Inspection, spill: Spill, anchor: Anchor | None) -> None:
        self._inspection = inspection
        self._anchor = anchor
        self._anchored = False
        self._chain = Chain(inspection.workspace)
        self._views = RebuiltViews(spill)
        self._rules: list[Rule] = [Jobs(spill), Paths(), Messages(spill), Operations(spill), self._views]
        self.position = 0
        self.at_end = False

    def page(self) -> Iterator[Violation]:
        rows = self._inspection.page(self.position, _PAGE)
        self.at_end = len(rows) < _PAGE
        for row in rows:
            if isinstance(row, str):
                self.position += 1
                yield Violation(rule="unreadable", position=self.position, problem=f"the row cannot be read: {row}")
            else:
                yield from self._row(row)

    def rest(self) -> Iterator[Violation]:
        """Within the same transaction as the last page: what concerns no single event."""
        head = self._inspection.head()
        if (head.position, head.digest) != (self._chain.position, self._chain.digest):
            problem = f"the head says that the log ends at {head.position}, and it ends at {self._chain.position}"
            if head.position == self._chain.position:
                problem = "the head has another digest than the last event"
            yield Violation(rule="head", position=None, problem=problem)
        if self._anchor is not None and not self._anchored:
            problem = f"the log ends before position {self._anchor.position}, where it was noted"
            yield Violation(rule="anchor", position=None, problem=problem)
        for actor, receipt, position in self._inspection.receipts_used_twice():
            problem = f"receipt {receipt!r} of {actor!r} was used before"
            yield Violation(rule="receipts", position=position, problem=problem)
        if head.folds == FOLDS_VERSION or head.position == 0:
            yield from self._compare()
        else:
            problem = f"folds of version {head.folds} made the views, not {FOLDS_VERSION}: they are not compared"
            yield Violation(rule="views", position=None, problem=problem)
        for line in self._inspection.damage():
            yield Violation(rule="integrity", position=None, problem=line)

    def _row(self, row: LogRow) -> Iterator[Violation]:
        self.position = row.position
        for found in self._chain.read(row):
            if isinstance(found, Violation):
                yield found
            else:
                for rule in self._rules:
                    yield from rule.read(found)
        if self._anchor is not None and row.position == self._anchor.position:
            self._anchored = True
            if row.digest.hex() != self._anchor.digest:
                problem = f"its digest is {row.digest.hex()}, and {self._anchor.digest} was noted"
                yield Violation(rule="anchor", position=row.position, problem=problem)

    def _compare(self) -> Iterator[Violation]:
        for view in sorted({*self._views.names, *self._inspection.views()}):
            expected = self._views.rows(view) if view in self._views.names else iter(())
            yield from differences(view, expected, self._inspection.rows(view))
