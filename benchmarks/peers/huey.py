"""huey: a task queue whose SQLite storage deletes a task when it hands it out."""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path

from benchmarks.peers.peer import BODY, Peer
from benchmarks.peers.threads import Cycles, cycles


def cycles_per_second(folder: str, workers: int, seconds: float) -> Cycles:
    logging.disable(logging.CRITICAL)
    queue = import_module("huey").SqliteHuey(filename=str(Path(folder, "huey.db")))

    @queue.task()
    def job(body: str) -> int:
        return 12

    def cycle() -> None:
        job(BODY)
        task = queue.dequeue()
        if task is not None:
            queue.execute(task)

    return cycles(cycle, workers, seconds)


HUEY = Peer(
    name="huey",
    module="huey",
    cycle="call the task, `dequeue`, `execute`, which stores the result; workers are threads",
    durability="WAL, synchronous=FULL",
    more="runs the functions itself; schedules, periodic tasks, retries, priorities, pipelines; Redis and others",
    less="a task is deleted when it is handed out: who crashes with it loses it; no claim, lease or token, no receipts,"
    " no history",
    cycles_per_second=cycles_per_second,
)
