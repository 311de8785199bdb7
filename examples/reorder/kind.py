"""The kind of operation that the coordinator is told of: how to preview, run and check a reorder."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from coordinator import AttemptRecord, Finding, SubprocessKind, Work
from examples.reorder import check as world
from examples.reorder.plan import Arguments, Plan, preview
from examples.reorder.work import Result, nothing_needed, result_of

ROOT = Path(__file__).parents[2]


class Reorder(SubprocessKind[Arguments]):
    """Drafts an order in the ordering system that `database` is."""

    name = "reorder"
    arguments = Arguments

    def __init__(self, database: Path, *, lease_s: float = 60, grace_s: float = 10) -> None:
        self.database = database.absolute()
        self.lease_s = lease_s
        self.grace_s = grace_s

    async def preview(self, arguments: Arguments) -> Plan:
        return await asyncio.to_thread(preview, self.database, arguments)

    def command(self, arguments: Arguments, work: Work) -> Sequence[str]:
        return (sys.executable, "-m", "examples.reorder.work", str(self.database))

    def folder(self, arguments: Arguments, work: Work) -> Path:
        return ROOT  # where `examples` can be imported

    async def check(self, arguments: Arguments, record: AttemptRecord) -> Finding:
        return await asyncio.to_thread(self._look, arguments, record)

    def _look(self, arguments: Arguments, record: AttemptRecord) -> Finding:
        found = world.check(self.database, record.operation_id, record.folder)
        if record.state == "succeeded":
            expected = nothing_needed(arguments.supplier) if found.order is None else result_of(found.order)
            same = msgspec.convert(record.result, Result) == expected
            note = found.sentence if same else f"{found.sentence}; the log tells of another result"
            return Finding(agrees=found.agrees and same, note=note)
        if found.order is not None:
            lines = len(found.order.lines)
            note = f"{found.sentence}; it has {lines} lines, and the log says {record.state}"
            return Finding(agrees=False, note=note)
        return Finding(agrees=found.agrees, note=found.sentence)
