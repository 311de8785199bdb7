"""The worker as a process: what it reads and says, and that an operation orders once, whatever befalls it."""

from __future__ import annotations

import signal
import sqlite3
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from examples.reorder import orders
from examples.reorder.orders import FenceTooLow, Order, OrderExists
from examples.reorder.plan import Arguments, Line, Plan, preview
from examples.reorder.rehearsal import Point
from examples.reorder.warehouse import opened
from examples.reorder.work import BAD_ASSIGNMENT, FENCE_TOO_LOW, ORDER_EXISTS, PLAN_OUTDATED
from tests.examples.support import OPERATION, Shop

KILLED = -signal.SIGKILL
TOO_LONG_S = 3_600.0


def test_a_worker_orders_what_was_planned_and_leaves_the_order_as_a_file(shop: Shop) -> None:
    plan = preview(shop.database, Arguments(supplier="north", weeks=4))

    ended = shop.run()

    order = shop.order()
    assert (ended.status, ended.complaint) == (0, "")
    assert order is not None
    assert order.lines == plan.lines
    assert msgspec.json.decode(shop.file.read_bytes(), type=Order) == order
    result = {"order": 1, "supplier": "north", "lines": len(plan.lines), "units": plan.units, "cents": plan.cents}
    assert ended.said[-1] == {"result": result}


def test_a_worker_tells_how_far_it_is(shop: Shop) -> None:
    ended = shop.run()

    progress = [message["progress"] for message in ended.said[:-1]]
    assert all(before["read"] < after["read"] for before, after in pairwise(progress))
    assert progress[0] == {"read": 728, "of": 36_400}
    assert progress[-1] == {"read": 36_400, "of": 36_400}


def test_a_second_worker_for_the_same_operation_orders_nothing_and_says_so_before_it_pulls(shop: Shop) -> None:
    shop.run(attempt=1)
    before = shop.file.read_bytes()

    again = shop.run(attempt=2)

    assert (again.status, again.said) == (ORDER_EXISTS, [])
    assert f"operation {OPERATION} has draft order 1 already" in again.complaint
    assert shop.count() == 1
    assert shop.file.read_bytes() == before


def test_another_operation_has_an_order_of_its_own(shop: Shop) -> None:
    shop.run()

    ended = shop.run(operation_id="reorder-2", fence=1)

    assert (ended.status, shop.count()) == (0, 2)


@pytest.mark.parametrize(("point", "made", "left"), [
    ("before the draft", 0, False),
    ("after the draft", 1, False),
    ("after the file", 1, True),
])  # fmt: skip
def test_a_worker_that_dies_has_ordered_only_if_it_got_as_far(shop: Shop, point: Point, made: int, left: bool) -> None:
    shop.rehearse(dies=point)

    ended = shop.run()

    assert ended.status == KILLED
    assert "result" not in ended.said[-1]
    assert (shop.count(), shop.file.exists()) == (made, left)


def test_the_attempt_after_a_death_before_the_draft_orders_once(shop: Shop) -> None:
    shop.rehearse(dies="before the draft")
    shop.run(attempt=1)

    ended = shop.run(attempt=2)

    order = shop.order()
    assert (ended.status, shop.count()) == (0, 1)
    assert order is not None
    assert order.attempt == 2


@pytest.mark.parametrize("point", ["after the draft", "after the file"])
def test_the_attempt_after_a_death_beyond_the_draft_does_not_order_again(shop: Shop, point: Point) -> None:
    shop.rehearse(dies=point)
    shop.run(attempt=1)

    ended = shop.run(attempt=2)

    assert (ended.status, shop.count()) == (ORDER_EXISTS, 1)


def test_a_worker_that_is_killed_while_it_pulls_has_ordered_nothing(shop: Shop) -> None:
    shop.rehearse(pause_s=TOO_LONG_S)
    worker = shop.start()
    worker.next_message()

    worker.kill()

    assert worker.ended().status == KILLED
    assert shop.count() == 0


def test_a_worker_that_stalled_and_was_replaced_orders_nothing_when_it_goes_on(shop: Shop) -> None:
    shop.rehearse(pause_s=0.5)  # 25 s in all: it will not be done before it is stalled
    late = shop.start(attempt=1)
    late.next_message()
    late.stall()
    shop.rehearse(pause_s=0, dies="before the draft")
    shop.run(attempt=2)

    late.go_on()

    ended = late.ended()
    assert ended.status == FENCE_TOO_LOW
    assert "this worker's fence is 10, the highest 20" in ended.complaint
    assert "result" not in ended.said[-1]
    assert (shop.count(), shop.file.exists()) == (0, False)


def test_a_worker_that_comes_after_its_successor_does_not_even_begin(shop: Shop) -> None:
    shop.rehearse(dies="before the draft")
    shop.run(attempt=2)

    late = shop.run(attempt=1)

    assert (late.status, late.said, shop.count()) == (FENCE_TOO_LOW, [], 0)


def test_an_order_that_was_made_while_a_worker_pulled_is_not_made_again(shop: Shop) -> None:
    plan = preview(shop.database, Arguments(supplier="north", weeks=4))
    with opened(shop.database) as ours, opened(shop.database) as theirs:
        orders.announce(ours, OPERATION, 1)
        orders.place(theirs, plan, operation=OPERATION, attempt=1, fence=1)

        with pytest.raises(OrderExists):
            orders.place(ours, plan, operation=OPERATION, attempt=1, fence=1)

    assert shop.count() == 1


def test_a_refused_worker_does_not_lower_the_fence(shop: Shop) -> None:
    with opened(shop.database) as connection:
        orders.announce(connection, OPERATION, 20)
        for _ in range(2):
            with pytest.raises(FenceTooLow):
                orders.announce(connection, OPERATION, 19)
        orders.announce(connection, OPERATION, 20)


def test_an_order_is_made_with_all_its_lines_or_not_at_all(shop: Shop) -> None:
    good = Line(product=1, packs=1, units=1, cents=1)
    of_nothing = Line(product=9_999, packs=1, units=1, cents=1)
    plan = Plan(supplier="north", weeks=1, lines=(good, of_nothing))

    with opened(shop.database) as connection, pytest.raises(sqlite3.IntegrityError):
        orders.place(connection, plan, operation=OPERATION, attempt=1, fence=1)

    assert (shop.count(), shop.order()) == (0, None)


def test_the_database_itself_has_room_for_one_order_an_operation(shop: Shop) -> None:
    shop.run()

    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        shop.do(f"INSERT INTO draft_orders (operation, attempt, supplier, weeks) VALUES ('{OPERATION}', 2, 'north', 4)")


def test_what_was_not_approved_is_not_ordered(shop: Shop) -> None:
    approved = preview(shop.database, Arguments(supplier="north", weeks=4))
    shop.do("UPDATE stock_history SET on_hand = on_hand + 1000 WHERE product = 1")

    ended = shop.run(plan=msgspec.to_builtins(approved))

    assert ended.status == PLAN_OUTDATED
    assert "moved on since the plan was approved" in ended.complaint
    assert (shop.count(), shop.file.exists()) == (0, False)


def test_where_nothing_is_needed_nothing_is_ordered_and_the_worker_succeeds(shop: Shop) -> None:
    shop.do("UPDATE stock_history SET on_hand = 1000000")

    ended = shop.run()

    nothing = {"order": None, "supplier": "north", "lines": 0, "units": 0, "cents": 0}
    assert (ended.status, ended.said[-1]) == (0, {"result": nothing})
    assert (shop.count(), shop.file.exists()) == (0, False)


@pytest.mark.parametrize(("otherwise", "complaint"), [
    ({"arguments": {"supplier": "north", "weeks": 0}}, "$.arguments.weeks"),
    ({"arguments": {"supplier": "north", "weeks": "4"}}, "$.arguments.weeks"),
    ({"arguments": {"supplier": "north", "weeks": 4, "packs": 1}}, "packs"),
    ({"arguments": {"supplier": "nobody", "weeks": 4}}, "there is no supplier 'nobody'"),
    ({"artifacts": "/nowhere/at/all"}, "/nowhere/at/all is not a folder"),
    ({"fence": "7"}, "$.fence"),
])  # fmt: skip
def test_an_assignment_that_cannot_be_carried_out_is_refused_by_name_of_what_is_wrong(
    shop: Shop, otherwise: dict[str, Any], complaint: str
) -> None:
    ended = shop.run(**otherwise)

    assert (ended.status, ended.said, shop.count()) == (BAD_ASSIGNMENT, [], 0)
    assert complaint in ended.complaint


@pytest.mark.parametrize("given", [b"", b"{", b"[]", b'{"operation_id": "\xff"}'])
def test_what_is_no_assignment_is_refused(shop: Shop, given: bytes) -> None:
    ended = shop.start_with(given).ended()

    assert (ended.status, ended.said) == (BAD_ASSIGNMENT, [])
    assert "Traceback" not in ended.complaint
