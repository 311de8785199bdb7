"""One line of the table of calls, and what their tests begin with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator import Claim, JobRef, Reader
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World

Given = Callable[[World], Awaitable[Any]]
Ask = Callable[[World, Any], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One call.

    Attributes:
        covers: the public names that it stands for.
        given: makes what the call needs; it is passed on to the others.
        ask: the call.
        afterwards: what must hold whenever it was cancelled, and also when it was not.
        meanwhile: what others do when it has begun.
        places: the stores on which it can be called.
    """

    covers: list[str]
    given: Given
    ask: Ask
    afterwards: Callable[[World, Any, Ended], Awaitable[None]]
    meanwhile: Callable[[World, Any], Coroutine[Any, Any, None]] | None = None
    places: Sequence[str] = ("memory", "sqlite")


def told(answer: Any) -> Any:
    if isinstance(answer, Claim):
        return answer.job, answer.attempt, answer.fence, answer.token.reveal(), answer.paths
    assert not isinstance(answer, BaseException), repr(answer)
    return answer


async def losing_the_answer(world: World, command: Coroutine[Any, Any, Any]) -> Any:
    """The writer has to look into the log to know what became of the command."""
    world.hold.lose_the_next_answer()
    return await command


# What there is before


async def nothing(world: World) -> None:
    pass


async def ready(world: World) -> JobRef:
    return await world.ada.add_job(world.id, {"size": 1}, review="anyone", paths=[world.id])


async def claimed(world: World) -> Claim:
    return await world.ada.claim(await ready(world))


async def submitted(world: World) -> JobRef:
    return await (await claimed(world)).submit()


async def accepted(world: World) -> JobRef:
    return await world.ada.accept(await submitted(world))


async def claimed_job(world: World) -> JobRef:
    await claimed(world)
    return await world.coordinator.job(world.id)


async def reader(world: World) -> Reader:
    """Of a topic with three messages."""
    for number in range(1, 4):
        await world.bob.send(world.id, {"n": number})
    return await world.ada.reader(world.id).__aenter__()


async def handed_out(world: World) -> Reader:
    opened = await reader(world)
    await opened.read()
    return opened
