"""Which messages a page holds, wherever in the log they stand."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from coordinator import Agent, ClaimEnded, Coordinator, Message
from coordinator.testing import ManualClock
from tests.public.support import Gate

pytestmark = pytest.mark.both_stores


async def send_around_refused_ones(ada: Agent, count: int) -> None:
    """Messages of two topics in turns, and sending that is refused, which stands in the stream of the first, too."""
    claim = await ada.claim(await ada.add_job("parser"))
    await claim.release()
    for number in range(1, count + 1):
        with pytest.raises(ClaimEnded):
            await claim.send("builds", {"refused": number})
        await ada.send("builds", {"number": number})
        await ada.send("tests", {"number": -number})


@pytest.mark.parametrize("limit", [7, 64, 65, 100])
async def test_pages_of_any_length_hold_every_message_once_and_in_order(
    coordinator: Coordinator, ada: Agent, limit: int
) -> None:
    await send_around_refused_ones(ada, 130)

    found: list[Message] = []
    async with ada.reader("builds") as reader:
        while page := await reader.read(limit):
            found += page

    assert [message.number for message in found] == list(range(1, 131))
    assert [message.body["number"] for message in found] == list(range(1, 131))
    assert {message.topic for message in found} == {"builds"}


async def test_a_page_holds_what_was_sent_in_the_same_batch(coordinator: Coordinator, ada: Agent, gate: Gate) -> None:
    await send_around_refused_ones(ada, 70)

    async with ada.reader("builds") as reader:
        await reader.acknowledge((await reader.read(60))[-1].number)
        gate.close()
        held_up = asyncio.create_task(ada.send("tests", {"number": 0}))
        await gate.drawn()
        sent = [asyncio.create_task(ada.send("builds", {"number": number})) for number in (71, 72, 73)]
        reading = asyncio.create_task(reader.read(12))
        await asyncio.sleep(0)  # by then all have been asked
        gate.open()
        page = await reading
        await asyncio.gather(held_up, *sent)

    assert [message.body["number"] for message in page] == list(range(61, 73))


async def test_the_writer_does_not_keep_a_page_that_was_handed_out(coordinator: Coordinator, ada: Agent) -> None:
    for number in range(3):
        await ada.send("builds", {"number": number})

    async with ada.reader("builds") as reader:
        assert len(await reader.read()) == 3

        assert coordinator._open().writer._journal.outcomes == []


async def test_a_message_tells_who_sent_it_and_when(coordinator: Coordinator, ada: Agent, clock: ManualClock) -> None:
    await ada.send("builds", {"number": 1})
    first_at = (await coordinator.topics())[0].sent_at
    clock.advance(5)
    await coordinator.agent("bob").send("builds", {"number": 2})

    async with ada.reader("builds") as reader:
        first, second = await reader.read()

    assert (first.sender, second.sender) == ("ada", "bob")
    assert (first.at, second.at) == (first_at, first_at + timedelta(seconds=5))
    assert (first.position, second.position) == (1, 2)
