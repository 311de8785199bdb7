"""Doing the last things to the end."""

import asyncio

import anyio
import pytest

from coordinator.certain import certainly


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
