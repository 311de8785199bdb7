"""dbos: durable workflows, enqueued and run by the same process."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import BODY, Peer
from benchmarks.peers.threads import Cycles

_POLL_S = 0.01


async def _cycles(dbos: Any, workflow: Any, workers: int, seconds: float) -> Cycles:
    errors: list[str] = []

    async def cycle() -> None:
        handle = await dbos.enqueue_workflow_async("bench", workflow, BODY)
        await handle.get_result(polling_interval_sec=_POLL_S)

    async def work(until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            try:
                await cycle()
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
            else:
                done += 1
        return done

    await dbos.register_queue_async("bench", polling_interval_sec=_POLL_S)
    await cycle()
    began = time.perf_counter()
    counts = await asyncio.gather(*(work(began + seconds) for _ in range(workers)))
    elapsed = time.perf_counter() - began
    return {"per_s": sum(counts) / elapsed, "failed": len(errors), "error": errors[0] if errors else ""}


def cycles_per_second(folder: str, workers: int, seconds: float) -> Cycles:
    logging.disable(logging.CRITICAL)
    os.environ["DBOS_DISABLE_VERSION_CHECK"] = "1"
    dbos = import_module("dbos").DBOS
    url = f"sqlite:///{Path(folder, 'dbos.sqlite')}"
    dbos(config={"name": "bench", "system_database_url": url, "run_admin_server": False})

    @dbos.workflow()
    async def job(body: str) -> int:
        return 12

    async def run() -> Cycles:
        dbos.launch()
        return await _cycles(dbos, job, workers, seconds)

    found = asyncio.run(run())
    dbos.destroy()
    return found


DBOS = Peer(
    name="dbos",
    module="dbos",
    cycle=f"`enqueue_workflow_async`, `get_result`; both look every {_POLL_S * 1000:.0f} ms, because the default of a"
    " second would measure only that; workers are tasks that wait for one workflow each",
    durability="rollback journal, synchronous=FULL",
    more="runs the functions itself and resumes them step by step after a crash; schedules, rate limits, events, a"
    " dashboard; PostgreSQL",
    less="no paths, no lease that a worker must show, no chain of digests",
    cycles_per_second=cycles_per_second,
)
