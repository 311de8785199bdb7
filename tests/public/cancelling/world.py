"""An open coordinator in which one call after the other is cancelled, and what must be so after each of them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from itertools import count
from pathlib import Path

from coordinator import Coordinator, JobRef, JobState, LogEntry
from tests.public.cancelling.stepping import Hold
from tests.public.support import PATIENCE_S, turn_held

OPEN: tuple[JobState, ...] = ("ready", "claimed", "submitted")

_numbers = count(1)


class World:
    """Ada makes the calls; each run is about a job of its own, `id`.

    Args:
        file: the workspace; None for one in memory.
    """

    def __init__(self, coordinator: Coordinator, hold: Hold, file: Path | None) -> None:
        self.coordinator = coordinator
        self.hold = hold
        self.file = file
        self.ada = coordinator.agent("ada")
        self.bob = coordinator.agent("bob")
        self.id = self.receipt = ""
        self.began_at = 0
        self._tasks: set[asyncio.Task[object]] = set()
        self._threads: set[threading.Thread] = set()

    def new(self) -> None:
        """Another run."""
        self.id = f"job-{next(_numbers)}"
        self.receipt = f"receipt of {self.id}"

    @property
    def place(self) -> str:
        """Where a second workspace of this run can be."""
        return "memory:" if self.file is None else str(self.file.with_name(f"{self.id}.db"))

    async def begin(self) -> None:
        """All that is given is there; now comes the call."""
        self.began_at = (await self.another_command()).position
        self._tasks = asyncio.all_tasks()
        self._threads = set(threading.enumerate())

    async def search_has_ended(self) -> None:
        """What searches for all seekers ends by itself when the last of them has gone."""
        seekers = self.coordinator._open().seekers
        async with asyncio.timeout(PATIENCE_S):
            while seekers._looking is not None:
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def operations_have_ended(self) -> None:
        """What was approved runs to its end, whoever still waits."""
        session = self.coordinator._open()
        async with asyncio.timeout(PATIENCE_S):
            await session.writer.settle()
            while session.operating.runner._running:
                await asyncio.wait(list(session.operating.runner._running))
        await asyncio.sleep(0)

    async def is_undisturbed(self) -> None:
        """Right after the call has ended: it left nothing behind, and the next command works."""
        session = self.coordinator._open()
        assert session.waiting._woken == {}
        assert session.waiting._poller is None or session.waiting._poller._waiters == 0
        assert [timer for _, _, timer in session.timers._due if not timer.cancelled] == []
        async with asyncio.timeout(PATIENCE_S):
            await self.another_command()
            await self.another_command()  # what the first one's batch set going was queued before this
        if self.file is not None:
            is_free(self.file)

    async def another_command(self) -> JobRef:
        """Somebody else adds a job, which nobody can claim."""
        if not self.began_at:
            await self.bob.cancel_job(await self.bob.add_job("never", receipt="never"), receipt="never cancelled")
        return await self.bob.add_job(f"other-{next(_numbers)}", depends_on=["never"])

    async def since(self, *types: str) -> list[LogEntry]:
        """What the call had appended, or what of these types."""
        entries = [entry async for entry in self.coordinator.log(after=self.began_at) if entry.actor == "ada"]
        return [entry for entry in entries if not types or entry.type in types]

    async def clear(self) -> None:
        """Nothing is left that the next run could claim."""
        for job in await self.coordinator.jobs(*OPEN):
            await self.bob.cancel_job(job)

    def tasks_left(self) -> set[asyncio.Task[object]]:
        """Those that the call began."""
        return asyncio.all_tasks() - self._tasks

    def threads_left(self) -> list[threading.Thread]:
        """Those of ours and of aiosqlite's that the call began. One that was told to end may take a moment more."""
        ours = [
            thread
            for thread in set(threading.enumerate()) - self._threads
            if thread.name.startswith("coordinator-") or "_connection_worker_thread" in thread.name
        ]
        for thread in ours:
            thread.join(5)
        return [thread for thread in ours if thread.is_alive()]


def is_free(database: Path) -> None:
    """Nobody has the turn, or is in a transaction that writes."""
    with turn_held(database), closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
