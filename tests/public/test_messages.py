"""What is sent to a topic, and the pages in which it is handed out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from coordinator import (
    Agent,
    ClaimEnded,
    Coordinator,
    InvalidInput,
    LeaseLapsed,
    ReceiptConflict,
)
from coordinator.testing import ManualClock
from tests.public.support import Gate, claimed, entries, numbers, refusals, send, story

pytestmark = pytest.mark.both_stores


@dataclass
class Built:
    name: str
    lines: int


@pytest.fixture
async def three(ada: Agent) -> None:
    await send(ada, 1, 2, 3)


# Sending


async def test_messages_are_numbered_in_each_topic_apart(coordinator: Coordinator, ada: Agent, bob: Agent):
    assert await ada.send("builds", {"n": 1}) == 1
    assert await bob.send("builds", {"n": 2}) == 2
    assert await ada.send("tests", {"n": 1}) == 1
    assert await ada.send("builds", {"n": 3}) == 3

    async with bob.reader("builds") as reader:
        page = await reader.read()

    assert numbers(page) == [1, 2, 3]
    assert [(message.topic, message.sender) for message in page] == [
        ("builds", "ada"),
        ("builds", "bob"),
        ("builds", "ada"),
    ]
    assert [message.position for message in page] == [1, 2, 4]
    assert [message.at for message in page] == [(await entries(coordinator))[0].at] * 3


async def test_a_message_that_is_sent_again_by_its_receipt_is_sent_once(coordinator: Coordinator, ada: Agent):
    first = await ada.send("builds", {"n": 1}, receipt="ada-1")
    await ada.send("builds", {"n": 2})

    assert await ada.send("builds", {"n": 1}, receipt="ada-1") == first == 1
    assert await ada.recall("ada-1") == 1
    with pytest.raises(ReceiptConflict):
        await ada.send("builds", {"n": 3}, receipt="ada-1")
    assert await story(coordinator) == ["message.sent", "message.sent"]


async def test_a_claim_sends_until_it_is_over(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock, three: None
):
    ended, lapsed = await claimed(ada, "parser"), await claimed(ada, "lexer", lease_s=10)
    assert await ended.send("builds", {"n": 4}) == 4

    await ended.submit()
    clock.advance(10)
    with pytest.raises(ClaimEnded):
        await ended.send("builds", {"late": True})
    with pytest.raises(LeaseLapsed):
        await lapsed.send("builds", {"late": True})

    assert [code for _, _, code in await refusals(coordinator)] == ["claim_ended", "lease_lapsed"]
    await send(ada, 5)  # what was refused used up no number
    async with bob.reader("builds") as reader:
        assert numbers(await reader.read()) == [1, 2, 3, 4, 5]


async def test_a_body_can_be_read_as_what_it_was_sent_as(ada: Agent):
    await ada.send("builds", Built("parser", 7))

    async with ada.reader("builds") as reader:
        (message,) = await reader.read()

    assert message.body == {"name": "parser", "lines": 7}
    assert message.body_as(Built) == Built("parser", 7)
    with pytest.raises(InvalidInput) as refused:
        message.body_as(dict[str, int])
    assert refused.value.field == "body"
    assert "parser" not in repr(message)


# Reading


async def test_an_empty_page_appends_nothing(coordinator: Coordinator, ada: Agent, three: None):
    async with ada.reader("builds") as reader, ada.reader("nobody's") as other:
        await reader.read()
        before = len(await entries(coordinator))

        assert await reader.read(receipt="ada-1") == await other.read() == ()

        assert len(await entries(coordinator)) == before
        await send(ada, 4)
        assert numbers(await reader.read(receipt="ada-1")) == [4]  # the receipt was not used up


async def test_a_page_that_was_lost_is_handed_out_again(coordinator: Coordinator, ada: Agent, gate: Gate, three: None):
    async with ada.reader("builds") as reader:
        gate.close()
        lost = asyncio.create_task(reader.read(2))
        await gate.drawn()
        lost.cancel()
        await asyncio.wait([lost])
        gate.open()
        again = await reader.read(2)

        assert lost.cancelled()
        assert numbers(again) == [1, 2]
        assert numbers(await reader.read()) == [3]
    assert (await story(coordinator)).count("messages.delivered") == 3


async def test_one_who_reads_while_another_does_waits_for_the_page_behind(ada: Agent, gate: Gate, three: None):
    async with ada.reader("builds") as reader:
        gate.close()
        first, given_up, second = (asyncio.create_task(reader.read(2)) for _ in range(3))
        await gate.drawn()
        given_up.cancel()
        gate.open()

        assert numbers(await first) == [1, 2]
        assert numbers(await second) == [3]
        assert given_up.cancelled()


async def test_a_page_can_begin_and_end_anywhere_also_among_refusals(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    await claim.submit()
    for begin in range(1, 200, 21):
        await send(ada, *range(begin, min(begin + 21, 201)))
        clock.advance(1)
        for _ in range(begin % 7):
            with pytest.raises(ClaimEnded):
                await claim.send("builds", {"late": True})
        await bob.send("others", {})

    for after, limit in [(0, 64), (0, 65), (0, 200), (1, 63), (63, 1), (63, 2), (64, 64), (65, 70), (127, 3), (199, 9)]:
        name = f"{after} {limit}"
        async with bob.reader("builds", name) as reader:
            await reader.read(1_000)
            await reader.acknowledge(after)
        async with bob.reader("builds", name) as reader:
            page = await reader.read(limit, receipt=name)

        assert numbers(page) == list(range(after + 1, min(after + limit, 200) + 1))
        assert await bob.recall(name) == page


async def test_a_page_holds_what_was_sent_in_the_same_batch_before_it(ada: Agent, bob: Agent, gate: Gate):
    await send(ada, *range(1, 31))
    async with bob.reader("builds") as reader:
        gate.close()
        held_up = asyncio.create_task(ada.send("others", {}))
        await gate.drawn()
        sending = [asyncio.create_task(ada.send("builds", {"n": number})) for number in range(31, 101)]
        await asyncio.sleep(0)
        reading = asyncio.create_task(reader.read(1_000))
        await asyncio.sleep(0)
        sending += [asyncio.create_task(ada.send("builds", {"n": number})) for number in range(101, 111)]
        await asyncio.sleep(0)
        gate.open()
        await asyncio.gather(held_up, *sending)

        page = await reading
        assert numbers(page) == list(range(1, 101))
        assert numbers(await reader.read()) == list(range(101, 111))
    assert len({message.at for message in page}) == 1


async def test_large_messages_come_in_shorter_pages_and_none_is_skipped(ada: Agent, bob: Agent):
    for number in range(1, 41):
        await ada.send("builds", {"n": number, "text": "x" * (250_000 if number == 20 else 1)})

    async with bob.reader("builds") as reader:
        pages = [await reader.read(1_000, receipt=f"bob-{number}") for number in range(3)]

    assert [[message.number for message in page] for page in pages] == [[*range(1, 34)], [*range(34, 41)], []]
    assert await bob.recall("bob-0") == pages[0]


# Receipts


async def test_every_answer_can_be_asked_for_again(coordinator: Coordinator, ada: Agent, bob: Agent, three: None):
    async with ada.reader("builds", receipt="ada-1") as reader:
        page = await reader.read(2, receipt="ada-2")
        await reader.acknowledge(page, receipt="ada-3")
        await send(ada, 4)
    async with bob.reader("builds", "ada", receipt="bob-1") as newer:
        await newer.acknowledge(await newer.read())

    recalled: list[Any] = [await ada.recall(f"ada-{number}") for number in (1, 2, 3)]
    assert recalled == [0, page, 2]
    assert await bob.recall("bob-1") == 2
    assert await bob.recall("ada-2") is None
    (reader,) = await coordinator.readers("builds")
    assert (reader.delivered, reader.acknowledged) == (4, 4)


async def test_a_reading_that_is_repeated_by_its_receipt_gives_the_same_page(
    coordinator: Coordinator, ada: Agent, bob: Agent, three: None
):
    async with ada.reader("builds", receipt="ada-1") as reader:
        page = await reader.read(receipt="ada-2")
    await send(ada, 4, 5)
    before = len(await entries(coordinator))

    async with ada.reader("builds", receipt="ada-1") as again:  # the program was started anew, and does the same
        assert await again.read(receipt="ada-2") == page
        assert len(await entries(coordinator)) == before
        assert numbers(await again.read()) == [4, 5]

    async with bob.reader("builds", receipt="bob-1") as reader:
        with pytest.raises(ReceiptConflict):
            await reader.read(receipt="bob-1")
