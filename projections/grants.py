"""One row a grant that was used: which attempt it has started."""

from __future__ import annotations

import msgspec

from events.envelope import Envelope
from events.operations import OperationQueued
from projections.projection import Changes, Get, Projection


class GrantRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    operation: str
    attempt: int


def place(row: GrantRow) -> tuple[str, int]:
    return "", 0


def _queued(event: OperationQueued, envelope: Envelope, get: Get[GrantRow]) -> Changes[GrantRow]:
    return ((event.grant_digest, GrantRow(operation=event.operation, attempt=event.attempt)),)


GRANTS = Projection(name="grants", row=GrantRow, place=place, folds={OperationQueued: _queued})
