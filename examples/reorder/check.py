"""What became of an operation: looks into the ordering system and at the result file, and believes neither alone."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from examples.reorder import order_file, orders
from examples.reorder.orders import Order
from examples.reorder.warehouse import opened


class Finding(Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        agrees: the ordering system and the file tell the same story.
        order: what the ordering system has; None if nothing was ordered.
        sentence: the finding in words.
    """

    agrees: bool
    order: Order | None
    sentence: str


def check(database: Path, operation: str, artifacts: Path) -> Finding:
    """Is there an order for this operation, and is it the one in the folder's result file?"""
    with opened(database) as connection:
        order = orders.find(connection, operation)
    try:
        written = order_file.read(artifacts)
    except order_file.Unreadable as error:
        return Finding(agrees=False, order=order, sentence=f"{_made(order)}; {order_file.NAME} is no order: {error}")
    if order is None and written is None:
        return Finding(agrees=True, order=None, sentence="nothing was ordered")
    if written is None:
        return Finding(agrees=False, order=order, sentence=f"{_made(order)}; there is no {order_file.NAME}")
    if order != written:
        sentence = f"{_made(order)}; {order_file.NAME} tells of another one, number {written.number}"
        return Finding(agrees=False, order=order, sentence=sentence)
    return Finding(agrees=True, order=order, sentence=f"{_made(order)}; {order_file.NAME} says the same")


def _made(order: Order | None) -> str:
    if order is None:
        return "no draft order was made"
    return f"draft order {order.number} was made by attempt {order.attempt}"
