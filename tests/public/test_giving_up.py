"""Whoever gives up while somebody else has the turn does not wait for it, however long a command may wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator import Coordinator
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
