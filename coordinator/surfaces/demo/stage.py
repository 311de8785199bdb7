"""What the driver and its processes say to each other, a line at a time.

A process says in JSON on its standard output what just happened. The driver gives cues, empty lines on the process's
standard input. When that input ends the driver is gone, and the process ends too.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The database is open; on a cue it begins."""


class Holds(msgspec.Struct, frozen=True, tag="holds"):
    """The worker's first claim; on a cue it goes on."""

    job: str
    attempt: int


class CameLate(msgspec.Struct, frozen=True, tag="came_late"):
    """The worker came back with old work, had read the job's version, and submitted.

    `code` is that of the refusal and `position` that of its record; both None if it was let through.
    """

    job: str
    version: int
    code: str | None = None
    position: int | None = None


class AskedTwice(msgspec.Struct, frozen=True, tag="asked_twice"):
    """The answer to a submit was lost behind the commit at `first`, and the submit was repeated with its receipt.

    `again` is the position that the second answer named, `outcomes` what the writer said of the two.
    """

    job: str
    receipt: str
    first: int | None
    again: int
    outcomes: list[str]


class HasRead(msgspec.Struct, frozen=True, tag="has_read"):
    """The reviewer was handed the messages from `first` to `last`, and has looked at what the first one names."""

    first: int
    last: int


Said = Ready | Holds | CameLate | AskedTwice | HasRead

_encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Said).decode


class Stage:
    """A process's end of the two pipes."""

    def __init__(self, cues: asyncio.Queue[bytes]) -> None:
        self._cues = cues

    async def cue(self) -> None:
        """Wait for the driver."""
        await self._cues.get()

    def say(self, message: Said) -> None:
        sys.stdout.buffer.write(_encode(message) + b"\n")
        sys.stdout.buffer.flush()


@asynccontextmanager
async def entered() -> AsyncGenerator[Stage, None]:
    """The stage for this process; when the driver is gone, the task that entered it is cancelled."""
    entering = asyncio.current_task()
    cues: asyncio.Queue[bytes] = asyncio.Queue()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )

    async def listen() -> None:
        while line := await reader.readline():
            cues.put_nowait(line)
        if entering is not None:
            entering.cancel()

    listening = asyncio.create_task(listen())
    try:
        yield Stage(cues)
    finally:
        listening.cancel()
        transport.close()


def perform(part: Callable[[argparse.Namespace], Awaitable[None]], parser: argparse.ArgumentParser) -> None:
    """Run one process's part. Every part is told the database and the folder."""
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()

    async def run() -> None:
        await part(arguments)

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        sys.exit("the driver is gone")
