"""Readers: their sessions, of which the latest counts, and what they acknowledge."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from coordinator import (
    Agent,
    Closed,
    Coordinator,
    InvalidInput,
    NotDelivered,
    ReaderPositions,
    ReaderSuperseded,
)
from coordinator.testing import ManualClock
from tests.public.support import Records, entries, numbers, refusals, send, story

pytestmark = pytest.mark.both_stores


@pytest.fixture
async def three(ada: Agent) -> None:
    await send(ada, 1, 2, 3)


async def positions(coordinator: Coordinator, topic: str = "builds") -> dict[str, tuple[int, int]]:
    return {reader.name: (reader.delivered, reader.acknowledged) for reader in await coordinator.readers(topic)}


# Sessions


async def test_a_new_reader_starts_at_the_first_message_under_the_name_of_its_agent(
    coordinator: Coordinator, ada: Agent, bob: Agent, three: None
):
    async with ada.reader("builds") as reader, bob.reader("builds", "night") as night:
        assert (reader.topic, reader.name, night.name) == ("builds", "ada", "night")
        assert (reader.delivered, reader.acknowledged) == (0, 0)
        assert numbers(await reader.read()) == [1, 2, 3]
        assert numbers(await night.read(2)) == [1, 2]

    assert await positions(coordinator) == {"ada": (3, 0), "night": (2, 0)}


async def test_the_next_session_goes_on_behind_what_was_acknowledged(ada: Agent, bob: Agent, three: None):
    async with ada.reader("builds", "night") as reader:
        await reader.acknowledge((await reader.read())[:2])

    async with bob.reader("builds", "night") as reader:
        assert (reader.delivered, reader.acknowledged) == (2, 2)
        assert numbers(await reader.read()) == [3]


@pytest.mark.parametrize("newcomer", ["ada", "bob"])
async def test_an_older_session_is_locked_out_and_nothing_that_it_left_is_lost(
    newcomer: str, coordinator: Coordinator, ada: Agent, three: None
):
    async with ada.reader("builds", "night") as older:
        page = await older.read(2)

        async with coordinator.agent(newcomer).reader("builds", "night") as newer:
            for ask in (older.read, lambda: older.acknowledge(page)):
                with pytest.raises(ReaderSuperseded) as refused:
                    await ask()
                assert (refused.value.holder, refused.value.session, refused.value.current) == (newcomer, 1, 2)
            assert numbers(await newer.read()) == [1, 2, 3]
            assert await newer.acknowledge(page) == 2

    assert [(reader.holder, reader.session) for reader in await coordinator.readers("builds")] == [(newcomer, 2)]


async def test_a_reader_is_closed_before_and_after_its_block(ada: Agent, three: None):
    reader = ada.reader("builds")

    for left in ([1, 2], [3]):
        for ask in (reader.read, lambda: reader.acknowledge(1), lambda: anext(reader.pages())):
            with pytest.raises(Closed, match="not open"):
                await ask()
        async with reader:
            page = await reader.read(2)
            await reader.acknowledge(page)
        assert numbers(page) == left


async def test_a_reader_is_entered_by_one_at_a_time(ada: Agent, three: None):
    async with ada.reader("builds") as reader:
        with pytest.raises(Closed, match="open already"):
            await reader.__aenter__()
        assert numbers(await reader.read()) == [1, 2, 3]


async def test_a_block_that_raises_leaves_its_page_for_the_next_session(ada: Agent, three: None):
    with suppress(ZeroDivisionError):
        async with ada.reader("builds") as reader:
            await reader.acknowledge(await reader.read(1))
            await reader.read(1)
            raise ZeroDivisionError

    async with ada.reader("builds") as reader:
        assert numbers(await reader.read()) == [2, 3]


async def test_a_session_that_is_opened_again_by_its_receipt_is_the_same_and_hands_out_nothing_acknowledged(
    coordinator: Coordinator, ada: Agent, three: None
):
    async with ada.reader("builds", receipt="ada-1") as reader:
        await reader.acknowledge((await reader.read())[:2])

    async with ada.reader("builds", receipt="ada-1") as again:
        assert numbers(await again.read()) == [3]

    async with ada.reader("builds", receipt="ada-1") as again:
        assert await again.acknowledge(3) == 3
    async with ada.reader("builds", receipt="ada-1") as again:
        assert await again.read() == ()
        assert (again.delivered, again.acknowledged) == (3, 3)  # so that who waits for more waits for the fourth
        await send(ada, 4)
        assert numbers(await anext(again.pages())) == [4]
    assert (await story(coordinator)).count("reader.opened") == 1


async def test_a_handle_whose_session_acknowledged_more_elsewhere_waits_for_what_comes_then(
    coordinator: Coordinator, ada: Agent, three: None, records: Records
):
    async with ada.reader("builds", receipt="ada-1") as reader, ada.reader("builds", receipt="ada-1") as again:
        await again.acknowledge(await again.read())

        waiting = asyncio.create_task(anext(reader.pages()))
        await records.until("read_messages", "nothing")
        for number in range(5):
            await ada.send("other", {"number": number})

        assert len(records.of("read_messages", "nothing")) == 1
        await send(ada, 4)
        assert numbers(await waiting) == [4]


# Acknowledging


async def test_a_page_is_acknowledged_as_a_whole_or_by_a_number(coordinator: Coordinator, ada: Agent, three: None):
    async with ada.reader("builds") as reader:
        page = await reader.read()

        assert await reader.acknowledge(2) == reader.acknowledged == 2
        assert await reader.acknowledge(list(page)) == reader.acknowledged == 3

    assert await positions(coordinator) == {"ada": (3, 3)}


async def test_acknowledging_again_or_less_appends_nothing(coordinator: Coordinator, ada: Agent, three: None):
    async with ada.reader("builds") as reader:
        page = await reader.read()
        await reader.acknowledge(page)
        before = len(await entries(coordinator))

        for again in (page, page[:1], 3, 1, 0, ()):
            assert await reader.acknowledge(again) == 3

        assert len(await entries(coordinator)) == before
        assert await positions(coordinator) == {"ada": (3, 3)}


@pytest.mark.parametrize("number", [3, 4, 2**63 - 1])
async def test_what_was_not_handed_out_cannot_be_acknowledged(
    number: int, coordinator: Coordinator, ada: Agent, three: None
):
    async with ada.reader("builds") as reader:
        await reader.read(2)

        with pytest.raises(NotDelivered) as refused:
            await reader.acknowledge(number)

        assert (refused.value.number, refused.value.delivered, reader.acknowledged) == (number, 2, 0)
        assert numbers(await reader.read()) == [3]
    assert await refusals(coordinator) == [("ada", "acknowledge_messages", "not_delivered")]


async def test_what_an_earlier_session_was_handed_can_be_acknowledged_and_does_not_come_again(ada: Agent, three: None):
    async with ada.reader("builds") as reader:
        await reader.read(2)

    async with ada.reader("builds") as reader:
        assert await reader.acknowledge(2) == 2

        assert (reader.delivered, reader.acknowledged) == (2, 2)
        assert numbers(await anext(reader.pages())) == [3]


async def test_pages_of_two_topics_cannot_be_mixed_up(ada: Agent, three: None):
    await send(ada, 1, topic="tests")
    async with ada.reader("builds") as builds, ada.reader("tests") as tests:
        await builds.read()

        with pytest.raises(InvalidInput, match="another topic") as refused:
            await builds.acknowledge(await tests.read())

    assert refused.value.field == "page"


# What can be read about them


async def test_topics_and_readers_say_where_they_stand(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock, three: None
):
    clock.advance(5)
    await send(bob, 1, topic="a/b")
    async with ada.reader("builds", "night") as reader, bob.reader("builds"):
        await reader.acknowledge(await reader.read(1))
        await reader.read(1)

        topics = await coordinator.topics()
        found = await coordinator.readers("builds")

    sent = await entries(coordinator, None, "message.sent")
    assert [(topic.name, topic.last, topic.sent_at) for topic in topics] == [
        ("a/b", 1, sent[3].at),
        ("builds", 3, sent[2].at),
    ]
    common = {"topic": "builds", "last": 3, "session": 1}
    assert found == [
        ReaderPositions(**common, name="bob", delivered=0, acknowledged=0, holder="bob"),
        ReaderPositions(**common, name="night", delivered=2, acknowledged=1, holder="ada"),
    ]
    assert [reader.unread for reader in found] == [3, 2]
    assert await coordinator.readers("a") == []


async def test_topics_and_readers_can_be_seen_as_they_were(coordinator: Coordinator, ada: Agent, bob: Agent):
    await send(ada, 1, 2)
    async with ada.reader("builds", "night") as reader:
        await reader.acknowledge(await reader.read(1))
    async with bob.reader("builds", "night") as reader:
        await send(ada, 3)
        await reader.acknowledge(await reader.read())

    seen: list[Any] = []
    for position in range(len(await entries(coordinator)) + 1):
        past = coordinator.at(position)
        topics = [(topic.name, topic.last) for topic in await past.topics()]
        readers = [
            (reader.last, reader.delivered, reader.acknowledged, reader.holder, reader.session)
            for reader in await past.readers("builds")
        ]
        seen.append((topics, readers))

    assert seen == [
        ([], []),
        ([("builds", 1)], []),
        ([("builds", 2)], []),
        ([("builds", 2)], [(2, 0, 0, "ada", 1)]),
        ([("builds", 2)], [(2, 1, 0, "ada", 1)]),
        ([("builds", 2)], [(2, 1, 1, "ada", 1)]),
        ([("builds", 2)], [(2, 1, 1, "bob", 2)]),
        ([("builds", 3)], [(3, 1, 1, "bob", 2)]),
        ([("builds", 3)], [(3, 3, 1, "bob", 2)]),
        ([("builds", 3)], [(3, 3, 3, "bob", 2)]),
    ]


async def test_odd_names_of_topics_and_readers_are_kept_apart(coordinator: Coordinator, ada: Agent):
    names = ["a", "a/b", "b", "b/c", "c", "a%2Fb", "%", "a/", "né", "ne\u0301", "日本", "É" * 128]
    for topic in names:
        await send(ada, 1, topic=topic)
    pairs = [(topic, name) for topic in names for name in names]

    for number, (topic, name) in enumerate(pairs):
        async with ada.reader(topic, name) as reader:
            assert numbers(await reader.read()) == [1]
            if number % 2:
                await reader.acknowledge(1)

    assert [topic.name for topic in await coordinator.topics()] == sorted(names)
    for topic in names:
        assert [reader.name for reader in await coordinator.readers(topic)] == sorted(names)
    found = {
        (topic, reader.name): (reader.topic, reader.delivered, reader.acknowledged, reader.session)
        for topic in names
        for reader in await coordinator.readers(topic)
    }
    assert found == {pair: (pair[0], 1, number % 2, 1) for number, pair in enumerate(pairs)}
