"""The log as it grows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coordinator import Agent, Closed, Coordinator, InvalidInput, Log, LogEntry
from coordinator.testing import ManualClock
from tests.public.support import PATIENCE_S, Looks, Polls, asleep, claimed, entries

both_stores = pytest.mark.both_stores

PAGE = 500


async def take(log: Log, number: int) -> list[LogEntry]:
    async with asyncio.timeout(PATIENCE_S):
        return [await anext(log) for _ in range(number)]


async def following(coordinator: Coordinator, log: Log) -> asyncio.Task[LogEntry]:
    """Somebody who has heard all there is and waits for the next."""
    task = asyncio.create_task(anext(log))
    await asleep(coordinator, 1)
    return task


async def heard_by(task: asyncio.Task[LogEntry]) -> LogEntry:
    async with asyncio.timeout(PATIENCE_S):
        return await task


async def last_position(coordinator: Coordinator) -> int:
    return (await entries(coordinator))[-1].position


@both_stores
async def test_who_follows_hears_what_the_log_holds_behind_any_position_also_within_a_command(
    coordinator: Coordinator, ada: Agent
):
    await ada.add_job("index", depends_on=[await ada.add_job("schema", review="none")])
    claim = await ada.claim_next()
    assert claim is not None
    await claim.submit()
    written = await entries(coordinator)
    assert [entry.command for entry in written][-3:] == [4, 4, 4]  # handed in, accepted, unblocked

    for after in range(len(written)):
        assert await take(coordinator.follow(after=after), len(written) - after) == written[after:]


@both_stores
@pytest.mark.parametrize("ends", [True, False])
async def test_two_tasks_that_go_through_one_log_hear_each_event_once(ends: bool, coordinator: Coordinator, ada: Agent):
    for n in range(5):
        await ada.add_job(f"job-{n}")
    log = coordinator.log() if ends else coordinator.follow()
    heard: list[int] = []

    async def listen() -> None:
        async for entry in log:
            heard.append(entry.position)
            if entry.position == 5 and not ends:
                return

    async with asyncio.timeout(PATIENCE_S):
        tasks = [asyncio.create_task(listen()) for _ in range(2)]
        await asyncio.wait(tasks, return_when=asyncio.ALL_COMPLETED if ends else asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()

    assert heard == [1, 2, 3, 4, 5]


@both_stores
async def test_who_follows_hears_what_is_written_later(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")
    log = coordinator.follow(after=1)
    task = await following(coordinator, log)

    await ada.send("builds", {"n": 1})

    assert (await heard_by(task)).type == "message.sent"


@both_stores
async def test_who_follows_from_the_end_of_the_log_hears_what_comes_behind_it(coordinator: Coordinator, ada: Agent):
    await ada.send("builds", {"n": 0})
    await ada.send("builds", {"n": 1})
    task = await following(coordinator, coordinator.follow(after=2))

    await ada.send("builds", {"n": 2})

    assert (await heard_by(task)).position == 3


@both_stores
@pytest.mark.parametrize("way", ["follow", "log"])
@pytest.mark.parametrize("of", [{}, {"topic": "builds"}, {"job": "parser"}])
async def test_a_position_behind_the_end_of_the_log_was_kept_of_another_one_and_is_refused(
    way: str, of: dict[str, str], coordinator: Coordinator, ada: Agent
):
    """Else who goes on with an older copy of the workspace passes over what is written there next."""
    await ada.send("builds", {"n": 0})

    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(InvalidInput, match=r"the log ends at position 1 .*an older copy") as refused:
            await anext(getattr(coordinator, way)(after=2, **of))

    assert refused.value.field == "after"


async def test_a_moment_of_the_past_ends_where_it_was(coordinator: Coordinator, ada: Agent):
    for n in range(3):
        await ada.send("builds", {"n": n})
    past = coordinator.at(2)

    assert [entry.position async for entry in past.log(after=1)] == [2]
    assert [entry.position async for entry in past.log(after=2)] == []
    with pytest.raises(InvalidInput, match="the log ends at position 2"):
        await anext(past.log(after=3))


@both_stores
async def test_no_event_is_missed_or_doubled_while_many_write_at_once(coordinator: Coordinator):
    events = 600

    async def write(agent: Agent) -> None:
        for n in range(events // 20):
            await agent.send("builds", {"n": n})

    async def follow() -> list[LogEntry]:
        return await take(coordinator.follow(), events)

    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(follow()) for _ in range(3)]
        for n in range(20):
            group.create_task(write(coordinator.agent(f"agent-{n}")))

    written = await entries(coordinator)
    assert [entry.position for entry in written] == list(range(1, events + 1))
    assert [follower.result() for follower in followers] == [written] * 3


@both_stores
async def test_who_falls_behind_holds_up_nobody_and_misses_nothing(coordinator: Coordinator, ada: Agent):
    events = 3 * PAGE + 7
    log = coordinator.follow()
    await ada.send("builds", {"n": 0})
    first = await take(log, 1)

    await asyncio.gather(*[ada.send("builds", {"n": n}) for n in range(1, events)])

    assert await last_position(coordinator) == events
    rest = await take(log, events - 1)
    assert [entry.position for entry in [*first, *rest]] == list(range(1, events + 1))
    task = await following(coordinator, log)
    await ada.send("builds", {})
    assert (await heard_by(task)).position == events + 1


@both_stores
async def test_who_follows_one_job_hears_of_no_other_and_is_woken_by_no_other(
    coordinator: Coordinator, ada: Agent, looks: Looks, polls: Polls
):
    await ada.add_job("lexer")
    log = coordinator.follow(job="parser")
    task = await following(coordinator, log)
    await polls.have_seen(coordinator)
    await asleep(coordinator, 1)
    before = looks.taken

    await ada.send("builds", {})
    await ada.claim("lexer", version=1)
    await polls.have_seen(coordinator)
    await asleep(coordinator, 1)
    after = looks.taken
    await ada.add_job("parser")
    first = await heard_by(task)
    await ada.claim("parser", version=1)

    assert after == before
    assert [entry.type for entry in [first, *await take(log, 1)]] == ["job.added", "job.claimed"]


@pytest.mark.parametrize("job", [None, "parser"])
@both_stores
async def test_who_follows_hears_of_a_lapse_although_nobody_writes(
    job: str | None, coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    await claimed(ada, "parser", lease_s=30)
    task = await following(coordinator, coordinator.follow(after=2, job=job))

    clock.advance(30)

    assert (await heard_by(task)).type == "job.lapsed"


async def test_who_follows_hears_what_another_process_writes(coordinator: Coordinator, database: Path):
    """Two that are opened know as little of each other as two processes."""
    async with Coordinator.open(database) as mine, Coordinator.open(database) as theirs:
        await theirs.agent("bob").send("builds", {})
        log = mine.follow()
        assert (await take(log, 1))[0].position == 1
        for position in range(2, 12):
            task = await following(mine, log)

            await theirs.agent("bob").send("builds", {})

            assert (await heard_by(task)).position == position


@both_stores
async def test_who_is_cancelled_goes_on_with_the_same_object_or_behind_the_last_position(
    coordinator: Coordinator, ada: Agent
):
    await ada.send("builds", {})
    log = coordinator.follow()
    last = (await take(log, 1))[0]
    task = await following(coordinator, log)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await ada.send("builds", {})
    await ada.send("builds", {})

    assert [entry.position for entry in await take(log, 2)] == [2, 3]
    assert [entry.position for entry in await take(coordinator.follow(after=last.position), 2)] == [2, 3]


@both_stores
async def test_a_loop_over_the_log_that_is_left_can_be_taken_up_again(coordinator: Coordinator, ada: Agent):
    for n in range(5):
        await ada.send("builds", {"n": n})
    log, heard = coordinator.follow(), list[int]()

    for most in (2, 5):
        async for entry in log:
            heard.append(entry.position)
            if len(heard) == most:
                break

    assert heard == [1, 2, 3, 4, 5]


@both_stores
async def test_who_follows_is_told_when_the_coordinator_is_closed(coordinator: Coordinator):
    log = coordinator.follow()
    task = await following(coordinator, log)

    await coordinator.close()

    with pytest.raises(Closed):
        await heard_by(task)
    with pytest.raises(Closed):
        await anext(log)
    with pytest.raises(Closed):
        coordinator.follow()


async def test_the_past_does_not_grow(coordinator: Coordinator, ada: Agent):
    await ada.send("builds", {})

    assert not hasattr(coordinator.at(1), "follow")


@pytest.mark.parametrize("how", [{"after": -1}, {"after": 1.5}, {"after": 2**63}, {"job": ""}, {"job": 5}])
async def test_what_cannot_be_followed_is_refused_at_once(how: Any, coordinator: Coordinator):
    with pytest.raises(InvalidInput):
        coordinator.follow(**how)
