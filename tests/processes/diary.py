"""What a process wrote down of its commands: it outlives the process, however that ends."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from coordinator import Agent, Busy, Coordinator

T = TypeVar("T")


@dataclass
class Entries:
    """What a diary says.

    Attributes:
        asked: receipts of commands, written down before each was asked.
        told: receipts of commands that were answered.
        noted: whatever else happened.
    """

    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)


def read(path: Path) -> Entries:
    entries = Entries()
    if path.exists():
        for line in path.read_text().splitlines():
            kind, _, what = line.partition(" ")
            getattr(entries, kind).append(what)
    return entries


class Diary:
    """For the process that writes it. One that is started again goes on with what it finds."""

    def __init__(self, path: Path) -> None:
        self._told = set(read(path).told)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def has_done(self, job: str) -> bool:
        return f"submit {job}" in self._told

    def note(self, what: str) -> None:
        self._write("noted", what)

    async def ask(self, agent: Agent, receipt: str, call: Callable[..., Awaitable[T]], *what: Any, **how: Any) -> T:
        """Make a call under a receipt, and make it again if the turn did not come: then nothing was applied."""
        while True:
            self._write("asked", receipt)
            try:
                answer = await call(*what, receipt=receipt, **how)
            except Busy:
                applied = await agent.recall(receipt)
            else:
                self._write("told", receipt)
                return answer
            assert applied is None, f"{receipt} was applied, in spite of Busy"

    def _write(self, kind: str, what: str) -> None:
        os.write(self._fd, f"{kind} {what}\n".encode())


async def do_job(coordinator: Coordinator, actor: str, id: str, diary: Diary) -> None:
    """Three commands. Those that were applied before a kill give their old answers."""
    agent = coordinator.agent(actor)
    job = await diary.ask(agent, f"add {id}", agent.add_job, id, paths=[id])
    claim = await diary.ask(agent, f"claim {id}", agent.claim, job, lease_s=3_600)
    await diary.ask(agent, f"submit {id}", claim.submit)
