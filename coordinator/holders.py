"""Who holds a path, or something above or below it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from coordinator.clock import to_datetime
from coordinator.seen import Seen
from projections.path_keys import path_key

Place = Literal["itself", "above", "below"]


class Holder(Struct, frozen=True, kw_only=True):
    """A claim that holds a path, a folder above it, or something inside it.

    Attributes:
        path: the reserved path, as the job named it.
        place: where that lies, seen from the path that was asked about.
        worker: who holds it.
        job: id of the job.
        attempt: number of the claim.
        until: when it is free unless the claim is renewed.
    """

    path: str
    place: Place
    worker: str
    job: str
    attempt: int
    until: datetime


def holders(seen: Seen, path: str) -> list[Holder]:
    """All that hold something in the way of a normalised path, by what they hold."""
    asked = path_key(path)
    found = [
        Holder(
            path=row.path,
            place=_place(path_key(row.path), asked),
            worker=row.worker,
            job=row.job,
            attempt=row.attempt,
            until=to_datetime(until),
        )
        for row, until in seen.reservations(path)
    ]
    return sorted(found, key=lambda holder: holder.path)


def _place(held: str, asked: str) -> Place:
    if held == asked:
        return "itself"
    return "above" if len(held) < len(asked) else "below"
