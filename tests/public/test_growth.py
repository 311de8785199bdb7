"""What must not grow with use: SQLite's log, the memory of the process, the rows that it remembers."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coordinator import Agent, CommandRecord, Coordinator
from coordinator.views import RowCache

MEGABYTE = 1_000_000
AGENTS = 64


async def together(coordinator: Coordinator, work: Callable[[Agent], Awaitable[None]]) -> None:
    await asyncio.gather(*(work(coordinator.agent(f"agent-{number}")) for number in range(AGENTS)))


async def test_sqlites_log_stays_small_while_somebody_reads_slowly_all_that_happens(database: Path):
    """The log is read page by page; one long read would keep SQLite's log from being emptied until its end."""
    sizes: list[int] = []

    def observe(record: CommandRecord) -> None:
        sizes.append(os.stat(f"{database}-wal").st_size)

    async def write(agent: Agent) -> None:
        for number in range(50):
            await agent.add_job(f"{agent.name}/{number}", {"text": "x" * 5_000})

    async def read_until(writing: asyncio.Future[None]) -> int:
        seen = 0
        while not writing.done():
            async for entry in coordinator.log(after=seen):
                seen = entry.position
                await asyncio.sleep(0)
                if writing.done():
                    break
            await asyncio.sleep(0)
        return seen

    async with Coordinator.open(database, observe=observe) as coordinator:
        writing = asyncio.ensure_future(together(coordinator, write))
        seen = await read_until(writing)
        await writing

        assert os.stat(database).st_size > 15 * MEGABYTE
    assert seen > 500  # more than a page
    assert max(sizes) < 12 * MEGABYTE


async def test_memory_stays_flat_over_many_commands_and_remembered_rows_are_bounded(
    database: Path, monkeypatch: pytest.MonkeyPatch
):
    caches: list[RowCache] = []
    monkeypatch.setattr("coordinator.execute.RowCache", lambda: caches.append(RowCache(500)) or caches[-1])
    rounds = 0

    async def work(agent: Agent) -> None:
        for _ in range(rounds):
            claim = await agent.claim(await coordinator.job(agent.name))
            await claim.note({"at": "work"})
            await claim.release()

    def blocks() -> int:
        gc.collect()
        return sys.getallocatedblocks()

    async with Coordinator.open(database) as coordinator:
        await together(coordinator, lambda agent: agent.add_job(agent.name))  # type: ignore[arg-type]
        rounds = 25
        await together(coordinator, work)  # 4,800 commands
        before = blocks()

        rounds = 80
        await together(coordinator, work)  # 15,360 commands, each with an event

        assert blocks() - before < 5_000
        (cache,) = caches
        assert max(len(table.rows) for table in cache.tables.values()) <= 500
        assert len(cache.described) <= 500
        assert (await anext(coordinator.log(after=20_000))).position > 20_000
