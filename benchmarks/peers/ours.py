"""Ours: add a job that needs no review, claim it, submit its result."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from benchmarks.peers.peer import BODY, Peer
from benchmarks.peers.threads import Cycles
from coordinator import Coordinator


async def _agent(coordinator: Coordinator, name: str, until: float) -> int:
    agent = coordinator.agent(name)
    jobs = 0
    while time.perf_counter() < until:
        job = await agent.add_job(f"{name}/{jobs}", {"body": BODY}, review="none")
        claim = await agent.claim(job)
        await claim.submit({"lines": 12})
        jobs += 1
    return jobs


async def _cycles(path: Path, workers: int, seconds: float) -> Cycles:
    async with Coordinator.open(path) as coordinator:
        await _agent(coordinator, "warm", time.perf_counter() + 0.05)
        began = time.perf_counter()
        counts = await asyncio.gather(*(_agent(coordinator, f"agent-{n}", began + seconds) for n in range(workers)))
        return {"per_s": sum(counts) / (time.perf_counter() - began), "failed": 0, "error": ""}


def cycles_per_second(folder: str, workers: int, seconds: float) -> Cycles:
    return asyncio.run(_cycles(Path(folder, "work.db"), workers, seconds))


OURS = Peer(
    name="coordinator",
    module="coordinator",
    cycle='`add_job(…, review="none")`, `claim`, `submit`; workers are agents of one process',
    durability="WAL, synchronous=FULL",
    more="(each step is an event with a receipt and a digest; a claim has a lease and a token)",
    less="(does not run functions)",
    cycles_per_second=cycles_per_second,
)
