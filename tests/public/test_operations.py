"""Applying what was approved: each row of the table of outcomes, and callers and stores that fail meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from coordinator import (
    Agent,
    ApprovalUnknown,
    Busy,
    Coordinator,
    InvalidInput,
    Operation,
    OperationBound,
    OperationUnknown,
    OutcomeUnknown,
    ReceiptConflict,
    Unavailable,
)
from coordinator.stores.checkpoint import Checkpoints
from coordinator.testing import ManualClock
from coordinator.tokens import Nonce
from tests.disks import fill, small_disk
from tests.public.cancelling.stepping import Hold
from tests.public.operating import NORTH, Checked, Reorder, applied, ended, events, fails, finding, lasting
from tests.public.support import PATIENCE_S, Gate, Records, refusals, turn_held


@pytest.fixture
def reorder(coordinator: Coordinator) -> Reorder:
    kind = Reorder()
    coordinator.register(kind)
    return kind


DONE = ["queued", "started", "succeeded"]

# The program of the README


@pytest.mark.both_stores
async def test_an_operation_is_previewed_approved_applied_and_waited_for(coordinator: Coordinator):
    coordinator.register(Reorder())
    ada = coordinator.agent("ada")
    preview = await ada.preview("reorder", {"supplier": "north", "weeks": 4})

    operation = await ada.apply(preview)
    assert (operation.id, operation.started, operation.attempt) == (preview.operation_id, True, 1)
    again = await ada.apply(preview)
    assert (again.id, again.started, again.attempt) == (preview.operation_id, False, None)
    with anyio.fail_after(PATIENCE_S):
        status = await operation.wait()

    assert (status.state, status.attempt, status.advice) == ("succeeded", 1, "done")
    assert (status.result, status.plan, status.arguments) == ({"ordered": 40}, preview.plan, preview.arguments)
    assert await events(coordinator, operation.id) == DONE


@pytest.mark.both_stores
async def test_apply_answers_as_soon_as_it_is_queued_and_the_work_goes_on_by_itself(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    lasting(reorder)

    operation = await applied(ada)

    assert (await operation.status()).advice == "wait"
    await reorder.until_begun()
    assert (await operation.status()).state == "running"
    reorder.go_on.set()
    assert (await ended(operation)).state == "succeeded"


# The table of outcomes, from its first row


@pytest.mark.both_stores
@pytest.mark.parametrize("change", [{"kind": "another"}, {"arguments": {"supplier": "north", "weeks": 5}}])
async def test_an_id_is_bound_to_its_kind_and_its_arguments(
    change: dict[str, Any], coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    operation = await applied(ada, id="order-7")
    await ended(operation)
    fresh = await ada.preview("reorder", NORTH, operation_id="order-7")

    with pytest.raises(OperationBound):
        await ada.apply(
            **{"operation_id": "order-7", "kind": "reorder", "arguments": NORTH, "grant": fresh.grant, **change}
        )

    assert await events(coordinator, "order-7") == DONE


@pytest.mark.both_stores
async def test_for_others_an_operation_does_not_exist_and_its_id_is_bound(
    coordinator: Coordinator, ada: Agent, bob: Agent, reorder: Reorder
):
    preview = await ada.preview("reorder", NORTH)
    await ended(await ada.apply(preview))
    of_ada, unknown = bob.operation(preview.operation_id), bob.operation("nothing")

    for operation in (of_ada, unknown):
        for ask in (
            operation.status,
            operation.wait,
            operation.cancel,
            lambda operation=operation: operation.reconcile("done", "looked"),
        ):
            with pytest.raises(OperationUnknown) as refused:
                await ask()
            assert str(refused.value).startswith(f"this agent has no operation {operation.id!r}")
    with pytest.raises(OperationBound) as bound:
        await bob.apply(preview)

    assert set(bound.value.__dict__["values"]) == {"operation"}
    assert await events(coordinator, preview.operation_id) == DONE


@pytest.mark.both_stores
async def test_what_has_succeeded_is_not_started_again_by_any_grant(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, clock: ManualClock
):
    first = await ada.preview("reorder", NORTH, operation_id="order-7")
    await ended(await ada.apply(first))
    fresh = await ada.preview("reorder", NORTH, operation_id="order-7")
    clock.advance(3_600)

    for grant in (first.grant, fresh.grant.reveal(), "grant-unheard-of"):
        operation = await ada.apply(operation_id="order-7", kind="reorder", arguments=NORTH, grant=grant)
        assert not operation.started
        assert (await operation.status()).result == {"ordered": 40}

    assert await events(coordinator, "order-7") == DONE


@pytest.mark.both_stores
async def test_a_grant_that_was_used_starts_nothing_more_whatever_became_of_it(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, clock: ManualClock
):
    reorder.working = fails
    preview = await ada.preview("reorder", NORTH)
    await ended(await ada.apply(preview))
    clock.advance(3_600)

    again = await ada.apply(
        operation_id=preview.operation_id, kind="reorder", arguments=NORTH, grant=preview.grant.reveal()
    )

    assert not again.started
    assert (await again.status()).state == "failed"
    assert await events(coordinator, again.id) == ["queued", "started", "failed"]


@pytest.mark.both_stores
async def test_while_an_attempt_is_live_no_other_starts(coordinator: Coordinator, ada: Agent, reorder: Reorder):
    lasting(reorder)
    await applied(ada, id="order-7")
    await reorder.until_begun()

    again = await applied(ada, id="order-7")

    assert not again.started
    assert (await again.status()).state == "running"
    assert await events(coordinator, "order-7") == ["queued", "started"]


@pytest.mark.both_stores
@pytest.mark.parametrize("end", ["failed", "stopped"])
async def test_what_failed_or_was_stopped_starts_anew_with_a_fresh_grant(
    end: str, coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    reorder.working = fails if end == "failed" else reorder.until_told
    operation = await applied(ada, id="order-7")
    await reorder.until_begun()
    await operation.cancel()
    assert (await ended(operation)).state == end
    reorder.working = None

    again = await applied(ada, id="order-7")

    assert (again.started, again.attempt) == (True, 2)
    status = await ended(again)
    assert (status.state, status.attempt, status.reason) == ("succeeded", 2, None)
    assert reorder.works[0].fence < reorder.works[1].fence
    assert reorder.works[0].artifacts != reorder.works[1].artifacts


async def test_a_receipt_is_answered_once_and_can_be_recalled(coordinator: Coordinator, ada: Agent, reorder: Reorder):
    preview = await ada.preview("reorder", NORTH)

    first = await ada.apply(preview, receipt="approve 7")
    again = await ada.apply(preview, receipt="approve 7")
    recalled = await ada.recall("approve 7")

    assert isinstance(recalled, Operation)
    assert first.id == again.id == recalled.id
    assert [(operation.started, operation.attempt) for operation in (first, again)] == [(True, 1), (False, 1)]
    await ended(recalled)
    assert await events(coordinator, first.id) == DONE
    other = await ada.preview("reorder", NORTH)
    with pytest.raises(ReceiptConflict):
        await ada.apply(other, receipt="approve 7")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"preview": "order-7"}, "preview: must be a Preview"),
        ({"operation_id": "order-7", "kind": "reorder", "grant": "g", "preview": None, "arguments": "x"}, "arguments"),
        ({"kind": "reorder", "grant": "g"}, "operation_id"),
        ({"operation_id": "order-7", "grant": "g"}, "kind"),
    ],
)
async def test_what_is_no_approval_at_all_is_refused_by_its_field(
    asked: dict[str, Any], said: str, coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    with pytest.raises(InvalidInput, match=said):
        await ada.apply(**asked)

    assert await refusals(coordinator) == []


async def test_a_preview_says_all_of_it(ada: Agent, reorder: Reorder):
    preview = await ada.preview("reorder", NORTH)

    with pytest.raises(InvalidInput, match="preview: says all of it"):
        await ada.apply(preview, grant=preview.grant)


# Restarts


async def test_after_a_restart_an_old_grant_reads_the_status_if_it_was_used_and_is_unknown_otherwise(
    database: Path, clock: ManualClock
):
    kind = Reorder()
    async with Coordinator.open(database, clock=clock) as coordinator:
        coordinator.register(kind)
        ada = coordinator.agent("ada")
        used, unused = [await ada.preview("reorder", NORTH) for _ in range(2)]
        await ended(await ada.apply(used))

    async with Coordinator.open(database, clock=clock) as coordinator:
        coordinator.register(kind)
        ada = coordinator.agent("ada")

        operation = await ada.apply(used)
        with pytest.raises(ApprovalUnknown) as refused:
            await ada.apply(unused)

        assert not operation.started
        assert (await operation.status()).result == {"ordered": 40}
        assert refused.value.code == "approval_unknown"
    assert len(kind.works) == 1


async def test_what_ran_when_the_coordinator_was_closed_is_stopped_and_its_grant_starts_nothing_after_a_restart(
    database: Path, clock: ManualClock
):
    kind = lasting(Reorder())
    async with Coordinator.open(database, clock=clock) as coordinator:
        coordinator.register(kind)
        preview = await coordinator.agent("ada").preview("reorder", NORTH)
        await coordinator.agent("ada").apply(preview)
        await kind.until_begun()

    async with Coordinator.open(database, clock=clock) as coordinator:
        coordinator.register(kind)
        operation = await coordinator.agent("ada").apply(preview)

        status = await operation.status()
        assert (status.state, status.reason, operation.started) == ("stopped", "the coordinator was closed", False)
    assert len(kind.works) == 1


# Callers that go


async def test_a_caller_who_goes_before_the_approval_is_drawn_starts_nothing(
    coordinator: Coordinator, ada: Agent, bob: Agent, reorder: Reorder, gate: Gate
):
    preview = await ada.preview("reorder", NORTH)
    gate.close()
    first = asyncio.create_task(bob.add_job("first"))
    await gate.drawn()
    applying = asyncio.create_task(ada.apply(preview))
    await asyncio.sleep(0)

    applying.cancel()
    await asyncio.wait([applying])
    gate.open()
    await first
    await bob.add_job("second")

    assert await events(coordinator, preview.operation_id) == []
    assert reorder.works == []
    assert (await ada.apply(preview)).started


@pytest.mark.both_stores
@pytest.mark.parametrize("by", ["task", "scope"])
async def test_what_was_drawn_starts_although_its_caller_has_gone(
    by: str, coordinator: Coordinator, ada: Agent, reorder: Reorder, gate: Gate
):
    preview = await ada.preview("reorder", NORTH)
    scope = anyio.CancelScope()

    async def apply() -> None:
        with scope:
            await ada.apply(preview)

    gate.close()
    applying = asyncio.create_task(apply())
    await gate.drawn()

    applying.cancel() if by == "task" else scope.cancel()
    await asyncio.wait([applying])
    gate.open()

    await reorder.until_begun()
    again = await ada.apply(preview)
    assert not again.started
    assert (await ended(again)).state == "succeeded"
    assert len(reorder.works) == 1


# Stores that fail


@pytest.mark.both_stores
async def test_an_approval_whose_commit_was_in_doubt_starts_once(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, monkeypatch: pytest.MonkeyPatch
):
    hold = Hold(monkeypatch)
    preview = await ada.preview("reorder", NORTH)
    hold.lose_the_next_answer()

    operation = await ada.apply(preview)

    assert operation.started
    assert (await ended(operation)).state == "succeeded"
    assert len(reorder.works) == 1
    assert await events(coordinator, operation.id) == DONE


async def test_only_the_request_whose_nonce_is_in_the_log_starts_what_it_is_answered_with(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, monkeypatch: pytest.MonkeyPatch
):
    """One that had been in doubt, was asked again, and then turned out to be in the log, answers both requests."""
    runner = coordinator._open().operating.runner
    take, taken = runner.take, list[tuple[Any, ...]]()
    monkeypatch.setattr(runner, "take", lambda *arguments: taken.append(arguments))
    operation = await applied(ada)
    request, sent_at, outcome = taken[0]
    nonce, request.nonce = request.nonce, Nonce(value="another", token_digest="f" * 64)

    take(request, sent_at, outcome)
    await ada.add_job("other")  # its answer comes behind what was started, if anything was
    assert not runner._running

    request.nonce = nonce
    take(request, sent_at, outcome)
    assert (await ended(operation)).state == "succeeded"


async def test_an_approval_that_reached_the_log_unknown_to_all_is_not_started_by_repeating_it(
    database: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    kind = Reorder()
    async with Coordinator.open(database, clock=clock, busy_timeout_s=0.1) as coordinator:
        coordinator.register(kind)
        ada = coordinator.agent("ada")
        preview = await ada.preview("reorder", NORTH)
        with monkeypatch.context() as patch:
            Hold(patch).lose_the_next_answer()
            patch.setattr(Checkpoints, "run", lambda checkpoints: False)  # so that it cannot be opened anew
            with pytest.raises(OutcomeUnknown) as unknown:
                await ada.apply(preview)

        operation = await ada.apply(preview, receipt=unknown.value.receipt)

        assert (await operation.status()).state == "queued"
        assert (operation.started, operation.attempt) == (False, 1)
        clock.advance(61)
        assert (await ended(operation)).state == "interrupted"
        assert kind.works == []
        again = await applied(ada, id=operation.id)
        assert ((await ended(again)).state, again.attempt) == ("succeeded", 2)


async def test_an_approval_that_found_the_turn_held_works_later_with_the_same_grant(database: Path):
    kind = Reorder()
    async with Coordinator.open(database, busy_timeout_s=0.05) as coordinator:
        coordinator.register(kind)
        ada = coordinator.agent("ada")
        preview = await ada.preview("reorder", NORTH)

        with turn_held(database), pytest.raises(Busy):
            await ada.apply(preview)
        assert await events(coordinator, preview.operation_id) == []

        operation = await ada.apply(preview)
        assert operation.started
        await ended(operation)
    assert len(kind.works) == 1


async def test_on_a_full_disk_an_approval_is_an_error_and_starts_nothing(tmp_path: Path):
    kind = Reorder()
    with small_disk(tmp_path / "disk", 1_000) as disk:
        async with Coordinator.open(disk / "work.db", busy_timeout_s=0.05, artifacts=tmp_path / "kept") as coordinator:
            coordinator.register(kind)
            ada = coordinator.agent("ada")
            await ada.add_job("first")
            preview = await ada.preview("reorder", {"supplier": "n" * 30_000})
            filler = fill(disk)

            with pytest.raises(Unavailable, match="full"):
                await ada.apply(preview)
            assert kind.works == []
            filler.unlink()
            assert await events(coordinator, preview.operation_id) == []

            operation = await ada.apply(preview)
            assert (await ended(operation)).state == "succeeded"
    assert len(kind.works) == 1


async def test_an_approval_is_applied_once_however_many_ask_at_once(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    preview = await ada.preview("reorder", NORTH)

    operations = await asyncio.gather(*(ada.apply(preview) for _ in range(20)))

    assert sorted(operation.started for operation in operations) == [False] * 19 + [True]
    await ended(operations[0])
    assert await events(coordinator, preview.operation_id) == DONE


async def test_an_approval_that_was_overtaken_during_the_check_starts_nothing(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, records: Records
):
    """While it looks at attempt 1, somebody starts attempt 2, which ends too."""
    kind = Checked(checking=finding(True), name="checked")
    coordinator.register(kind)
    kind.working = fails
    await ended(await applied(ada, "checked", id="order-7"))
    first = await ada.preview("checked", NORTH, operation_id="order-7")
    second = await ada.preview("checked", NORTH, operation_id="order-7")
    looked: list[int] = []

    async def checking(arguments: Any, record: Any) -> Any:
        looked.append(record.attempt)
        if len(looked) == 1:
            kind.checking = watching
            await ended(await ada.apply(second))
        return await finding(True)(arguments, record)

    async def watching(arguments: Any, record: Any) -> Any:
        looked.append(record.attempt)
        return await finding(True)(arguments, record)

    kind.checking = checking

    with pytest.raises(Exception, match="attempt 2 was approved; the next one would be 3"):
        await ada.apply(first)

    assert looked == [1, 1, 2]
    assert [work.attempt for work in kind.works] == [1, 2]
