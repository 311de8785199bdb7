"""A kind of operations for tests, which does as it is told, and short words for what the tests ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from coordinator import Agent, AttemptRecord, Coordinator, Finding, Kind, Operation, OperationStatus, Work
from tests.public.support import PATIENCE_S, entries

NORTH = {"supplier": "north", "weeks": 4}


class Order(msgspec.Struct):
    supplier: str
    weeks: int = 1


class Reorder(Kind[Order]):
    """Attributes:
    previewing, working: what it does.
    works: the work of each attempt that was begun.
    """

    name = "reorder"
    arguments = Order

    def __init__(self, **settings: Any) -> None:
        for name, value in settings.items():
            setattr(self, name, value)
        self.works: list[Work] = []
        self.begun = asyncio.Semaphore(0)
        self.go_on = asyncio.Event()

    previewing: Callable[[Order], Awaitable[Any]] | None = None
    working: Callable[[Order, Work], Awaitable[Any]] | None = None

    async def preview(self, arguments: Order) -> Any:
        if self.previewing is not None:
            return await self.previewing(arguments)
        return {"order": arguments.weeks * 10, "from": arguments.supplier}

    async def run(self, arguments: Order, work: Work) -> Any:
        self.works.append(work)
        self.begun.release()
        if self.working is not None:
            return await self.working(arguments, work)
        return {"ordered": arguments.weeks * 10}

    async def until_begun(self) -> Work:
        """The work of the next attempt that begins."""
        async with asyncio.timeout(PATIENCE_S):
            await self.begun.acquire()
        return self.works[-1]

    async def until_told(self, arguments: Order, work: Work) -> Any:
        """To be given as `working`: it goes on until the test says so."""
        await self.go_on.wait()
        return {"ordered": arguments.weeks * 10}


class Checked(Reorder):
    """The same, with a check."""

    checking: Callable[[Order, AttemptRecord], Awaitable[Any]]

    async def check(self, arguments: Order, record: AttemptRecord) -> Any:
        return await self.checking(arguments, record)


def finding(agrees: bool, note: str = "looked") -> Callable[[Order, AttemptRecord], Awaitable[Finding]]:
    """A check that finds always the same."""

    async def checking(arguments: Order, record: AttemptRecord) -> Finding:
        return Finding(agrees=agrees, note=note)

    return checking


def lasting(kind: Reorder) -> Reorder:
    kind.working = kind.until_told
    return kind


async def fails(arguments: Order, work: Work) -> Any:
    raise ConnectionError("the supplier does not answer")


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("there is no text")


async def applied(agent: Agent, kind: str = "reorder", *, id: str | None = None) -> Operation:
    return await agent.apply(await agent.preview(kind, NORTH, operation_id=id))


async def ended(operation: Operation) -> OperationStatus:
    async with asyncio.timeout(PATIENCE_S):
        return await operation.wait()


async def events(coordinator: Coordinator, id: str) -> list[str]:
    """What the log says of one operation, without the word before the dot, and without refusals."""
    found = [entry.type for entry in await entries(coordinator) if entry.stream == f"operation/{id}"]
    return [type.removeprefix("operation.") for type in found if type != "command.refused"]


def folder_of(coordinator: Coordinator, id: str, attempt: int = 1) -> Path:
    return coordinator._open().operating.artifacts.folder(id, attempt)
