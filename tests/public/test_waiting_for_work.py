"""`claim_next` that waits for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coordinator import Agent, Busy, Claim, Closed, Coordinator, InvalidInput
from coordinator.testing import ManualClock
from tests.public.support import PATIENCE_S, Records, claimed, story, timers_are_done, turn_held

both_stores = pytest.mark.both_stores


async def waiting(coordinator: Coordinator, *agents: Agent, wait_s: float = 10) -> list[asyncio.Task[Claim | None]]:
    """They wait for work, one behind the other."""
    seekers, tasks = coordinator._open().seekers, list[asyncio.Task[Claim | None]]()
    for agent in agents:
        before = len(seekers._seeking)
        tasks.append(asyncio.create_task(agent.claim_next(wait_s=wait_s)))
        async with asyncio.timeout(PATIENCE_S):
            while len(seekers._seeking) == before:
                await asyncio.sleep(0)
    return tasks


async def end_of(task: asyncio.Task[Any]) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await task


@both_stores
async def test_where_nothing_comes_it_ends_with_nothing_when_the_time_is_over(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    (task,) = await waiting(coordinator, ada, wait_s=10)

    clock.advance(9.9)
    await timers_are_done(coordinator)
    await ada.send("builds", {})
    too_early = task.done()
    clock.advance(0.1)

    assert await end_of(task) is None
    assert not too_early
    assert await story(coordinator) == ["message.sent"]


@both_stores
async def test_what_comes_in_time_is_claimed(coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock):
    (task,) = await waiting(coordinator, ada, wait_s=10)

    clock.advance(9)
    await bob.add_job("parser")

    claim = await end_of(task)
    assert (claim.job.id, claim.job.worker) == ("parser", "ada")
    assert (await claim.submit()).state == "submitted"
    clock.advance(10)
    await timers_are_done(coordinator)


@both_stores
async def test_a_lease_that_runs_out_in_time_brings_work(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    await claimed(bob, "parser", lease_s=30)
    (task,) = await waiting(coordinator, ada, wait_s=40)

    clock.advance(30)

    assert (await end_of(task)).attempt == 2


@both_stores
async def test_those_who_came_first_are_served_first_whether_they_wait_for_ever_or_for_a_while(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    seekers = coordinator._open().seekers
    first = await waiting(coordinator, ada)
    second = asyncio.create_task(anext(bob.claims()))
    while len(seekers._seeking) < 2:
        await asyncio.sleep(0)
    third = await waiting(coordinator, coordinator.agent("eve"))

    for id in ("a", "b", "c"):
        await ada.add_job(id)

    assert [(await end_of(task)).job.id for task in (*first, second, *third)] == ["a", "b", "c"]


@both_stores
async def test_who_asks_for_work_and_would_wait_does_not_overtake_those_who_wait(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    (first,) = await waiting(coordinator, ada)
    await bob.add_job("parser", paths=["src"])
    later = asyncio.create_task(bob.claim_next(wait_s=5))

    claim = await end_of(first)
    await bob.add_job("lexer")

    assert claim.job.id == "parser"
    assert (await end_of(later)).job.id == "lexer"


@both_stores
async def test_one_whose_time_is_over_leaves_the_others_waiting(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    (short,) = await waiting(coordinator, ada, wait_s=5)
    (long,) = await waiting(coordinator, bob, wait_s=50)

    clock.advance(5)
    nothing = await end_of(short)
    await ada.add_job("parser")

    assert nothing is None
    assert (await end_of(long)).job.id == "parser"


@both_stores
async def test_a_receipt_that_was_used_gives_the_old_claim_at_once_although_others_wait(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    await bob.add_job("parser")
    first = await ada.claim_next(receipt="run-1")
    tasks = await waiting(coordinator, bob)

    async with asyncio.timeout(PATIENCE_S):
        again = await ada.claim_next(wait_s=60, receipt="run-1")

    assert first is not None
    assert again is not None
    assert again.token.reveal() == first.token.reveal()
    assert not tasks[0].done()
    tasks[0].cancel()


@both_stores
async def test_a_receipt_that_was_not_used_yet_does_not_overtake_those_who_wait(
    coordinator: Coordinator, ada: Agent, bob: Agent, monkeypatch: pytest.MonkeyPatch
):
    (first,) = await waiting(coordinator, ada)
    with monkeypatch.context() as patch:
        patch.setattr(coordinator._open().waiting, "wake", lambda *streams: None)  # she is slow to notice
        await bob.add_job("parser")
    later = asyncio.create_task(bob.claim_next(wait_s=60, receipt="run-1"))

    claim = await end_of(first)
    await bob.add_job("lexer")

    assert claim.job.id == "parser"
    assert (await end_of(later)).job.id == "lexer"


@both_stores
async def test_who_waits_under_a_receipt_and_got_a_claim_gets_the_same_again(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    task = asyncio.create_task(ada.claim_next(wait_s=60, receipt="run-1"))
    await bob.add_job("parser")
    claim = await end_of(task)

    again = await ada.claim_next(wait_s=60, receipt="run-1")

    assert again is not None
    assert again.token.reveal() == claim.token.reveal()
    assert await story(coordinator) == ["job.added", "job.claimed"]


@pytest.mark.parametrize("wait_s", [{}, {"wait_s": 0}, {"wait_s": 0.0}])
@both_stores
async def test_without_time_to_wait_it_says_at_once_that_there_is_nothing(
    wait_s: dict[str, Any], coordinator: Coordinator, ada: Agent, bob: Agent
):
    others = await waiting(coordinator, bob)

    async with asyncio.timeout(PATIENCE_S):
        assert await ada.claim_next(**wait_s) is None

    assert not others[0].done()
    others[0].cancel()


@pytest.mark.parametrize("wait_s", [-1, 86_401, float("nan"), float("inf"), "5", None, True])
async def test_a_time_that_is_none_is_refused(wait_s: Any, ada: Agent):
    with pytest.raises(InvalidInput) as told:
        await ada.claim_next(wait_s=wait_s)

    assert told.value.field == "wait_s"


async def test_who_waits_for_work_waits_for_the_turn_too(database: Path, clock: ManualClock, records: Records):
    async with Coordinator.open(database, clock=clock, observe=records, busy_timeout_s=0.05) as opened:
        await opened.agent("ada").add_job("parser")

        with turn_held(database):
            task = asyncio.create_task(opened.agent("bob").claim_next(wait_s=60))
            await records.until("claim_next", "busy", count=2)

        assert (await end_of(task)).job.id == "parser"


async def test_when_the_time_is_over_and_the_turn_has_not_come_it_says_so(
    database: Path, clock: ManualClock, records: Records
):
    async with Coordinator.open(database, clock=clock, observe=records, busy_timeout_s=0.05) as opened:
        ada, bob = opened.agent("ada"), opened.agent("bob")
        await ada.add_job("parser")

        with turn_held(database):
            task = asyncio.create_task(bob.claim_next(wait_s=60))
            await records.until("claim_next", "busy", count=2)
            clock.advance(60)

            with pytest.raises(Busy):
                await end_of(task)


@both_stores
async def test_who_is_cancelled_leaves_the_work_to_others(coordinator: Coordinator, ada: Agent, bob: Agent):
    first, second = await waiting(coordinator, ada, bob)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    await ada.add_job("parser")

    assert (await end_of(second)).job.worker == "bob"
    assert [timer for _, _, timer in coordinator._open().timers._due if not timer.cancelled] == []


@both_stores
async def test_who_waits_is_told_when_the_coordinator_is_closed(coordinator: Coordinator, ada: Agent):
    (task,) = await waiting(coordinator, ada, wait_s=3_600)

    await coordinator.close()

    with pytest.raises(Closed):
        await end_of(task)
