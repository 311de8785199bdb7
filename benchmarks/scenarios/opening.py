"""Opening a workspace and claiming in it, by the length of its log."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.apart import call_apart, memory_mb
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from benchmarks.scenarios.growth import LONG, log_of
from coordinator import Coordinator

_SHORT = 1_000
_TIMES = 15


def open_and_claim(path: str, times: int) -> dict[str, float]:
    """In a process of its own: ms from opening to the claim, and the memory that all of it took."""
    first = asyncio.run(_open_and_claim(path))
    took = [asyncio.run(_open_and_claim(path)) for _ in range(times)]
    return {"first_ms": first * 1_000, "ms": median(took) * 1_000, "memory_mb": memory_mb()}


async def _open_and_claim(path: str) -> float:
    began = time.perf_counter()
    async with Coordinator.open(path) as coordinator:
        claim = await coordinator.agent("ada").claim_next()
        took = time.perf_counter() - began
        assert claim is not None
        await claim.release()
    return took


def _sample(bench: Bench) -> Sample:
    long = log_of(bench, LONG)
    with bench.scratch() as folder:
        short = Path(shutil.copy(log_of(bench, _SHORT), folder / "short.db"))
        in_short: dict[str, Any] = call_apart(open_and_claim, path=str(short), times=_TIMES)
        in_long: dict[str, Any] = call_apart(open_and_claim, path=str(long), times=_TIMES)
    return {
        "ratio": in_long["ms"] / in_short["ms"],
        "long_ms": in_long["ms"],
        "short_ms": in_short["ms"],
        "long_mb": in_long["memory_mb"],
        "short_mb": in_short["memory_mb"],
        "long_first_ms": in_long["first_ms"],
        "short_first_ms": in_short["first_ms"],
    }


OPENING = Scenario(
    name="opening",
    title="Opening a long log",
    how=f"A new process opens the workspace and claims the next job; median of {_TIMES} openings, after one that loads"
    " the modules. The memory is the most that this process held at once.",
    figures=(
        Figure("ratio", f"opening and claiming, {LONG:,} events against {_SHORT:,}", "times", at_most=1.5),
        Figure("long_mb", f"memory of that process, {LONG:,} events", "MB", at_most=100),
        Figure("short_mb", f"memory of that process, {_SHORT:,} events", "MB"),
        Figure("long_ms", f"opening and claiming, {LONG:,} events", "ms"),
        Figure("short_ms", f"opening and claiming, {_SHORT:,} events", "ms"),
        Figure("long_first_ms", f"the same with modules to load, {LONG:,} events", "ms"),
        Figure("short_first_ms", f"the same with modules to load, {_SHORT:,} events", "ms"),
    ),
    sample=_sample,
)
