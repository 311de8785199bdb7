"""What is measured: a scenario takes samples, and its figures say what they should come to."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

Sample = dict[str, float]
"""One run of a scenario: what came out, by key."""

Unit = Literal["ratio", "times", "per_s", "ms", "MB", "rows", "count", "percent"]


class Figure(NamedTuple):
    """One number of each sample, whose median counts.

    Attributes:
        key: its name in the samples.
        what: what it says, for the tables.
        at_least, at_most: the target; None where the figure is for information only.
        aim: what would be better still.
    """

    key: str
    what: str
    unit: Unit
    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None


class Table(NamedTuple):
    """What cannot be measured and has to be said beside the figures."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One thing to measure.

    Attributes:
        name: of its file of results, and for `--only`.
        title: its heading.
        how: how it is measured, in sentences.
        sample: takes one sample; figures whose keys it leaves out count as skipped.
    """

    name: str
    title: str
    how: str
    figures: tuple[Figure, ...]
    sample: Callable[[Bench], Sample]
    beside: Table | None = None


@dataclass(kw_only=True)
class Bench:
    """What a scenario measures with.

    Attributes:
        seconds: how long one measurement lasts.
        scale: 1 for logs of the real size; less to try the scenario out.
        folder: on the disk that is measured; gone after the run.
        skipped: what could not be measured, and why.
        notes: what else happened.
    """

    seconds: float
    scale: float
    folder: Path
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def scaled(self, count: int) -> int:
        return max(round(count * self.scale), min(count, 100))

    def skip(self, reason: str) -> None:
        """Say that something can't be measured here."""
        if reason not in self.skipped:
            self.skipped.append(reason)
            print(f"  skipped: {reason}", file=sys.stderr)

    def note(self, remark: str) -> None:
        """Say what a reader of the figures should know."""
        if remark not in self.notes:
            self.notes.append(remark)
            print(f"  {remark}", file=sys.stderr)

    @contextmanager
    def scratch(self) -> Generator[Path]:
        """A folder for one sample."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            yield Path(folder)

    def built(self, name: str, build: Callable[[Path], None]) -> Path:
        """A file that is laborious to make, and so made once for all samples and scenarios."""
        path = self.folder / name
        if not path.exists():
            print(f"  building {name}", file=sys.stderr)
            build(path)
        return path
