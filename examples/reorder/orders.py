"""Draft orders: at most one for an operation, and none from a worker that was replaced."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from examples.reorder.plan import Line, Plan


class Order(Struct, frozen=True, kw_only=True):
    """A draft order as it stands in the database, and in the result file."""

    number: int
    operation: str
    attempt: int
    supplier: str
    weeks: int
    lines: tuple[Line, ...]


class OrderExists(Exception):
    """There is an order for this operation: whoever wants another one starts another operation."""

    def __init__(self, operation: str, number: int) -> None:
        super().__init__(f"operation {operation} has draft order {number} already; nothing was ordered now")


class FenceTooLow(Exception):
    """A later attempt has been here: what this worker still has is too late."""

    def __init__(self, operation: str, fence: int, highest: int) -> None:
        super().__init__(f"operation {operation} was taken over: this worker's fence is {fence}, the highest {highest}")


def announce(connection: sqlite3.Connection, operation: str, fence: int) -> None:
    """A worker begins. From now on every worker with a lower fence is refused, also one that has begun before.

    Raises:
        FenceTooLow: it is the late one itself.
        OrderExists: nothing is left to do.
    """
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        _guard(connection, operation, fence)


def place(connection: sqlite3.Connection, plan: Plan, *, operation: str, attempt: int, fence: int) -> Order:
    """The order with all its lines, in one transaction.

    Raises:
        FenceTooLow: a later attempt has begun meanwhile.
        OrderExists: an order was made meanwhile.
    """
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        _guard(connection, operation, fence)
        number = connection.execute(
            "INSERT INTO draft_orders (operation, attempt, supplier, weeks) VALUES (?, ?, ?, ?) RETURNING number",
            (operation, attempt, plan.supplier, plan.weeks),
        ).fetchone()[0]
        connection.executemany(
            "INSERT INTO order_lines VALUES (?, ?, ?, ?, ?)",
            [(number, line.product, line.packs, line.units, line.cents) for line in plan.lines],
        )
    return Order(
        number=number,
        operation=operation,
        attempt=attempt,
        supplier=plan.supplier,
        weeks=plan.weeks,
        lines=plan.lines,
    )


def find(connection: sqlite3.Connection, operation: str) -> Order | None:
    """The order of this operation, if there is one."""
    with connection:
        connection.execute("BEGIN")
        row = connection.execute(
            "SELECT number, attempt, supplier, weeks FROM draft_orders WHERE operation = ?", (operation,)
        ).fetchone()
        if row is None:
            return None
        number, attempt, supplier, weeks = row
        lines = connection.execute(
            "SELECT product, packs, units, cents FROM order_lines WHERE number = ? ORDER BY product", (number,)
        ).fetchall()
    return Order(
        number=number,
        operation=operation,
        attempt=attempt,
        supplier=supplier,
        weeks=weeks,
        lines=tuple(
            Line(product=product, packs=packs, units=units, cents=cents) for product, packs, units, cents in lines
        ),
    )


def count_orders(connection: sqlite3.Connection, operation: str | None = None) -> int:
    """How many there are, of this operation or of all."""
    query = "SELECT count(*) FROM draft_orders WHERE ? IS NULL OR operation = ?"
    return connection.execute(query, (operation, operation)).fetchone()[0]


def _guard(connection: sqlite3.Connection, operation: str, fence: int) -> None:
    """Within the writer's transaction: two workers cannot both get past it."""
    row = connection.execute("SELECT fence FROM fences WHERE operation = ?", (operation,)).fetchone()
    if row is not None and fence < row[0]:
        raise FenceTooLow(operation, fence, row[0])
    row = connection.execute("SELECT number FROM draft_orders WHERE operation = ?", (operation,)).fetchone()
    if row is not None:
        raise OrderExists(operation, row[0])
    connection.execute("INSERT OR REPLACE INTO fences VALUES (?, ?)", (operation, fence))
