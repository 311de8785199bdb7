"""How long a command waits for the turn when many processes write."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median

from benchmarks.agents import BUSY_TIMEOUT_S
from benchmarks.apart import Apart, together, wait_for_start
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import CommandRecord, Coordinator

_PROCESSES = 8


def member(path: str, number: int, seconds: float) -> list[float]:
    """One of the processes: for each command the seconds from asking until it had the turn."""
    return asyncio.run(_waits(Path(path), f"agent-{number}", seconds))


async def _waits(path: Path, name: str, seconds: float) -> list[float]:
    waits: list[float] = []

    def observe(record: CommandRecord) -> None:
        waits.append(record.queue_s)

    async with Coordinator.open(path, busy_timeout_s=BUSY_TIMEOUT_S, observe=observe) as coordinator:
        agent = coordinator.agent(name)
        claim = await agent.claim(await agent.add_job(name), lease_s=3_600)
        wait_for_start()
        waits.clear()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            await claim.note({"progress": 0.5})
    return waits


def _sample(bench: Bench) -> Sample:
    with bench.scratch() as folder:
        arguments = {"path": str(folder / "work.db"), "seconds": bench.seconds}
        each = together([Apart(member, {**arguments, "number": number}) for number in range(_PROCESSES)])
    waits = sorted(wait for waits in each for wait in waits)
    counts = [len(waits) for waits in each]
    return {
        "longest_to_median": waits[-1] / median(waits),
        "median_ms": median(waits) * 1_000,
        "p99_ms": waits[int(len(waits) * 0.99)] * 1_000,
        "longest_ms": waits[-1] * 1_000,
        "fairness": min(counts) / max(counts),
        "waits": len(waits),
    }


TURN = Scenario(
    name="turn",
    title="Waiting for the turn",
    how=f"One agent in each of {_PROCESSES} processes writes one note after another, without a pause. A wait is"
    " the time from the call until its batch was drawn, which is when the turn is held.",
    figures=(
        Figure("longest_to_median", "the longest wait against the median", "times", at_most=50),
        Figure("median_ms", "median wait", "ms"),
        Figure("p99_ms", "99th percentile", "ms"),
        Figure("longest_ms", "longest wait", "ms"),
        Figure("fairness", "commands of the slowest process against those of the fastest", "ratio"),
        Figure("waits", "waits in a sample", "count"),
    ),
    sample=_sample,
)
