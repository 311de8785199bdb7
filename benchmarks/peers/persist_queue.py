"""persist-queue: pickled items in SQLite, acknowledged when they are done."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from benchmarks.peers.peer import BODY, Peer
from benchmarks.peers.threads import Cycles, cycles


def cycles_per_second(folder: str, workers: int, seconds: float) -> Cycles:
    make = import_module("persistqueue").SQLiteAckQueue
    queue = make(str(Path(folder, "queue")), multithreading=True)

    def cycle() -> None:
        queue.put(BODY)
        queue.ack(queue.get(raw=True))

    return cycles(cycle, workers, seconds)


PERSIST_QUEUE = Peer(
    name="persist-queue",
    module="persistqueue",
    cycle="`SQLiteAckQueue` with `multithreading=True`: `put`, `get`, `ack`; workers are threads on one queue",
    durability="WAL, synchronous=FULL",
    more="any object that pickle takes; queues in plain files and in MySQL",
    less="for one process: another one that opens the queue takes back what is unacknowledged; no lease, no token, no"
    " receipts, no history",
    cycles_per_second=cycles_per_second,
)
