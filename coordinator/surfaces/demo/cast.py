"""The processes of the demo, as the driver holds them. Only what was started here is ever signalled."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from coordinator.surfaces.demo.stage import Holds, Ready, Said, decode

T = TypeVar("T", bound=Said)

_HEAR_S = 60


class DemoFailed(Exception):
    """The demo could not be played to its end."""


class Player:
    """One worker or reviewer process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._killed = False
        self._errors = asyncio.create_task(_all_of(process.stderr))

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})"

    def cue(self) -> None:
        """Let it go on."""
        if self._process.stdin is not None:
            self._process.stdin.write(b"\n")

    async def hear(self, type_: type[T]) -> T:
        """The next thing that it says."""
        try:
            async with asyncio.timeout(_HEAR_S):
                line = b"" if self._process.stdout is None else await self._process.stdout.readline()
        except TimeoutError:
            raise DemoFailed(f"{self} said nothing for {_HEAR_S} s") from None
        if not line:
            await self.ended()
            raise DemoFailed(f"{self} ended before its part was over")
        try:
            said = decode(line)
        except msgspec.DecodeError:
            said = line
        if not isinstance(said, type_):
            raise DemoFailed(f"{self} said {said!r}, which was not its cue")
        return said

    async def take_a_job(self) -> Holds:
        """Let it claim one, and hear which; it waits for another cue then."""
        self.cue()
        return await self.hear(Holds)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Works on a stopped process too; twice is harmless."""
        self._killed = True
        with suppress(ProcessLookupError):
            self._process.kill()

    async def ended(self) -> None:
        """Wait until it has ended: well, or because it was killed."""
        code = await self._process.wait()
        if code != 0 and not self._killed:
            how = f"with status {code}" if code > 0 else f"by {signal.Signals(-code).name}"
            raise DemoFailed(f"{self} was ended {how}\n{await self._errors}".rstrip())


class Cast:
    """All players. Leaving `cast()` ends those that are still there."""

    def __init__(self, database: Path, folder: Path) -> None:
        self._common = ("--database", str(database), "--folder", str(folder))
        self.players: list[Player] = []

    async def worker(self, name: str, lease_s: float, *flags: str) -> Player:
        return await self._start(name, "worker", "--name", name, "--lease", str(lease_s), *flags)

    async def reviewer(self, *flags: str) -> Player:
        return await self._start("reviewer", "reviewer", *flags)

    async def _start(self, name: str, module: str, *arguments: str) -> Player:
        """A new interpreter that finds what this one finds, and ignores what lies in the working folder.

        It gets a process group of its own, so that Ctrl-C reaches the driver alone, which then ends it.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", f"coordinator.surfaces.demo.{module}", *arguments, *self._common),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,
        )
        player = Player(name, process)
        self.players.append(player)
        return player

    async def ready(self, *players: Player) -> None:
        await asyncio.gather(*(player.hear(Ready) for player in players))


@asynccontextmanager
async def cast(database: Path, folder: Path) -> AsyncGenerator[Cast, None]:
    company = Cast(database, folder)
    try:
        yield company
    finally:
        for player in company.players:
            player.kill()
        for player in company.players:
            await player.ended()


async def _all_of(stream: asyncio.StreamReader | None) -> str:
    return "" if stream is None else (await stream.read()).decode(errors="replace")
