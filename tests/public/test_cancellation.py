"""A caller that goes away: what it asked for is applied once or never, and no claim stays that nobody knows of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from coordinator import Agent, Coordinator
from tests.public.support import PATIENCE_S, Gate, Records, claimed, entries, story, turn_held


def asking(ask: Awaitable[Any]) -> asyncio.Task[Any]:
    return asyncio.ensure_future(ask)  # type: ignore[arg-type]


async def gone(task: asyncio.Task[Any]) -> None:
    """The caller was cancelled and has heard of it."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


CLAIMS = {
    "claim": lambda ada, **more: ada.claim("parser", version=1, **more),
    "claim_next": lambda ada, **more: ada.claim_next(**more),
}
both_claims = pytest.mark.parametrize("ask", CLAIMS.values(), ids=CLAIMS)


# Gone while the writer is at it


@pytest.mark.both_stores
@both_claims
async def test_a_claim_whose_caller_has_gone_is_given_back(
    ask: Any, coordinator: Coordinator, ada: Agent, gate: Gate, records: Records
):
    await ada.add_job("parser", max_attempts=1)
    gate.close()
    task = asking(ask(ada))
    await gate.drawn()

    await gone(task)
    gate.open()
    await records.until("release_job", "ok")

    job, released = await coordinator.job("parser"), (await entries(coordinator))[-1]
    assert (job.state, job.used, job.attempt) == ("ready", 0, 1)
    assert (released.type, released.actor, released.body["reason"]) == ("job.released", "ada", "its caller had gone")
    assert await story(coordinator) == ["job.added", "job.claimed", "job.released"]


@pytest.mark.both_stores
@both_claims
async def test_a_claim_whose_caller_goes_in_the_moment_of_the_answer_is_given_back(
    ask: Any, coordinator: Coordinator, ada: Agent, records: Records
):
    await ada.add_job("parser")
    task = asking(ask(ada))

    # The observer is told when the answer is on its way to the task, which has not run since.
    records.then = lambda record: task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    records.then = None

    await coordinator.wait_for_job("parser", "ready")
    assert await story(coordinator) == ["job.added", "job.claimed", "job.released"]


@pytest.mark.both_stores
@both_claims
async def test_a_claim_with_a_receipt_stays_and_can_be_asked_for_again(
    ask: Any, coordinator: Coordinator, ada: Agent, gate: Gate
):
    await ada.add_job("parser")
    gate.close()
    task = asking(ask(ada, receipt="ada-1"))
    await gate.drawn()

    await gone(task)
    gate.open()
    again = await ask(ada, receipt="ada-1")

    assert again.attempt == 1
    assert await story(coordinator) == ["job.added", "job.claimed"]
    assert (await again.submit()).state == "submitted"


@pytest.mark.both_stores
async def test_what_was_drawn_is_applied_once_although_its_caller_has_gone(
    coordinator: Coordinator, ada: Agent, gate: Gate
):
    claim = await claimed(ada)
    gate.close()
    task = asking(claim.submit({"lines": 7}, receipt="ada-1"))
    await gate.drawn()

    await gone(task)
    gate.open()
    again = await claim.submit({"lines": 7}, receipt="ada-1")

    assert again.state == "submitted"
    assert await story(coordinator) == ["job.added", "job.claimed", "job.submitted"]


@pytest.mark.both_stores
async def test_a_scope_of_anyio_that_is_cancelled_is_like_any_other_cancellation(
    coordinator: Coordinator, ada: Agent, gate: Gate, records: Records
):
    await ada.add_job("parser")
    gate.close()
    scope = anyio.CancelScope()

    async def ask() -> None:
        with scope:
            await ada.claim("parser", version=1)

    task = asking(ask())
    await gate.drawn()
    scope.cancel()
    await task
    gate.open()
    await records.until("release_job", "ok")

    assert scope.cancelled_caught
    assert await story(coordinator) == ["job.added", "job.claimed", "job.released"]


@pytest.mark.both_stores
async def test_waiting_for_work_that_is_given_up_leaves_no_claim_behind(
    coordinator: Coordinator, ada: Agent, bob: Agent, records: Records, gate: Gate
):
    task = asking(anext(ada.claims()))
    await records.until("claim_next", "nothing")
    await bob.add_job("parser")
    await coordinator.wait_for_job("parser", "claimed")

    claim = await task
    gate.close()
    other = asking(anext(ada.claims()))
    await gate.drawn()
    await gone(other)
    gate.open()
    await bob.add_job("lexer")

    assert (await coordinator.job("lexer")).state == "ready"
    assert claim.job.id == "parser"


# Gone before the writer gets to it


@pytest.mark.parametrize("coordinator", ["sqlite"], indirect=True)
async def test_a_command_whose_caller_has_gone_before_its_turn_is_dropped(
    coordinator: Coordinator, ada: Agent, database: Path, records: Records
):
    with turn_held(database):
        dropped = asking(ada.add_job("dropped", receipt="ada-1"))
        kept = asking(ada.add_job("kept"))
        await asyncio.sleep(0)  # both are queued
        await gone(dropped)

    await kept

    assert [entry.stream for entry in await entries(coordinator)] == ["job/kept"]
    assert await ada.recall("ada-1") is None
    assert [record.type for record in records.all] == ["add_job"]


@pytest.mark.parametrize("coordinator", ["sqlite"], indirect=True)
async def test_the_end_of_a_block_is_not_dropped_although_nobody_waits_for_it(
    coordinator: Coordinator, ada: Agent, database: Path
):
    claim = await claimed(ada)
    begun = asyncio.Event()

    async def work() -> None:
        async with claim.working():
            begun.set()
            await asyncio.Event().wait()

    task = asking(work())
    await begun.wait()
    with turn_held(database):
        await gone(task)

    assert (await coordinator.wait_for_job("parser", "ready")).reason == "cancelled"


@pytest.mark.both_stores
async def test_cancelling_hundreds_of_callers_disturbs_nobody_else(coordinator: Coordinator, ada: Agent, gate: Gate):
    gate.close()
    first = asking(ada.add_job("first"))
    await gate.drawn()
    tasks = [asking(ada.add_job(f"job-{number}")) for number in range(300)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        await gone(task)
    gate.open()

    await asyncio.gather(first, *tasks[1::2])

    assert {job.id for job in await coordinator.jobs()} == {"first"} | {f"job-{n}" for n in range(1, 300, 2)}


@pytest.mark.both_stores
async def test_a_read_that_is_given_up_disturbs_nobody_else(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    for _ in range(20):
        task = asking(coordinator.jobs())
        await asyncio.sleep(0)
        task.cancel()

    async with asyncio.timeout(PATIENCE_S):
        assert [job.id for job in await coordinator.jobs()] == ["parser"]


async def test_a_claim_whose_caller_was_cancelled_is_given_back_also_when_the_coordinator_closes_at_once(
    database: Path, gate: Gate
):
    coordinator = await Coordinator.open(database).__aenter__()
    ada = coordinator.agent("ada")
    job = await ada.add_job("parser")
    gate.close()
    claiming = asyncio.create_task(ada.claim(job))
    await gate.drawn()

    claiming.cancel()
    await asyncio.wait([claiming])
    closing = asyncio.create_task(coordinator.close())
    soon(lambda: open_and_block_the_loop(gate))
    await closing

    async with Coordinator.open(database) as again:
        assert (await again.job("parser")).state == "ready"
        assert await story(again) == ["job.added", "job.claimed", "job.released"]


def soon(function: Callable[[], None], turns: int = 10) -> None:
    """In a few turns of the loop, when closing has told the writer what it has to tell it."""
    loop = asyncio.get_running_loop()
    if turns:
        loop.call_soon(soon, function, turns - 1)
    else:
        loop.call_soon(function)


def open_and_block_the_loop(gate: Gate) -> None:
    """The writer goes on, and could end, before the loop hears of the claim."""
    gate.open()
    time.sleep(0.1)


def test_a_claim_whose_caller_is_cancelled_because_the_program_ends_is_given_back_too(database: Path, gate: Gate):
    async def program() -> None:
        coordinator = await Coordinator.open(database).__aenter__()
        ada = coordinator.agent("ada")
        job = await ada.add_job("parser")
        gate.close()
        claiming = asyncio.create_task(ada.claim(job))
        claiming.add_done_callback(lambda _: soon(lambda: open_and_block_the_loop(gate)))
        await gate.drawn()

    asyncio.run(program())

    async def left() -> list[str]:
        async with Coordinator.open(database) as again:
            return await story(again)

    assert asyncio.run(left()) == ["job.added", "job.claimed", "job.released"]
