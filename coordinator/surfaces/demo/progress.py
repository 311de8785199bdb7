"""What people see while the demo runs, on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Progress(Protocol):
    def begin(self, jobs: int) -> None: ...

    def accepted(self, jobs: int) -> None:
        """So many are accepted by now."""
        ...

    def say(self, text: str) -> None: ...


class PlainProgress:
    def __init__(self) -> None:
        self._jobs = 0
        self._tenths = 0

    def begin(self, jobs: int) -> None:
        self._jobs = jobs

    def accepted(self, jobs: int) -> None:
        tenths = jobs * 10 // self._jobs
        if tenths > self._tenths:
            self._tenths = tenths
            self.say(f"{jobs} of {self._jobs} jobs accepted")

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class BarProgress:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task: TaskID | None = None

    def begin(self, jobs: int) -> None:
        self._task = self._bar.add_task("accepted", total=jobs)

    def accepted(self, jobs: int) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=jobs)

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress() -> Generator[Progress, None, None]:
    if not sys.stderr.isatty():
        yield PlainProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield BarProgress(bar)
