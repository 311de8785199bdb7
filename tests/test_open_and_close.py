"""Opening and closing again and again leaves nothing behind: no descriptor, no thread, no object, no file.

    COORDINATOR_OPENINGS=10000 python -m pytest -s tests/test_open_and_close.py

does it more often than the suite has time for, and prints how the memory of the process grew.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator import Coordinator, NotAWorkspace

OPENINGS = int(os.environ.get("COORDINATOR_OPENINGS", "200"))
WARMING_UP = 20


class Left(NamedTuple):
    descriptors: int
    threads: int
    objects: int

    @classmethod
    def now(cls) -> Left:
        gc.collect()
        return cls(len(os.listdir("/dev/fd")), threading.active_count(), len(gc.get_objects()))

    def more_than(self, before: Left) -> list[str]:
        """Of what there is more than one moment may have more than another."""
        return [
            f"{name}: {was} and then {now}"
            for name, was, now, several in zip(Left._fields, before, self, SEVERAL, strict=True)
            if now - was > several
        ]


# What one moment may have more than another, as when a thread is just ending. One coordinator is some 200 objects.
SEVERAL = Left(descriptors=3, threads=3, objects=1_000)


def memory_kb() -> float:
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def use(database: Path, number: int) -> None:
    """Everything that has a thread or a connection of its own."""
    async with Coordinator.open(database) as coordinator:
        ada = coordinator.agent("ada")
        waiting = asyncio.create_task(coordinator.wait_for_job("parser", "submitted"))
        claim = await ada.claim(await coordinator.job("parser"))
        async with claim.working():
            await claim.note({"opened": number})
            await claim.release()
        waiting.cancel()
        await asyncio.wait([waiting])


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of others, that the collection of garbage brings to light
async def test_opening_and_closing_leaves_nothing_behind(database: Path):
    async with Coordinator.open(database) as coordinator:
        await coordinator.agent("ada").add_job("parser", max_attempts=3)
    for number in range(WARMING_UP):
        await use(database, number)
    before, memory_before = Left.now(), memory_kb()

    for number in range(OPENINGS):
        await use(database, number)

    after = Left.now()
    print(f"{OPENINGS} openings: {before} {after}, memory grew by {memory_kb() - memory_before:,.0f} kB")
    assert after.more_than(before) == []
    assert sorted(os.listdir(database.parent)) == ["work.db", "work.db.turn"]


async def test_opening_that_fails_leaves_nothing_behind(database: Path):
    database.write_text("no database at all, but long enough to be taken for one " * 10)

    async def fail() -> None:
        with pytest.raises(NotAWorkspace):
            await Coordinator.open(database).__aenter__()

    for _ in range(WARMING_UP):
        await fail()
    before = Left.now()

    for _ in range(OPENINGS):
        await fail()

    after = Left.now()
    assert after.more_than(before) == []
    assert os.listdir(database.parent) == ["work.db"]
