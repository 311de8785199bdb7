"""Commands/s of the full journey (add, claim, note, submit, accept), by many agents in one process."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

from coordinator import CommandRecord, Coordinator

_COMMANDS = 5


async def _agent(coordinator: Coordinator, name: str, until: float) -> int:
    """One agent and its reviewer, on jobs of their own, one after another; how many commands were answered."""
    worker, reviewer = coordinator.agent(name), coordinator.agent(f"{name}-reviewer")
    jobs = 0
    while time.perf_counter() < until:
        id = f"{name}/{jobs}"
        job = await worker.add_job(id, {"task": "parse", "file": id}, paths=[f"src/{id}/module.py"])
        claim = await worker.claim(job)
        await claim.note({"progress": 0.5})
        await reviewer.accept(await claim.submit({"lines": 12}))
        jobs += 1
    return jobs * _COMMANDS


async def _run(path: Path, agents: int, seconds: float) -> tuple[float, float]:
    batches: list[int] = []

    def observe(record: CommandRecord) -> None:
        batches.append(record.batch)

    async with Coordinator.open(path, observe=observe) as coordinator:
        began = time.perf_counter()
        counts = await asyncio.gather(*(_agent(coordinator, f"agent-{n}", began + seconds) for n in range(agents)))
        elapsed = time.perf_counter() - began
    return sum(counts) / elapsed, statistics.mean(batches)


def commands_per_second(path: Path, agents: int, seconds: float) -> tuple[float, float]:
    """Commands/s, and how many commands a batch held on the average."""
    return asyncio.run(_run(path, agents, seconds))
