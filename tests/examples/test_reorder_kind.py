"""The kind that the coordinator runs: what its check finds, and that it orders what was approved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from coordinator import AttemptRecord, Coordinator, Finding, OperationStatus
from events.operations import OperationState
from examples.reorder.kind import Reorder
from examples.reorder.plan import Arguments, Plan
from examples.reorder.rehearsal import Point
from tests.examples.support import OPERATION, TIMEOUT_S, Shop

ARGUMENTS = Arguments(supplier="north", weeks=4)


async def found(shop: Shop, state: OperationState, result: Mapping[str, Any] | None = None) -> Finding:
    record = AttemptRecord(
        operation_id=OPERATION,
        attempt=1,
        state=state,
        artifacts=(),
        folder=shop.artifacts,
        _result=None if result is None else Raw(msgspec.json.encode(result)),
    )
    return await Reorder(shop.database).check(ARGUMENTS, record)


@pytest.mark.parametrize("state", ["failed", "stopped", "interrupted"])
async def test_where_nothing_was_ordered_nothing_stands_in_the_way(shop: Shop, state: OperationState) -> None:
    finding = await found(shop, state)

    assert finding == Finding(agrees=True, note="nothing was ordered")


@pytest.mark.parametrize("point", ["after the draft", "after the file"])
async def test_an_order_that_the_log_does_not_know_disagrees(shop: Shop, point: Point) -> None:
    shop.rehearse(dies=point)
    shop.run()

    finding = await found(shop, "failed")

    order = shop.order()
    assert order is not None
    assert not finding.agrees
    assert finding.note.startswith("draft order 1 was made by attempt 1; ")
    assert finding.note.endswith(f"; it has {len(order.lines)} lines, and the log says failed")


async def test_a_recorded_result_agrees_with_its_order(shop: Shop) -> None:
    result = shop.run().said[-1]["result"]

    finding = await found(shop, "succeeded", result)

    assert finding.agrees


async def test_a_recorded_result_disagrees_with_another_order(shop: Shop) -> None:
    result = shop.run().said[-1]["result"]

    finding = await found(shop, "succeeded", result | {"units": result["units"] + 1})

    assert (finding.agrees, finding.note.endswith("; the log tells of another result")) == (False, True)


async def test_a_recorded_order_that_is_gone_disagrees(shop: Shop) -> None:
    result = shop.run().said[-1]["result"]
    shop.do("DELETE FROM order_lines")
    shop.do("DELETE FROM draft_orders")
    shop.file.unlink()

    finding = await found(shop, "succeeded", result)

    assert not finding.agrees


async def test_a_success_that_needed_no_order_agrees(shop: Shop) -> None:
    shop.do("UPDATE stock_history SET on_hand = 1000000")
    result = shop.run().said[-1]["result"]

    finding = await found(shop, "succeeded", result)

    assert finding.agrees


async def test_an_approved_plan_is_ordered_and_only_as_long_as_it_is_still_the_plan(shop: Shop, tmp_path: Path) -> None:
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        coordinator.register(Reorder(shop.database))
        outdated = await attempt(
            coordinator, shop, "UPDATE stock_history SET on_hand = on_hand + 100 WHERE product = 1"
        )
        orders_then = shop.count()

        ended = await attempt(coordinator, shop)

    assert (outdated.state, outdated.advice, orders_then) == ("failed", "look, then approve again", 0)
    assert "moved on since the plan was approved" in (outdated.stderr or "")
    assert (ended.state, ended.attempt, ended.advice) == ("succeeded", 2, "done")
    order = shop.order()
    assert order is not None
    assert order.lines == msgspec.convert(ended.plan, Plan).lines
    assert [artifact.path for artifact in ended.artifacts] == ["order.json"]


async def attempt(coordinator: Coordinator, shop: Shop, meanwhile: str | None = None) -> OperationStatus:
    """An approved attempt; what happens between its preview and its approval."""
    ada = coordinator.agent("ada")
    preview = await ada.preview("reorder", ARGUMENTS, operation_id=OPERATION)
    if meanwhile is not None:
        shop.do(meanwhile)
    with anyio.fail_after(TIMEOUT_S):
        return await (await ada.apply(preview)).wait()
