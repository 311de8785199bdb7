"""Agents at work in one process: the full journey of one job after another, or messages."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from benchmarks import logs
from coordinator import Coordinator

BUSY_TIMEOUT_S = 60

_TEXT = "What one agent tells all others in a line or two, such as where it left what they wait for."


class Pace(NamedTuple):
    """How fast they went.

    Attributes:
        commands_per_s: commands answered.
        rows_a_commit: events that a commit wrote, on the average.
    """

    commands_per_s: float
    rows_a_commit: float


class Tally:
    """Counts the commands that are answered while the time lasts, so that nobody's end is counted as work."""

    def __init__(self, seconds: float) -> None:
        self._until = time.perf_counter() + seconds
        self.answered = 0
        self.going_on = True

    def count(self) -> None:
        self.going_on = time.perf_counter() < self._until
        self.answered += self.going_on


async def journeys(coordinator: Coordinator, name: str, tally: Tally) -> None:
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


async def sends(coordinator: Coordinator, name: str, tally: Tally) -> None:
    """One agent that sends messages to the topic of all, one after another."""
    sender = coordinator.agent(name)
    while tally.going_on:
        await sender.send(logs.TOPIC, {"from": name, "text": _TEXT})
        tally.count()


Work = Callable[[Coordinator, str, Tally], Awaitable[None]]


async def _work(
    path: Path, agents: int, seconds: float, work: Work, prefix: str, warm_s: float, start: Callable[[], None]
) -> float:
    async with Coordinator.open(path, busy_timeout_s=BUSY_TIMEOUT_S) as coordinator:
        if warm_s:
            await work(coordinator, f"{prefix}warm", Tally(warm_s))
        start()
        tally = Tally(seconds)
        names = [f"{prefix}agent-{n}" for n in range(agents)]
        await asyncio.gather(*(work(coordinator, name, tally) for name in names))
    return tally.answered / seconds


def commands_per_second(
    path: Path,
    agents: int,
    seconds: float,
    *,
    work: Work = journeys,
    prefix: str = "",
    warm_s: float = 0,
    start: Callable[[], None] = lambda: None,
) -> float:
    """Commands/s of so many agents in this process.

    Args:
        work: what each of them does.
        prefix: makes the names of this process's agents and jobs its own.
        warm_s: so long one more agent works before.
        start: called between the two.
    """
    return asyncio.run(_work(path, agents, seconds, work, prefix, warm_s, start))


def pace(path: Path, agents: int, seconds: float, work: Work = journeys) -> Pace:
    """The same in a new workspace, and how many events a commit wrote there."""
    commands = commands_per_second(path, agents, seconds, work=work)
    return Pace(commands, _rows_a_commit(path))


def _rows_a_commit(path: Path) -> float:
    """All events of one commit have one time, and no two commits have the same."""
    with closing(sqlite3.connect(path)) as connection:
        events, commits = connection.execute("SELECT count(*), count(DISTINCT at) FROM events").fetchone()
    return events / commits
