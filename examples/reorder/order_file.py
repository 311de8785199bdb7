"""The result file: the order as the worker left it for whoever asked for it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from examples.reorder.orders import Order

NAME = "order.json"


class Unreadable(Exception):
    """There is a file of that name, but it is no order."""


def write(folder: Path, order: Order) -> None:
    """Under its name there is never a part of a file, not even after a power cut."""
    temporary = folder / f"{NAME}.part"
    with temporary.open("wb") as out:
        out.write(msgspec.json.format(msgspec.json.encode(order)) + b"\n")
        out.flush()
        os.fsync(out.fileno())
    temporary.rename(folder / NAME)
    entry = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)


def read(folder: Path) -> Order | None:
    """The order in the file; None if there is no file, or no folder."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=Order)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(str(error)) from error
