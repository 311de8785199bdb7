"""Blocks under a claim, opening and closing, and copies, cancelled at any step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from coordinator import Claim, Coordinator, NotSubmitted
from coordinator.testing import memory_coordinator
from tests.public.cancelling.row import Ask, Given, Row, claimed, nothing
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World, is_free


def block(body: Callable[[World, Claim], Awaitable[None]], **options: Any) -> Row:
    """The claim ends with the block, once, whatever became of that."""

    async def ask(world: World, claim: Claim) -> None:
        async with claim.working(**options):
            await body(world, claim)

    async def afterwards(world: World, claim: Claim, ended: Ended) -> None:
        assert len(await world.since("job.submitted", "job.failed", "job.released")) == 1
        assert (await world.coordinator.job(world.id)).state != "claimed"
        assert ended.cancelled or ended.answer is None or isinstance(ended.answer, NotSubmitted | ZeroDivisionError)

    covers = ["Claim.working", "Working.__aenter__", "Working.__aexit__"]
    return Row(covers=covers, given=claimed, ask=ask, afterwards=afterwards)


async def submits(world: World, claim: Claim) -> None:
    await asyncio.sleep(0)
    await claim.submit()


async def leaves(world: World, claim: Claim) -> None:
    await asyncio.sleep(0)


async def raises(world: World, claim: Claim) -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


async def swallows(world: World, claim: Claim) -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


BLOCKS = {
    "block that submits": block(submits),
    "block that submits or is given back": block(submits, on_cancel="release"),
    "block that is left": block(leaves),
    "block that raises": block(raises, limit_s=None),
    "block that swallows its cancellation": block(swallows),
}


# Opening and closing


def lifetime(covers: str, given: Given, ask: Ask) -> Row:
    """Nothing is left running or open, and the workspace can be opened once more."""

    async def afterwards(world: World, given: Coordinator, ended: Ended) -> None:
        assert ended.cancelled or not isinstance(ended.answer, Exception), repr(ended.answer)
        await given.close()
        assert world.tasks_left() == set()
        assert world.threads_left() == []
        if world.file is not None and Path(world.place).exists():
            is_free(Path(world.place))
        async with Coordinator.open(world.place) as again:
            await again.agent("ada").add_job("another")

    return Row(covers=covers.split(), given=given, ask=ask, afterwards=afterwards)


async def not_entered(world: World) -> Coordinator:
    return memory_coordinator() if world.file is None else Coordinator.open(world.place)


async def entered(world: World) -> Coordinator:
    coordinator = await (await not_entered(world)).__aenter__()
    await coordinator.agent("ada").add_job("parser")
    return coordinator


async def whole(world: World, coordinator: Coordinator) -> None:
    async with coordinator:
        await coordinator.agent("ada").add_job("parser")


LIFETIMES = {
    "enter": lifetime("Coordinator.__aenter__", not_entered, lambda w, coordinator: coordinator.__aenter__()),
    "open, work and leave": lifetime("Coordinator.open Coordinator.__aexit__ memory_coordinator", not_entered, whole),
    "close": lifetime("Coordinator.close", entered, lambda w, coordinator: coordinator.close()),
}


# Copies


async def back_up(world: World, given: None) -> None:
    await world.coordinator.back_up(world.place)


async def backed_up_or_not(world: World, given: None, ended: Ended) -> None:
    """There is a whole copy, or nothing."""
    assert not list(Path(world.place).parent.glob("*.unfinished"))
    if not Path(world.place).exists():
        assert ended.cancelled
        await back_up(world, given)
    async with Coordinator.open(world.place) as copy:
        assert (await copy.job("never")).state == "cancelled"


COPIES = {
    "back up": Row(
        covers=["Coordinator.back_up"], given=nothing, ask=back_up, afterwards=backed_up_or_not, places=["sqlite"]
    )
}
