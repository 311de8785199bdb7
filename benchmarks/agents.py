"""Agents at work in one process: the full journey of one job after another."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from coordinator import Coordinator

BUSY_TIMEOUT_S = 60


class Pace(NamedTuple):
    """How fast they went.

    Attributes:
        commands_per_s: commands answered.
        rows_a_commit: events that a commit wrote, on the average.
    """

    commands_per_s: float
    rows_a_commit: float


class _Tally:
    """Counts the commands that are answered while the time lasts, so that nobody's end is counted as work."""

    def __init__(self, seconds: float) -> None:
        self._until = time.perf_counter() + seconds
        self.answered = 0
        self.going_on = True

    def count(self) -> None:
        self.going_on = time.perf_counter() < self._until
        self.answered += self.going_on


async def _journeys(coordinator: Coordinator, name: str, tally: _Tally) -> None:
    """One agent and its reviewer, on jobs of their own, one after another."""
    worker, reviewer = coordinator.agent(name), coordinator.agent(f"{name}-reviewer")
    jobs = 0
    while tally.going_on:
        id = f"{name}/{jobs}"
        job = await worker.add_job(id, {"task": "parse", "file": id}, paths=[f"src/{id}/module.py"])
        tally.count()
        claim = await worker.claim(job)
        tally.count()
        await claim.note({"progress": 0.5})
        tally.count()
        job = await claim.submit({"lines": 12})
        tally.count()
        await reviewer.accept(job)
        tally.count()
        jobs += 1


async def _work(
    path: Path, agents: int, seconds: float, prefix: str, warm_s: float, start: Callable[[], None]
) -> float:
    async with Coordinator.open(path, busy_timeout_s=BUSY_TIMEOUT_S) as coordinator:
        if warm_s:
            await _journeys(coordinator, f"{prefix}warm", _Tally(warm_s))
        start()
        tally = _Tally(seconds)
        names = [f"{prefix}agent-{n}" for n in range(agents)]
        await asyncio.gather(*(_journeys(coordinator, name, tally) for name in names))
    return tally.answered / seconds


def commands_per_second(
    path: Path,
    agents: int,
    seconds: float,
    *,
    prefix: str = "",
    warm_s: float = 0,
    start: Callable[[], None] = lambda: None,
) -> float:
    """Commands/s of so many agents in this process.

    Args:
        prefix: makes the names of this process's agents and jobs its own.
        warm_s: so long one more agent works before.
        start: called between the two.
    """
    return asyncio.run(_work(path, agents, seconds, prefix, warm_s, start))


def pace(path: Path, agents: int, seconds: float) -> Pace:
    """The same in a new workspace, and how many events a commit wrote there."""
    commands = commands_per_second(path, agents, seconds)
    return Pace(commands, _rows_a_commit(path))


def _rows_a_commit(path: Path) -> float:
    """All events of one commit have one time, and no two commits have the same."""
    with closing(sqlite3.connect(path)) as connection:
        events, commits = connection.execute("SELECT count(*), count(DISTINCT at) FROM events").fetchone()
    return events / commits
