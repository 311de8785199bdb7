"""The audit: every row of the log is read, every rule said anew, every view folded anew and compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing

from msgspec import Struct

from coordinator.auditing.chain import Chain
from coordinator.auditing.jobs import Jobs
from coordinator.auditing.messages import Messages
from coordinator.auditing.operations import Operations
from coordinator.auditing.paths import Paths
from coordinator.auditing.rule import Findings, readings_of
from coordinator.auditing.spilled import Spill
from coordinator.auditing.views import RebuiltViews, differences
from coordinator.auditing.violation import Violation
from coordinator.stores.inspection import Inspection, Unreadable
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
            of = inspection.head().position
            at_end = not reading.page()
            yield from reading.found()
            progress(reading.position, max(of, reading.position))
            if at_end:
                break
            inspection.end()
        yield from reading.rest()


class _Reading:
    """How far the log was read, and by which rules."""

    def __init__(self, inspection: Inspection, spill: Spill, anchor: Anchor | None) -> None:
        self._inspection = inspection
        self._anchor = anchor
        self._findings = Findings()
        self._chain = Chain(inspection.workspace, self._findings)
        self._views = RebuiltViews(spill, self._findings)
        self._jobs = Jobs(spill, self._findings)
        rules = [self._jobs, Paths(self._findings), Messages(spill, self._findings), Operations(spill, self._findings)]
        self._readings = readings_of([*rules, self._views])
        self._command = 0
        if anchor is not None and anchor.position == 0:
            self._compare_anchor(inspection.workspace)

    @property
    def position(self) -> int:
        return self._chain.position

    def page(self) -> bool:
        """Read the next rows. False if there are no more."""
        rows = self._inspection.page(self.position, _PAGE)
        for row in rows:
            if isinstance(row, Unreadable):
                more = "" if row.last == row.first else f", and all up to {row.last}"
                self._findings.add("unreadable", row.first, f"the row cannot be read{more}: {row.why}")
                self._chain.skip(row.last)
            else:
                self._row(row)
        return bool(rows)

    def found(self) -> list[Violation]:
        return self._findings.take()

    def rest(self) -> Iterator[Violation]:
        """Within the same transaction as the last page: what concerns no single event."""
        self._jobs.command(0)
        self._compare_head()
        anchor = self._anchor
        if anchor is not None and anchor.position > self.position:
            problem = f"the log ends at {self.position}, before position {anchor.position}, where it was noted"
            self._findings.add("anchor", None, problem)
        yield from self.found()
        try:
            for actor, receipt, position in self._inspection.receipts_used_twice():
                problem = f"receipt {receipt!r} of {actor!r} was used before"
                yield Violation(rule="receipts", position=position, problem=problem)
            yield from self._compare_views()
        except Unreadable as error:
            yield Violation(rule="unreadable", position=None, problem=f"what follows from the log: {error.why}")
        for line in self._inspection.damage():
            yield Violation(rule="integrity", position=None, problem=line)

    def _row(self, row: LogRow) -> None:
        if row.command != self._command:
            self._jobs.command(row.command)
            self._command = row.command
        envelope = self._chain.read(row)
        if envelope is not None:
            event = envelope.event
            for read in self._readings.get(type(event), ()):
                read(event, envelope)
        if self._anchor is not None and row.position == self._anchor.position:
            self._compare_anchor(row.digest)

    def _compare_anchor(self, digest: bytes) -> None:
        if self._anchor is not None and digest.hex() != self._anchor.digest:
            problem = f"its digest is {digest.hex()}, and {self._anchor.digest} was noted"
            self._findings.add("anchor", self._anchor.position, problem)

    def _compare_head(self) -> None:
        head = self._inspection.head()
        if head.position != self.position:
            problem = f"the head says that the log ends at {head.position}, and it ends at {self.position}"
            self._findings.add("head", None, problem)
        elif self._chain.digest not in (None, head.digest):
            self._findings.add("head", None, "the head has another digest than the last event")

    def _compare_views(self) -> Iterator[Violation]:
        folds = self._inspection.head().folds
        if folds != FOLDS_VERSION and self.position:
            if folds > FOLDS_VERSION:
                problem = f"folds of version {folds} made the views, newer than our {FOLDS_VERSION}: not compared"
                yield Violation(rule="views", position=None, problem=problem)
            return  # older ones are made anew when the workspace is opened
        for view in sorted({*self._views.names, *self._inspection.views()}):
            yield from differences(view, self._views.rows(view), self._inspection.rows(view))
