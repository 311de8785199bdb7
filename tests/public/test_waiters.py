"""All who wait, however they wait: what they wait for comes at the wrong moment, or there are very many of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coordinator import Agent, Coordinator, Job
from coordinator.seen import Seen
from coordinator.testing import ManualClock
from coordinator.waiting import Waiting
from tests.public.support import PATIENCE_S, Looks, Polls, Records, asleep, claimed, story

both_stores = pytest.mark.both_stores

MANY = 1_000


async def end_of(task: asyncio.Task[Any]) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await task


# What they wait for comes at the wrong moment


@dataclass(frozen=True)
class Wait:
    """One way to wait. `given` prepares it, `happen` brings what it waits for, and `found` tells that from all else."""

    wait: Callable[[Coordinator], Awaitable[Any]]
    happen: Callable[[Agent], Awaitable[Any]]
    found: Callable[[Any], bool]
    given: Callable[[Agent], Awaitable[Any]] = lambda agent: agent.send("other", {})


async def first_page(coordinator: Coordinator) -> Any:
    async with coordinator.agent("waiter").reader("builds") as reader:
        return await anext(reader.pages())


async def next_entry(coordinator: Coordinator, **where: Any) -> Any:
    return await anext(coordinator.follow(**where))


async def is_failed(agent: Agent) -> None:
    await agent.cancel_job("schema", version=1)


async def chain_of_jobs(agent: Agent) -> None:
    await agent.add_job("index", depends_on=[await agent.add_job("schema")])
    await agent.add_job("parser", depends_on=["index"])


WAITS = {
    "for a job": Wait(
        lambda c: c.wait_for_job("parser", "claimed"),
        lambda agent: agent.claim("parser", version=1),
        lambda job: job.state == "claimed",
        given=lambda agent: agent.add_job("parser"),
    ),
    "for a job behind others": Wait(
        lambda c: c.wait_for_job("parser", "ready"), is_failed, lambda job: job.state == "blocked", given=chain_of_jobs
    ),
    "for the log": Wait(
        lambda c: next_entry(c, after=1), lambda agent: agent.send("builds", {}), lambda entry: entry.position == 2
    ),
    "for the log of a job": Wait(
        lambda c: next_entry(c, job="parser"), lambda agent: agent.add_job("parser"), lambda e: e.type == "job.added"
    ),
    "for messages": Wait(first_page, lambda agent: agent.send("builds", {}), lambda page: page[0].number == 1),
    "for work": Wait(
        lambda c: anext(c.agent("waiter").claims()),
        lambda agent: agent.add_job("parser"),
        lambda claim: claim.job.id == "parser",
    ),
    "for work, for a while": Wait(
        lambda c: c.agent("waiter").claim_next(wait_s=60),
        lambda agent: agent.add_job("parser"),
        lambda claim: claim is not None and claim.job.id == "parser",
    ),
}


@asynccontextmanager
async def opened(place: str, database: Path) -> AsyncIterator[tuple[Coordinator, Coordinator]]:
    """Who waits and who writes. Two that are opened know as little of each other as two processes."""
    async with Coordinator.open("memory:" if place == "memory" else database, clock=ManualClock()) as mine:
        if place == "two processes":
            async with Coordinator.open(database, clock=ManualClock()) as theirs:
                yield mine, theirs
        else:
            yield mine, mine


@pytest.mark.parametrize("moment", ["before it looks", "while it looks", "when it has looked", "while it sleeps"])
@pytest.mark.parametrize("place", ["memory", "sqlite", "two processes"])
@pytest.mark.parametrize("how", WAITS)
async def test_what_comes_at_any_moment_is_noticed(
    how: str, place: str, moment: str, database: Path, monkeypatch: pytest.MonkeyPatch
):
    wait, until = WAITS[how], Waiting.until
    async with opened(place, database) as (mine, theirs):
        writer = theirs.agent("writer")
        await wait.given(writer)

        async def until_disturbed(waiting: Waiting, look: Callable[[], Awaitable[Any]], *woken: asyncio.Event) -> Any:
            looks = 0

            async def look_disturbed() -> Any:
                nonlocal looks
                looks += 1
                if looks == 1 and moment == "before it looks":
                    await wait.happen(writer)
                found = asyncio.ensure_future(look())
                if looks == 1 and moment == "while it looks":
                    await asyncio.sleep(0)
                    await wait.happen(writer)
                await found
                if looks == 1 and moment == "when it has looked":
                    await wait.happen(writer)
                return await found

            return await until(waiting, look_disturbed, *woken)

        monkeypatch.setattr(Waiting, "until", until_disturbed)
        task = asyncio.ensure_future(wait.wait(mine))
        if moment == "while it sleeps":
            await asleep(mine, 1)
            await wait.happen(writer)

        assert wait.found(await end_of(task))


async def test_a_chain_that_changes_while_somebody_looks_at_it_is_watched_as_it_is(
    coordinator: Coordinator, ada: Agent, monkeypatch: pytest.MonkeyPatch
):
    await chain_of_jobs(ada)
    await ada.add_job("grammar")
    changed = False

    async def change() -> None:
        nonlocal changed
        changed = True
        await ada.revise_job("index", version=1, depends_on=["grammar"])

    until = Waiting.until

    async def until_disturbed(waiting: Waiting, look: Callable[[], Awaitable[Any]], *woken: asyncio.Event) -> Any:
        async def look_disturbed() -> Any:
            found = await look()
            if not changed:
                await change()
            return found

        return await until(waiting, look_disturbed, *woken)

    monkeypatch.setattr(Waiting, "until", until_disturbed)
    task = asyncio.create_task(coordinator.wait_for_job("parser"))
    await asleep(coordinator, 1)

    await ada.cancel_job("grammar", version=1)

    assert (await end_of(task)).state == "blocked"


@both_stores
async def test_who_waits_for_a_blocked_job_hears_that_one_far_down_the_chain_has_failed(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    """It fails by a lapse, which nobody records who does not wait for it."""
    await ada.add_job("job-0", max_attempts=1)
    for n in range(1, 30):
        await ada.add_job(f"job-{n}", depends_on=[f"job-{n - 1}"])
    await ada.claim("job-0", version=1, lease_s=30)
    task = asyncio.create_task(coordinator.wait_for_job("job-29"))
    await asleep(coordinator, 1)

    clock.advance(30)

    assert (await end_of(task)).state == "blocked"
    assert (await coordinator.job("job-0")).state == "failed"


# Many


@both_stores
async def test_of_a_thousand_who_wait_for_a_job_each_a_commit_wakes_the_one_whom_it_concerns(
    coordinator: Coordinator, ada: Agent, polls: Polls, monkeypatch: pytest.MonkeyPatch
):
    ids = [f"job-{n}" for n in range(MANY)]
    await asyncio.gather(*[ada.add_job(id) for id in ids])
    tasks = [asyncio.create_task(coordinator.wait_for_job(id, "claimed")) for id in ids]
    await asleep(coordinator, MANY)
    await polls.have_seen(coordinator)
    await asleep(coordinator, MANY)
    looked_at, see_job = list[str](), Seen.job

    def see_and_note(seen: Seen, job: str) -> Job:
        looked_at.append(job)
        return see_job(seen, job)

    monkeypatch.setattr(Seen, "job", see_and_note)

    await ada.claim("job-500", version=1)
    first = await end_of(tasks[500])
    await polls.have_seen(coordinator)
    await asleep(coordinator, MANY - 1)
    looked_at_for_one = list(looked_at)
    await asyncio.gather(*[ada.claim(id, version=1) for id in ids if id != "job-500"])

    assert first.id == "job-500"
    assert looked_at_for_one == ["job-500"]
    assert [(await end_of(task)).id for task in tasks] == ids


@both_stores
async def test_a_thousand_who_wait_for_one_topic_all_get_the_message(coordinator: Coordinator, ada: Agent):
    got = list[int]()

    async def read(name: str) -> None:
        async with ada.reader("builds", name) as reader:
            page = await anext(reader.pages())
            got.append(page[0].number)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        for n in range(MANY):
            group.create_task(read(f"reader-{n}"))
        await asleep(coordinator, MANY)

        await ada.send("builds", {"n": 1})

    assert got == [1] * MANY


@both_stores
async def test_a_thousand_who_are_cancelled_leave_nothing_behind(
    coordinator: Coordinator, ada: Agent, looks: Looks, records: Records
):
    await claimed(ada, "parser", lease_s=30)
    tasks: list[asyncio.Future[Any]] = [
        asyncio.ensure_future(wait)
        for _ in range(MANY // 4)
        for wait in (
            coordinator.wait_for_job("parser"),
            next_entry(coordinator, after=2),
            ada.claim_next(wait_s=60),
            next_entry(coordinator, job="lexer"),
        )
    ]
    waiting, timers = coordinator._open().waiting, coordinator._open().timers
    while not waiting._woken:
        await asyncio.sleep(0)

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_S):
        while waiting._woken:  # the search for all who looked for work ends by itself
            await asyncio.sleep(0)
    before = looks.taken
    await ada.send("builds", {})

    assert looks.taken == before
    assert waiting._timed == {}
    assert [timer for _, _, timer in timers._due if not timer.cancelled] == []
    assert await story(coordinator) == ["job.added", "job.claimed", "message.sent"]


# Once


@pytest.mark.parametrize("coordinator", ["sqlite"], indirect=True)
async def test_a_commit_of_this_process_wakes_once(coordinator: Coordinator, ada: Agent, looks: Looks, polls: Polls):
    claim = await claimed(ada)
    task = asyncio.create_task(coordinator.wait_for_job("parser"))
    await asleep(coordinator, 1)
    await polls.have_seen(coordinator)
    await asleep(coordinator, 1)
    before = looks.taken

    async with polls.held():
        await claim.note({"progress": 0.5})
        await asleep(coordinator, 1)
    await polls.have_seen(coordinator)
    await asleep(coordinator, 1)

    assert looks.taken == before + 1
    task.cancel()
