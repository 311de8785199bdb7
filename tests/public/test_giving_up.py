"""Whoever gives up while somebody else has the turn does not wait for it, however long a command may wait."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from coordinator import Busy, Coordinator, NewerFormat
from coordinator.hosting import SqliteHost
from tests.public.support import PATIENCE_S, entries, turn_held

LONG_S = 3_600


@pytest.fixture
async def patient(database: Path) -> AsyncIterator[Coordinator]:
    """A coordinator whose commands wait for an hour."""
    async with Coordinator.open(database, busy_timeout_s=LONG_S) as coordinator:
        yield coordinator


async def test_closing_waits_for_no_turn_when_nothing_is_asked(patient: Coordinator, database: Path):
    with turn_held(database):
        ending = asyncio.create_task(patient.close())
        in_time, _ = await asyncio.wait([ending], timeout=PATIENCE_S)

    assert in_time


async def test_closing_does_not_wait_for_commands_whose_callers_have_gone(patient: Coordinator, database: Path):
    ada = patient.agent("ada")

    with turn_held(database):
        adding = [asyncio.create_task(ada.add_job(f"job-{number}")) for number in range(3)]
        await asyncio.sleep(0)  # they wait
        for task in adding:
            task.cancel()
        await asyncio.wait(adding)
        ending = asyncio.create_task(patient.close())
        in_time, _ = await asyncio.wait([ending], timeout=PATIENCE_S)

    assert in_time
    async with Coordinator.open(database) as again:
        assert await entries(again) == []


async def test_who_stays_still_gets_the_turn_when_those_before_him_have_gone(patient: Coordinator, database: Path):
    ada = patient.agent("ada")

    async with asyncio.timeout(PATIENCE_S):
        with turn_held(database):
            gone, stays = [asyncio.create_task(ada.add_job(id)) for id in ("gone", "stays")]
            await asyncio.sleep(0)  # they wait
            gone.cancel()
            await asyncio.wait([gone])
        await stays

    assert [job.id for job in await patient.jobs()] == ["stays"]


@pytest.mark.parametrize("by", ["scope", "task"])
async def test_opening_that_is_cancelled_does_not_wait_for_the_turn(by: str, database: Path):
    coordinator = Coordinator.open(database, busy_timeout_s=LONG_S)
    scope = anyio.CancelScope()

    async def enter() -> None:
        with scope:
            await coordinator.__aenter__()

    with turn_held(database):
        opening = asyncio.create_task(enter())
        await asyncio.sleep(0)  # it is under way
        cancel: Any = scope.cancel if by == "scope" else opening.cancel
        cancel()
        in_time, _ = await asyncio.wait([opening], timeout=PATIENCE_S)

    assert in_time
    async with coordinator:
        assert await coordinator.jobs() == []


async def test_opening_that_is_cancelled_twice_can_be_tried_again(database: Path):
    coordinator = Coordinator.open(database, busy_timeout_s=LONG_S)

    with turn_held(database):
        opening = asyncio.create_task(coordinator.__aenter__())
        await asyncio.sleep(0)  # it is under way
        opening.cancel()
        await asyncio.sleep(0)  # it is being undone
        opening.cancel()
        await asyncio.wait([opening])

    async with coordinator:
        assert await coordinator.jobs() == []


async def test_opening_can_fail_late_and_then_early(database: Path):
    async with Coordinator.open(database) as first:
        await first.agent("ada").add_job("parser")
    coordinator = Coordinator.open(database, busy_timeout_s=0.05)
    with newer_views(database), pytest.raises(NewerFormat):
        await coordinator.__aenter__()

    with turn_held(database), pytest.raises(Busy):
        await coordinator.__aenter__()

    async with coordinator:
        assert [job.id for job in await coordinator.jobs()] == ["parser"]


async def test_what_closing_has_done_already_it_can_do_once_more(database: Path):
    """As it does if the program ends meanwhile; see `Once`."""
    host = SqliteHost(str(database))
    async with Coordinator(host) as coordinator:
        session = coordinator._open()

    await session._close()
    await host._close()

    assert not host.opened


@contextmanager
def newer_views(database: Path) -> Iterator[None]:
    """What is found out only when everything is open already."""
    with closing(sqlite3.connect(database)) as connection:
        (ours,) = connection.execute("SELECT folds FROM head").fetchone()
        for each in (999, ours):
            connection.execute("UPDATE head SET folds = ?", (each,))
            connection.commit()
            if each != ours:
                yield
