"""`reader.pages()`: page after page, waiting for messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator import (
    Agent,
    Closed,
    Coordinator,
    InvalidInput,
    Message,
    Pages,
    PageUnacknowledged,
    Reader,
    ReaderSuperseded,
)
from tests.public.support import PATIENCE_S, Looks, Polls, Records, asleep, claimed, entries

both_stores = pytest.mark.both_stores


async def waiting(coordinator: Coordinator, pages: Pages) -> asyncio.Task[tuple[Message, ...]]:
    """Somebody who has found nothing to read and waits for it."""
    task = asyncio.create_task(pages.__anext__())
    await asleep(coordinator, 1)
    return task


async def end_of(task: asyncio.Task[tuple[Message, ...]]) -> tuple[Message, ...]:
    async with asyncio.timeout(PATIENCE_S):
        return await task


def numbers(page: tuple[Message, ...]) -> list[int]:
    return [message.number for message in page]


@asynccontextmanager
async def two_processes(database: Path) -> AsyncIterator[tuple[Coordinator, Coordinator]]:
    """Two that are opened know as little of each other as two processes."""
    async with Coordinator.open(database) as mine, Coordinator.open(database) as theirs:
        yield mine, theirs


@both_stores
async def test_pages_come_one_after_another_and_then_as_messages_come(coordinator: Coordinator, ada: Agent, bob: Agent):
    for n in range(5):
        await ada.send("builds", {"n": n})
    read = list[list[int]]()

    async with bob.reader("builds") as reader:
        pages = reader.pages(limit=2)
        for _ in range(3):
            page = await anext(pages)
            read.append(numbers(page))
            await reader.acknowledge(page)
        task = await waiting(coordinator, pages)
        await ada.send("builds", {"n": 5})
        read.append(numbers(await end_of(task)))

    assert read == [[1, 2], [3, 4], [5], [6]]


@both_stores
async def test_who_waits_for_the_first_message_of_a_topic_gets_it(coordinator: Coordinator, ada: Agent, bob: Agent):
    async with bob.reader("builds") as reader:
        task = await waiting(coordinator, reader.pages())

        await ada.send("builds", {"built": "schema"})

        assert [message.body for message in await end_of(task)] == [{"built": "schema"}]


async def test_who_waits_gets_what_another_process_sends(database: Path):
    async with two_processes(database) as (mine, theirs), mine.agent("bob").reader("builds") as reader:
        pages, read = reader.pages(), list[int]()
        for _ in range(10):
            task = await waiting(mine, pages)
            await theirs.agent("ada").send("builds", {})
            page = await end_of(task)
            read += numbers(page)
            await reader.acknowledge(page)

    assert read == list(range(1, 11))


@both_stores
async def test_who_waits_is_told_at_once_that_somebody_opened_the_reader_anew(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    async with bob.reader("builds") as older:
        task = await waiting(coordinator, older.pages())

        async with bob.reader("builds") as newer:
            with pytest.raises(ReaderSuperseded):
                await end_of(task)

            await ada.send("builds", {})
            assert numbers(await anext(newer.pages())) == [1]


async def test_who_waits_is_told_that_another_process_opened_the_reader(database: Path, polls: Polls):
    async with two_processes(database) as (mine, theirs), mine.agent("bob").reader("builds") as older:
        task = await waiting(mine, older.pages())
        await polls.have_seen(mine)  # its first look wakes everybody, whatever happened
        await asleep(mine, 1)

        async with theirs.agent("bob").reader("builds"):
            with pytest.raises(ReaderSuperseded):
                await end_of(task)


@both_stores
async def test_the_next_page_does_not_come_before_the_last_is_acknowledged(ada: Agent, bob: Agent):
    for n in range(3):
        await ada.send("builds", {"n": n})

    async with bob.reader("builds") as reader:
        pages = reader.pages(limit=2)
        page = await anext(pages)
        for partly in (0, 1):
            await reader.acknowledge(partly)
            with pytest.raises(PageUnacknowledged) as told:
                await anext(pages)
        await reader.acknowledge(page)

        assert "builds" in str(told.value)
        assert "2" in str(told.value)
        assert numbers(await anext(pages)) == [3]


@both_stores
async def test_two_loops_over_one_reader_do_not_have_a_page_each(coordinator: Coordinator, ada: Agent, bob: Agent):
    """The one that is ahead would acknowledge what the other has not kept yet."""
    for n in range(2):
        await ada.send("builds", {"n": n})

    async with bob.reader("builds") as reader:
        first, second = await asyncio.gather(*[anext(reader.pages(1)) for _ in range(2)], return_exceptions=True)

    assert not isinstance(first, BaseException)
    assert numbers(first) == [1]
    assert isinstance(second, PageUnacknowledged)


@both_stores
async def test_a_loop_that_waits_is_handed_nothing_while_another_task_has_an_unacknowledged_page(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    async with bob.reader("builds") as reader:
        task = await waiting(coordinator, reader.pages())
        sent = [asyncio.create_task(ada.send("builds", {"n": n})) for n in range(2)]
        reading = asyncio.create_task(reader.read(1))  # in the same batch, before the loop is woken
        await asyncio.gather(*sent)

        assert numbers(await reading) == [1]
        with pytest.raises(PageUnacknowledged):
            await end_of(task)


@both_stores
async def test_of_two_who_wait_for_a_page_of_one_reader_the_second_is_told_to_acknowledge_first(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    async with bob.reader("builds") as reader:
        tasks = [asyncio.create_task(anext(reader.pages(limit=1))) for _ in range(2)]
        await asleep(coordinator, 2)

        await asyncio.gather(ada.send("builds", {}), ada.send("builds", {}))
        async with asyncio.timeout(PATIENCE_S):
            pages = await asyncio.gather(*tasks, return_exceptions=True)

        assert sorted(type(page).__name__ for page in pages) == ["PageUnacknowledged", "tuple"]
        assert (reader.delivered, reader.acknowledged) == (1, 0)


@both_stores
async def test_pages_acknowledge_nothing_themselves(coordinator: Coordinator, ada: Agent, bob: Agent):
    await ada.send("builds", {})
    async with bob.reader("builds") as reader:
        await anext(reader.pages())

        assert [(r.delivered, r.acknowledged) for r in await coordinator.readers("builds")] == [(1, 0)]

    async with bob.reader("builds") as reader:
        assert numbers(await anext(reader.pages())) == [1]


@both_stores
async def test_who_is_cancelled_while_it_waits_loses_nothing(coordinator: Coordinator, ada: Agent, bob: Agent):
    async with bob.reader("builds") as reader:
        pages = reader.pages()
        task = await waiting(coordinator, pages)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        await ada.send("builds", {"n": 1})
        await ada.send("builds", {"n": 2})

        assert numbers(await anext(pages)) == [1, 2]
        assert [entry.type for entry in await entries(coordinator)].count("messages.delivered") == 1


@both_stores
async def test_who_waits_is_not_woken_by_other_topics_other_readers_or_jobs(
    coordinator: Coordinator, ada: Agent, bob: Agent, looks: Looks, polls: Polls, records: Records
):
    async with bob.reader("builds") as reader, bob.reader("builds", "other") as other:
        task = await waiting(coordinator, reader.pages())
        await polls.have_seen(coordinator)
        await asleep(coordinator, 1)
        before, asked = looks.taken, len(records.of("read_messages"))

        await ada.send("build", {})
        await ada.send("builds/more", {})
        await (await claimed(ada, "builds")).submit()
        async with bob.reader("builds", "third"):
            await other.acknowledge(0)
        await polls.have_seen(coordinator)
        await asleep(coordinator, 1)

        assert looks.taken == before
        assert len(records.of("read_messages")) == asked
        await ada.send("builds", {})
        assert numbers(await end_of(task)) == [1]
        assert looks.taken == before + 1


async def test_a_commit_of_one_process_wakes_those_of_another_whom_it_concerns_alone(
    database: Path, looks: Looks, polls: Polls
):
    async with two_processes(database) as (mine, theirs), mine.agent("bob").reader("builds") as reader:
        task = await waiting(mine, reader.pages())
        await polls.have_seen(mine)
        await asleep(mine, 1)
        before = looks.taken

        await theirs.agent("ada").send("other", {})
        await claimed(theirs.agent("ada"), "builds")
        await polls.have_seen(mine)
        await asleep(mine, 1)

        assert looks.taken == before
        await theirs.agent("ada").send("builds", {})
        assert numbers(await end_of(task)) == [1]


@both_stores
async def test_two_readers_each_wait_for_themselves(coordinator: Coordinator, ada: Agent, bob: Agent):
    async with ada.reader("builds") as one, bob.reader("builds") as two:
        tasks = [asyncio.create_task(reader.pages().__anext__()) for reader in (one, two)]
        await asleep(coordinator, 2)

        await ada.send("builds", {})

        assert [numbers(await end_of(task)) for task in tasks] == [[1], [1]]


@both_stores
async def test_who_waits_is_told_when_the_coordinator_is_closed(coordinator: Coordinator, bob: Agent):
    async with bob.reader("builds") as reader:
        task = await waiting(coordinator, reader.pages())

        await coordinator.close()

        with pytest.raises(Closed):
            await end_of(task)


@both_stores
async def test_who_waits_is_told_when_the_reader_is_left(coordinator: Coordinator, bob: Agent):
    async with bob.reader("builds") as reader:
        task = await waiting(coordinator, reader.pages())

    with pytest.raises(Closed):
        await end_of(task)


@both_stores
async def test_a_reader_that_was_left_hands_out_no_pages(ada: Agent, bob: Agent):
    await ada.send("builds", {})
    async with bob.reader("builds") as reader:
        pages = reader.pages()

    with pytest.raises(Closed):
        await anext(pages)


@pytest.mark.parametrize("limit", [0, -1, 1_001, 1.5, "10", None, True])
async def test_a_page_has_a_size(limit: Any, bob: Agent):
    reader: Reader = bob.reader("builds")

    with pytest.raises(InvalidInput) as told:
        reader.pages(limit)

    assert told.value.field == "limit"
