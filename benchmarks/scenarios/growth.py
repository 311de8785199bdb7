"""A claim in a long log against one in a short log."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from pathlib import Path
from statistics import median

from benchmarks.logs import finished, waiting_ids
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import Agent, Coordinator

LONG = 1_000_000
_SHORT = 10_000


def log_of(bench: Bench, events: int) -> Path:
    """A log of so many events (by scale), which other scenarios use too: leave its jobs as they are."""
    events = bench.scaled(events)
    return bench.built(f"log-{events}.db", lambda path: finished(path, events))


async def _claims(short: Path, long: Path, short_ids: list[str], long_ids: list[str], seconds: float) -> list[float]:
    """Median ms of a claim in both logs, taken in turns so that both meet the same weather."""
    took: tuple[list[float], list[float]] = [], []
    async with Coordinator.open(short) as one, Coordinator.open(long) as other:
        until = time.perf_counter() + seconds
        for ids in zip(short_ids, long_ids, strict=False):
            for coordinator, id, times in zip((one, other), ids, took, strict=True):
                times.append(await _claim(coordinator, coordinator.agent("ada"), id))
            if time.perf_counter() > until:
                break
    return [median(times) * 1_000 for times in took]


async def _claim(coordinator: Coordinator, agent: Agent, id: str) -> float:
    """Seconds to claim a job that was added long ago; it is ready again afterwards."""
    job = await coordinator.job(id)
    began = time.perf_counter()
    claim = await agent.claim(job)
    took = time.perf_counter() - began
    await claim.release()
    return took


def _sample(bench: Bench) -> Sample:
    long = log_of(bench, LONG)
    long_ids = waiting_ids(bench.scaled(LONG))
    short_ids = waiting_ids(bench.scaled(_SHORT))
    random.shuffle(long_ids)
    random.shuffle(short_ids)
    with bench.scratch() as folder:
        short = Path(shutil.copy(log_of(bench, _SHORT), folder / "short.db"))
        in_short, in_long = asyncio.run(_claims(short, long, short_ids, long_ids, bench.seconds))
    return {"ratio": in_long / in_short, "long_ms": in_long, "short_ms": in_short}


GROWTH = Scenario(
    name="growth",
    title="A claim in a long log",
    how="Median time of `agent.claim` by one agent, for jobs that were added all over the log and that this process"
    " has not touched before; one in the short log, one in the long one, in turns.",
    figures=(
        Figure("ratio", f"median claim with {LONG:,} events in the log against {_SHORT:,}", "times", at_most=1.3),
        Figure("long_ms", f"median claim, {LONG:,} events", "ms"),
        Figure("short_ms", f"median claim, {_SHORT:,} events", "ms"),
    ),
    sample=_sample,
)
