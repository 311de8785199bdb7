"""The worker: pulls the history, plans, drafts one order, and leaves it as a file.

    python -m examples.reorder.work DATABASE

It reads one JSON object from standard input, to its end, and writes JSON objects to standard output, one a line:

    in   {"operation_id": "…", "attempt": 1, "fence": 7, "artifacts": "FOLDER",
          "arguments": {"supplier": "north", "weeks": 4}, "plan": {"supplier": "north", "weeks": 4, "lines": […]}}
    out  {"progress": {"read": 728, "of": 36400}}
         …
         {"result": {"order": 1, "supplier": "north", "lines": 41, "units": 1928, "cents": 999842}}

The order lies in the folder as `order.json` then. Ends with 0, or says on standard error what was wrong: 2 for an
assignment it cannot read or carry out, 3 if the operation has an order already, 4 if a later attempt has begun, 5 if
the history has moved on since the plan was approved.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from examples.reorder import order_file, orders
from examples.reorder.orders import FenceTooLow, Order, OrderExists
from examples.reorder.plan import Arguments, Plan, plan_order
from examples.reorder.rehearsal import die_if_rehearsed, pause_s
from examples.reorder.warehouse import History, SupplierUnknown, count_history, opened, pull

BAD_ASSIGNMENT, ORDER_EXISTS, FENCE_TOO_LOW, PLAN_OUTDATED = 2, 3, 4, 5


class Assignment(Struct, frozen=True, kw_only=True):
    """What stands on standard input."""

    operation_id: str
    attempt: int
    fence: int
    artifacts: str
    arguments: Arguments
    plan: Plan


class PlanOutdated(Exception):
    """What should be ordered now is not what a person has approved."""


class Result(Struct, frozen=True, kw_only=True):
    """What is told of an order; `order` is its number, None if nothing was needed."""

    order: int | None
    supplier: str
    lines: int
    units: int
    cents: int


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        return fail(BAD_ASSIGNMENT, "usage: python -m examples.reorder.work DATABASE, one that exists")
    try:
        assignment = msgspec.json.decode(sys.stdin.buffer.read(), type=Assignment)
        artifacts = Path(assignment.artifacts)
        # Now, and not when the order is made and only its file is missing.
        if not artifacts.is_dir():
            return fail(BAD_ASSIGNMENT, f"{artifacts} is not a folder")
        with opened(Path(sys.argv[1])) as connection:
            work(connection, assignment, artifacts)
    except (msgspec.DecodeError, UnicodeDecodeError, SupplierUnknown) as error:
        return fail(BAD_ASSIGNMENT, str(error))
    except OrderExists as error:
        return fail(ORDER_EXISTS, str(error))
    except FenceTooLow as error:
        return fail(FENCE_TOO_LOW, str(error))
    except PlanOutdated as error:
        return fail(PLAN_OUTDATED, str(error))
    return 0


def work(connection: sqlite3.Connection, assignment: Assignment, artifacts: Path) -> None:
    arguments, operation, fence = assignment.arguments, assignment.operation_id, assignment.fence
    orders.announce(connection, operation, fence)
    plan = plan_order(arguments, slowly_pull(connection, arguments.supplier))
    if plan != assignment.plan:
        raise PlanOutdated("the history has moved on since the plan was approved; nothing was ordered")
    die_if_rehearsed(connection, "before the draft")
    if not plan.lines:
        say({"result": nothing_needed(arguments.supplier)})
        return
    # The one step that cannot be taken back. A worker that dies beyond it leaves an order that its log does not know.
    order = orders.place(connection, plan, operation=operation, attempt=assignment.attempt, fence=fence)
    die_if_rehearsed(connection, "after the draft")
    order_file.write(artifacts, order)
    die_if_rehearsed(connection, "after the file")
    say({"result": result_of(order)})


def slowly_pull(connection: sqlite3.Connection, supplier: str) -> Iterator[History]:
    """As from a system at the other end of a slow line, telling how far it is."""
    read, of = 0, count_history(connection, supplier)
    for history in pull(connection, supplier):
        read += len(history.days)
        pause = pause_s(connection)
        say({"progress": {"read": read, "of": of}})
        time.sleep(pause)  # nothing is open: whoever stops the worker here keeps nobody else waiting
        yield history


def nothing_needed(supplier: str) -> Result:
    return Result(order=None, supplier=supplier, lines=0, units=0, cents=0)


def result_of(order: Order) -> Result:
    """What the worker says of an order, also for an operator who found it after the worker's death."""
    return Result(
        order=order.number,
        supplier=order.supplier,
        lines=len(order.lines),
        units=sum(line.units for line in order.lines),
        cents=sum(line.cents for line in order.lines),
    )


def say(message: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def fail(status: int, sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
