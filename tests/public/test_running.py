"""Operations whose work is a function of this process: how it ends, what stops it, and what is recorded of that."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from coordinator import Agent, Coordinator, Work
from coordinator.testing import ManualClock
from tests.processes.support import run_program
from tests.public.operating import NORTH, Order, Reorder, Speechless, applied, ended, events, fails, lasting
from tests.public.support import PATIENCE_S, Records, entries, refusals, timers_are_done, turn_held


@pytest.fixture
def reorder(coordinator: Coordinator) -> Reorder:
    kind = Reorder()
    coordinator.register(kind)
    return kind


async def left_running(coordinator: Coordinator) -> None:
    """Until no attempt runs any more in this process."""
    runner = coordinator._open().operating.runner
    async with asyncio.timeout(PATIENCE_S):
        while runner._running:
            await asyncio.wait(list(runner._running))


# How it ends by itself


async def returns_nothing(arguments: Order, work: Work) -> Any:
    pass


async def returns_text(arguments: Order, work: Work) -> Any:
    return "done"


async def returns_too_much(arguments: Order, work: Work) -> Any:
    return {"rows": "x" * 300_000}


async def cancels_itself(arguments: Order, work: Work) -> Any:
    raise asyncio.CancelledError


async def awaits_what_was_cancelled(arguments: Order, work: Work) -> Any:
    other = asyncio.ensure_future(asyncio.Event().wait())
    other.cancel()
    await other


async def raises_without_words(arguments: Order, work: Work) -> Any:
    raise Speechless


async def raises_at_length(arguments: Order, work: Work) -> Any:
    raise ValueError("\ud800 odd" + "x" * 5_000)


@pytest.mark.both_stores
@pytest.mark.parametrize(
    ("working", "state", "reason"),
    [
        (returns_nothing, "succeeded", None),
        (fails, "failed", "ConnectionError: the supplier does not answer"),
        (returns_text, "failed", "result: must be"),
        (returns_too_much, "failed", "result: is 300,011 bytes"),
        (cancels_itself, "failed", "the work raised CancelledError, and nobody had cancelled it"),
        (awaits_what_was_cancelled, "failed", "the work raised CancelledError, and nobody had cancelled it"),
        (raises_without_words, "failed", "Speechless: its text could not be had (RuntimeError)"),
        (raises_at_length, "failed", "ValueError: \ufffd odd"),
    ],
)
async def test_how_work_ends_is_recorded(
    working: Any, state: str, reason: str | None, coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    reorder.working = working

    status = await ended(operation := await applied(ada))

    assert status.state == state
    assert (status.reason or "").startswith(reason or "")
    assert status.result == ({} if state == "succeeded" else None)
    assert await events(coordinator, operation.id) == ["queued", "started", state]
    await left_running(coordinator)


async def test_work_knows_what_it_works_for(coordinator: Coordinator, ada: Agent, reorder: Reorder):
    await ended(operation := await applied(ada))

    work = reorder.works[0]
    assert (work.operation_id, work.attempt) == (operation.id, 1)
    assert work.fence == next(entry.position for entry in await entries(coordinator) if entry.body.get("nonce"))


# What stops it


@pytest.mark.both_stores
async def test_cancelled_work_may_tidy_up_and_is_recorded_as_stopped(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    tidied: list[str] = []

    async def working(arguments: Order, work: Work) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append(work.operation_id)

    reorder.working = working
    operation = await applied(ada)
    await reorder.until_begun()

    await operation.cancel()

    status = await ended(operation)
    assert (status.state, status.reason, status.advice) == ("stopped", "cancelled", "look, then approve again")
    assert tidied == [operation.id]


async def test_work_whose_cancellation_came_with_its_approval_is_stopped(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    lasting(reorder)
    operation = coordinator.agent("ada").operation("order-7")
    preview = await ada.preview("reorder", NORTH, operation_id="order-7")

    await asyncio.gather(ada.apply(preview), operation.cancel())  # both in one batch

    assert (await ended(operation)).state == "stopped"


async def test_work_that_raises_when_it_is_stopped_was_stopped_all_the_same(ada: Agent, reorder: Reorder):
    async def working(arguments: Order, work: Work) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("cut off") from None

    reorder.working = working
    operation = await applied(ada)
    await reorder.until_begun()

    await operation.cancel()

    status = await ended(operation)
    assert (status.state, status.reason) == ("stopped", "cancelled")


async def test_work_that_comes_to_its_end_although_it_was_cancelled_has_succeeded(ada: Agent, reorder: Reorder):
    """It knows best whether it was done."""

    async def working(arguments: Order, work: Work) -> Any:
        with anyio.CancelScope(shield=True):
            await reorder.go_on.wait()
        return {"ordered": 40}

    reorder.working = working
    operation = await applied(ada)
    await reorder.until_begun()
    await operation.cancel()

    reorder.go_on.set()

    assert (await ended(operation)).state == "succeeded"


@pytest.mark.both_stores
async def test_work_is_stopped_when_its_time_limit_passes(ada: Agent, reorder: Reorder):
    lasting(reorder).time_limit_s = 0.01

    status = await ended(await applied(ada))

    assert (status.state, status.reason) == ("stopped", "its time limit passed")


async def test_closing_the_coordinator_stops_all_that_runs_and_records_it(database: Path, clock: ManualClock):
    kind = lasting(Reorder())
    async with Coordinator.open(database, clock=clock) as coordinator:
        coordinator.register(kind)
        ada = coordinator.agent("ada")
        operations = [await applied(ada, id=f"order-{number}") for number in range(3)]
        await kind.until_begun()
        applying = asyncio.ensure_future(applied(ada, id="order-late"))
        await asyncio.sleep(0)
    await asyncio.wait([applying])
    applying.exception()

    async with Coordinator.open(database, clock=clock) as coordinator:
        for operation in operations:
            status = await coordinator.agent("ada").operation(operation.id).status()
            assert (status.state, status.reason) == ("stopped", "the coordinator was closed")
        assert (await events(coordinator, "order-late"))[-1:] in ([], ["stopped"])


LEAVES = """
import asyncio, sys
import msgspec
from coordinator import Coordinator, Kind

class Arguments(msgspec.Struct):
    pass

class Lasting(Kind[Arguments]):
    name, arguments = "lasting", Arguments

    async def preview(self, arguments):
        return {}

    async def run(self, arguments, work):
        begun.set()
        await asyncio.Event().wait()

async def main():
    global begun
    begun = asyncio.Event()
    coordinator = await Coordinator.open(sys.argv[1]).__aenter__()
    coordinator.register(Lasting())
    ada = coordinator.agent("ada")
    await ada.apply(await ada.preview("lasting", {}, operation_id="order-7"))
    await begun.wait()
    print("done")

asyncio.run(main())
"""


async def test_a_program_that_leaves_without_closing_ends_and_its_work_reads_as_stopped_or_in_time_as_interrupted(
    tmp_path: Path,
):
    left = await asyncio.to_thread(run_program, LEAVES, "work.db", cwd=tmp_path)

    assert (left.returncode, left.stdout) == (0, "done\n"), left.stderr
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        status = await coordinator.agent("ada").operation("order-7").status()
        assert (status.state, status.reason) in (("stopped", "the program ended"), ("running", None))


async def test_a_loop_that_ends_without_closing_leaves_its_work_stopped(database: Path, clock: ManualClock):
    def program() -> None:
        async def main() -> None:
            kind = lasting(Reorder())
            coordinator = await Coordinator.open(database, clock=clock).__aenter__()
            coordinator.register(kind)
            await applied(coordinator.agent("ada"), id="order-7")
            await kind.until_begun()

        asyncio.run(main())

    await asyncio.to_thread(program)

    async with Coordinator.open(database, clock=clock) as coordinator:
        status = await ended(coordinator.agent("ada").operation("order-7"))
        assert (status.state, status.reason) == ("stopped", "the program ended")


# Its lease


@pytest.mark.both_stores
async def test_work_is_renewed_while_it_goes_on(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder, records: Records
):
    lasting(reorder)
    operation = await applied(ada)
    await reorder.until_begun()

    for count in range(1, 6):
        clock.advance(22)
        await records.until("renew_operation", "ok", count=count)

    assert (await operation.status()).state == "running"
    reorder.go_on.set()
    assert (await ended(operation)).state == "succeeded"


@pytest.mark.both_stores
async def test_work_whose_lease_ran_out_is_stopped_and_what_it_would_have_recorded_is_refused_in_the_log(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder
):
    lasting(reorder)
    operation = await applied(ada)
    await reorder.until_begun()

    clock.advance(61)
    await left_running(coordinator)

    status = await operation.status()
    assert (status.state, status.result) == ("interrupted", None)
    assert await events(coordinator, operation.id) == ["queued", "started", "lapsed"]
    assert ("ada", "stop_operation", "lease_lapsed") in await refusals(coordinator)


@pytest.mark.both_stores
async def test_work_that_another_attempt_took_over_cannot_record_its_result(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder
):
    """It does not notice that it is to stop, until the second attempt has ended."""
    release = asyncio.Event()

    async def working(arguments: Order, work: Work) -> Any:
        if work.attempt == 1:
            with anyio.CancelScope(shield=True):
                await release.wait()
        return {"attempt": work.attempt}

    reorder.working = working
    await applied(ada, id="order-7")
    await reorder.until_begun()
    clock.advance(61)
    second = await applied(ada, id="order-7")
    await reorder.until_begun()
    await ended(second)

    release.set()
    await left_running(coordinator)

    status = await second.status()
    assert (status.attempt, status.state, status.result) == (2, "succeeded", {"attempt": 2})
    assert ("ada", "succeed_operation", "token_superseded") in await refusals(coordinator)


async def test_work_is_stopped_when_its_lease_passes_while_the_store_does_not_answer(
    database: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
):
    kind = lasting(Reorder())
    async with Coordinator.open(database, clock=clock, busy_timeout_s=0.05) as coordinator:
        coordinator.register(kind)
        operation = await applied(coordinator.agent("ada"))
        await kind.until_begun()

        with turn_held(database), caplog.at_level(logging.WARNING):
            clock.advance(61)
            await left_running(coordinator)
            assert "attempt 1: the turn was held" in caplog.text

        assert (await operation.status()).state == "interrupted"


async def test_an_end_is_recorded_as_soon_as_the_store_answers_again(
    database: Path, clock: ManualClock, records: Records
):
    kind = lasting(Reorder())
    async with Coordinator.open(database, clock=clock, busy_timeout_s=0.02, observe=records) as coordinator:
        coordinator.register(kind)
        operation = await applied(coordinator.agent("ada"))
        await kind.until_begun()

        with turn_held(database):
            kind.go_on.set()
            await records.until("succeed_operation", "busy", count=2)

        assert (await ended(operation)).state == "succeeded"
        assert await events(coordinator, operation.id) == ["queued", "started", "succeeded"]


@pytest.mark.both_stores
async def test_work_that_ignores_its_cancellation_is_renewed_for_its_grace_and_not_longer(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder, records: Records
):
    cancelled = asyncio.Event()
    release = asyncio.Event()

    async def working(arguments: Order, work: Work) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
        with anyio.CancelScope(shield=True):
            await release.wait()
        await asyncio.sleep(0)

    reorder.working, reorder.grace_s = working, 0.02
    operation = await applied(ada)
    await reorder.until_begun()
    await operation.cancel()
    await cancelled.wait()
    attempt = next(iter(coordinator._open().operating.runner._running.values()))
    async with asyncio.timeout(PATIENCE_S):
        while attempt._renewal._running:
            await asyncio.sleep(0.01)

    clock.advance(61)
    await timers_are_done(coordinator)
    assert (await operation.status()).state == "interrupted"

    release.set()
    await left_running(coordinator)
    assert records.of("renew_operation", "ok") == []
    assert ("ada", "stop_operation", "lease_lapsed") in await refusals(coordinator)


async def test_work_that_has_ended_leaves_no_timer_behind_for_the_rest_of_its_grace(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    lasting(reorder)
    operation = await applied(ada)
    await reorder.until_begun()
    attempt = next(iter(coordinator._open().operating.runner._running.values()))

    await operation.cancel()
    await left_running(coordinator)
    attempt.stop("too late")

    assert attempt._grace is not None
    assert attempt._grace.cancelled()


# Progress


@pytest.mark.both_stores
async def test_progress_is_recorded_at_most_once_a_second_and_then_the_newest(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, records: Records, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("coordinator.progress._EVERY_S", 0.05)

    async def working(arguments: Order, work: Work) -> Any:
        for row in range(100):
            work.progress({"rows": row})
        await records.until("record_progress", "ok", count=2)
        await reorder.go_on.wait()

    reorder.working = working
    operation = await applied(ada)
    await records.until("record_progress", "ok", count=2)

    assert (await operation.status()).progress == {"rows": 99}
    reorder.go_on.set()
    await ended(operation)
    progress = await entries(coordinator, None, "operation.progressed")
    assert [entry.body["progress"] for entry in progress] == [{"rows": 0}, {"rows": 99}]


async def test_progress_is_told_from_any_thread_and_checked_where_it_is_told(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, records: Records
):
    def count(work: Work) -> None:
        assert threading.current_thread() is not threading.main_thread()
        work.progress({"rows": 1})
        work.progress({"rows": object()})

    async def working(arguments: Order, work: Work) -> Any:
        await asyncio.to_thread(count, work)

    reorder.working = working
    status = await ended(await applied(ada))

    assert (status.state, status.progress) == ("failed", {"rows": 1})
    assert "progress.rows" in (status.reason or "")


async def test_after_its_end_work_tells_no_progress(coordinator: Coordinator, ada: Agent, reorder: Reorder):
    await ended(await applied(ada))

    reorder.works[0].progress({"rows": 1})

    await ada.add_job("other")
    assert await refusals(coordinator) == []
    assert await entries(coordinator, None, "operation.progressed") == []
