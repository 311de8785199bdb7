"""Every public call, cancelled at each of its steps in turn until it comes to its end, and left behind at each of them
by a program that ends. What they are and what must hold afterwards is in `writes.py`, `claims.py`, `pages.py`,
`reads.py`, `waits.py` and `lifetimes.py`; what a step is, in `stepping.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from coordinator import Coordinator
from coordinator.testing import ManualClock
from tests.public.cancelling.claims import CLAIMS
from tests.public.cancelling.lifetimes import BLOCKS, COPIES, LIFETIMES
from tests.public.cancelling.operations import OPERATIONS
from tests.public.cancelling.pages import PAGES
from tests.public.cancelling.public_coroutines import public_coroutines
from tests.public.cancelling.reads import LOGS, READS
from tests.public.cancelling.row import Row
from tests.public.cancelling.stepping import (
    EVERY_WAY,
    SOME_WAYS,
    Ended,
    Hold,
    Steps,
    Way,
    begin,
    failures_unheard,
    tasks_followed,
)
from tests.public.cancelling.waits import WAITS
from tests.public.cancelling.world import World, is_free
from tests.public.cancelling.writes import WRITES
from tests.public.support import PATIENCE_S

MOST_STEPS = 60  # far more than any call takes

ROWS: dict[str, Row] = {
    **WRITES,
    **CLAIMS,
    **PAGES,
    **READS,
    **LOGS,
    **WAITS,
    **BLOCKS,
    **LIFETIMES,
    **COPIES,
    **OPERATIONS,
}

LEFT = {name: row for name, row in ROWS.items() if name not in WRITES or name == "submit"}  # writes all wait alike


def each_of(rows: dict[str, Row]) -> pytest.MarkDecorator:
    """A test for each call, on each store where there is one."""
    found = [pytest.param(row, place, id=f"{name}, {place}") for name, row in rows.items() for place in row.places]
    return pytest.mark.parametrize(("row", "place"), found)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Hold:
    """And what is done in portions takes several of them."""
    monkeypatch.setattr("coordinator.log._PAGE", 2)
    monkeypatch.setattr("coordinator.decisions.claims.CANDIDATES", 1)
    return Hold(monkeypatch)


def test_the_table_has_every_public_name_that_can_be_awaited_iterated_or_entered():
    assert {name for row in ROWS.values() for name in row.covers} == public_coroutines()


@each_of(ROWS)
async def test_a_call_can_be_cancelled_at_any_step(row: Row, place: str, hold: Hold, tmp_path: Path):
    file, failures = tmp_path / "work.db" if place == "sqlite" else None, failures_unheard()
    async with Coordinator.open(file or "memory:", clock=ManualClock()) as coordinator:
        world = World(coordinator, hold, file)
        for way in SOME_WAYS if file else EVERY_WAY:
            for step in count(1):
                with told_where(f"cancelled {way}, at step {step}"):
                    ended = await cancelled(row, world, Steps(hold, way, step))
                    assert failures == []
                    if not ended.reached:
                        break
                    assert step < MOST_STEPS


async def cancelled(row: Row, world: World, steps: Steps) -> Ended:
    """What became of the call, which was cancelled when it had come so far."""
    world.new()
    given = await row.given(world)
    await world.begin()

    async with asyncio.timeout(PATIENCE_S):
        with tasks_followed():
            call = begin(steps, lambda: row.ask(world, given))
            if row.meanwhile is not None:
                await row.meanwhile(world, given)
            ended = await call

    await world.search_has_ended()
    await world.operations_have_ended()
    assert isinstance(ended.answer, Coordinator) or world.tasks_left() == set()
    await world.is_undisturbed()
    await row.afterwards(world, given, ended)
    await world.clear()
    return ended


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # aiosqlite's, if it was cut off while it opens
@each_of(LEFT)
def test_a_program_can_leave_at_any_step_without_closing(row: Row, place: str, hold: Hold, tmp_path: Path):
    before = set(threading.enumerate())
    for step in count(1):
        file = tmp_path / f"{step}.db" if place == "sqlite" else None
        with told_where(f"left at step {step}"):
            failures, ended = asyncio.run(left(row, file, Steps(hold, Way("task", "applied"), step)))
            assert failures == []
            assert kept_alive(before) == []
            if file is not None:
                is_free(file)
            if not ended.reached:
                break
            assert step < MOST_STEPS


async def left(row: Row, file: Path | None, steps: Steps) -> tuple[list[Any], Ended]:
    """The program: it ends when the call has come so far. What failed in it, and what became of the call."""
    failures = failures_unheard()
    coordinator = await Coordinator.open(file or "memory:", clock=ManualClock()).__aenter__()
    world = World(coordinator, steps.hold, file)
    world.new()
    given = await row.given(world)
    await world.begin()

    over = asyncio.Event()
    with tasks_followed():
        going: list[asyncio.Future[Any]] = [begin(steps, lambda: row.ask(world, given))]
        going[0].add_done_callback(lambda _: over.set())
        steps.strike = over.set
        if row.meanwhile is not None:
            going.append(asyncio.ensure_future(row.meanwhile(world, given)))
        async with asyncio.timeout(PATIENCE_S):
            await over.wait()
    return failures, steps.ended


def kept_alive(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads for which the interpreter would wait when it ends. One that was told to end may take a moment."""
    new = [thread for thread in set(threading.enumerate()) - before if not thread.daemon]
    for thread in new:
        thread.join(5)
    return [thread for thread in new if thread.is_alive()]


@contextmanager
def told_where(note: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(note)
        raise
