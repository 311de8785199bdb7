"""Doing the last things to the end."""

import asyncio

import anyio
import pytest

from coordinator.certain import Once, certainly


async def test_the_steps_run_to_their_end_and_the_cancellation_is_passed_on() -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def steps() -> None:
        begun.set()
        await go_on.wait()
        ended.set()

    task = asyncio.create_task(certainly(steps()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_cancellation_is_not_lost_when_the_steps_fail() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def steps() -> None:
        begun.set()
        await go_on.wait()
        raise ValueError("failed")

    task = asyncio.create_task(certainly(steps()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_scope_that_is_cancelled_already_does_not_keep_the_steps_from_their_end() -> None:
    results: list[str] = []

    with anyio.CancelScope() as scope:
        scope.cancel()
        results.append(await certainly(asyncio.sleep(0, "done")))

    assert results == ["done"]


async def test_what_the_end_of_the_program_cut_off_is_begun_anew() -> None:
    begun: list[str] = []
    go_on = asyncio.Event()

    async def steps() -> None:
        begun.append("begun")
        await go_on.wait()

    task = asyncio.create_task(Once(steps)())
    await some_turns()
    for each in asyncio.all_tasks() - {asyncio.current_task()}:  # as `asyncio.run` does at its end
        each.cancel()
    await some_turns()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert begun == ["begun", "begun"]


async def some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_asks_again_waits_for_the_same_end() -> None:
    begun: list[str] = []

    async def steps() -> str:
        begun.append("begun")
        await asyncio.sleep(0)
        return "done"

    once = Once(steps)
    results = [*await asyncio.gather(once(), once()), await once()]

    assert results == ["done", "done", "done"]
    assert begun == ["begun"]
