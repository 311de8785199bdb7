"""What tests of subprocesses share: starting them, and a look at which processes there are."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.children import Child, Supervised
from coordinator.clock import SystemClock
from coordinator.processes import ENDED, descendants, processes

TREE = str(Path(__file__).with_name("tree.py"))
PYTHON = [sys.executable, "-I", "-S"]
LONG_S = 20.0  # only reached where a protection fails

ADOPTS = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans, and has /proc")


class Family:
    """Children that are started in one folder, and what they say."""

    def __init__(self, supervised: Supervised, folder: Path) -> None:
        self.supervised = supervised
        self.folder = folder
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()

    async def run(self, *argv: str, within_s: float = LONG_S, grace_s: float = LONG_S, **more: Any) -> Child:
        more.setdefault("line", self.lines.put_nowait)
        return await self.supervised.start(
            argv, folder=self.folder, deadline=boot_in(within_s), grace_s=grace_s, **more
        )

    async def python(self, program: str, *arguments: str, **more: Any) -> Child:
        return await self.run(*PYTHON, "-c", program, *arguments, **more)

    async def tree(self, *wanted: str, **more: Any) -> tuple[Child, list[int]]:
        """A child with descendants, all of them ready, and their numbers."""
        child = await self.run(*PYTHON, TREE, *wanted, **more)
        return child, [int(number) for number in (await self.lines.get()).split()]

    def heard(self) -> set[int]:
        """Who heard SIGTERM."""
        return {int(file.stem) for file in self.folder.glob("*.heard")}


def boot_in(seconds: float) -> int:
    return SystemClock().boot() + round(seconds * 1_000_000)


def is_gone(pid: int) -> bool:
    """Not even a zombie is left."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def are_gone(*pids: int) -> bool:
    return all(map(is_gone, pids))


def have_ended(*pids: int) -> bool:
    """None of them runs, although nobody may have reaped them."""
    running = {process.pid for process in processes() if process.state not in ENDED}
    return not running & set(pids)


async def eventually(true: Callable[[], object], within_s: float = 10) -> None:
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "not so within the time"
        await asyncio.sleep(0.005)


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def below(pid: int) -> set[int]:
    return {process.pid for process in descendants(pid)}
