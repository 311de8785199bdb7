"""Waiting for the log to grow, for messages and for work, cancelled at any step."""

from __future__ import annotations

import asyncio
from typing import Any

from coordinator import Claim, Log, LogEntry, Message, Reader
from tests.public.cancelling.claims import claim, work_comes
from tests.public.cancelling.reads import claimed_by_bob
from tests.public.cancelling.row import Row, nothing
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World


class Follower:
    """Somebody who hears of a job until so many things have happened to it, perhaps not in one go."""

    def __init__(self, log: Log, claim: Claim) -> None:
        self.log = log
        self.claim = claim
        self.heard: list[LogEntry] = []

    async def hear(self) -> None:
        async for entry in self.log:
            self.heard.append(entry)
            if len(self.heard) == 5:
                break


async def follower(world: World) -> Follower:
    claim = await claimed_by_bob(world)
    await claim.note({"number": 1})
    return Follower(world.coordinator.follow(job=world.id), claim)


async def more_happens(world: World, follower: Follower) -> None:
    await asyncio.sleep(0)  # the call is under way
    await follower.claim.note({"number": 2})
    await follower.claim.note({"number": 3})


async def heard_once(world: World, follower: Follower, ended: Ended) -> None:
    """Whoever goes on after a cancellation hears every entry once."""
    if ended.cancelled:
        await follower.hear()
    types = [entry.type for entry in follower.heard]
    assert types == ["job.added", "job.claimed", "job.noted", "job.noted", "job.noted"]
    assert await world.since() == []


async def reader(world: World) -> Reader:
    return await world.ada.reader(world.id).__aenter__()


async def next_page(world: World, reader: Reader) -> tuple[Message, ...]:
    return await anext(reader.pages(limit=1))


async def messages_come(world: World, reader: Reader) -> None:
    await asyncio.sleep(0)  # the call is under way
    await world.bob.send(world.id, {"number": 1})
    await world.bob.send(world.id, {"number": 2})


async def handed_out_once(world: World, reader: Reader, ended: Ended) -> None:
    """What was lost on the way is handed out again, and nothing is skipped."""
    pages: list[Any] = [await next_page(world, reader) if ended.cancelled else ended.answer]
    await reader.acknowledge(pages[0])
    pages.append(await next_page(world, reader))
    await reader.acknowledge(pages[1])

    assert [[message.number for message in page] for page in pages] == [[1], [2]]
    assert [entry.body["last"] for entry in await world.since("messages.delivered")][-1] == 2
    assert reader.acknowledged == reader.delivered == 2


WAITS = {
    "follow": Row(
        covers=["Coordinator.follow", "Log.__anext__"],
        given=follower,
        ask=lambda w, follower: follower.hear(),
        afterwards=heard_once,
        meanwhile=more_happens,
    ),
    "the next page, when messages come": Row(
        covers=["Reader.pages", "Pages.__anext__"],
        given=reader,
        ask=next_page,
        afterwards=handed_out_once,
        meanwhile=messages_come,
    ),
    "claim next, when work comes": claim(
        "Agent.claim_next",
        lambda w, _: w.ada.claim_next(wait_s=60),
        given=nothing,
        meanwhile=work_comes,
        one=False,
    ),
}
