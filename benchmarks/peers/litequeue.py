"""litequeue: one table of messages, which are locked and then marked done."""

from __future__ import annotations

import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import BODY, Peer
from benchmarks.peers.threads import Cycles, cycles


def cycles_per_second(folder: str, workers: int, seconds: float) -> Cycles:
    make, path = import_module("litequeue").LiteQueue, str(Path(folder, "litequeue.db"))
    local = threading.local()

    def queue() -> Any:
        if not hasattr(local, "queue"):
            local.queue = make(path)
        return local.queue

    def cycle() -> None:
        queue().put(BODY)
        message = queue().pop()
        if message is not None:
            queue().done(message.message_id)

    return cycles(cycle, workers, seconds)


LITEQUEUE = Peer(
    name="litequeue",
    module="litequeue",
    cycle="`put`, `pop`, `done`; workers are threads with a connection each",
    durability="WAL, synchronous=NORMAL: a commit is not flushed, and a power cut can take back what was answered",
    more="a limit to the queue's length",
    less="a lock has no lease and no token: somebody must look for those that were left, and a late `done` is taken"
    " from anybody; no receipts, no history",
    cycles_per_second=cycles_per_second,
)
