"""Starts the attempts that were approved through this process, and stops them when it closes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from coordinator.answers import AttemptQueued, OperationLeft
from coordinator.artifacts import Artifacts
from coordinator.attempt import CANCELLED, Attempt
from coordinator.children import Supervised
from coordinator.clock import Clock
from coordinator.kinds import Registry
from coordinator.request import Outcome, Request
from coordinator.seen import Seen
from coordinator.timers import Timers
from coordinator.writer import Writer

log = logging.getLogger("coordinator")

T = TypeVar("T")

_CLOSING = "the coordinator was closed"


class Surroundings(Protocol):
    """What operations need of an open coordinator."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    writer: Writer
    timers: Timers

    def see(self, look: Callable[[Seen], T]) -> Awaitable[T]: ...

    def until(self, look: Callable[[Seen], tuple[T] | frozenset[str]]) -> Awaitable[T]: ...


class Runner:
    """The attempts that run in this process."""

    def __init__(self, session: Surroundings, registry: Registry, artifacts: Artifacts) -> None:
        self._loop = session.loop
        self.writer = session.writer
        self.timers = session.timers
        self.clock = session.clock
        self.until = session.until
        self._registry = registry
        self._running: dict[asyncio.Task[None], Attempt] = {}
        self.artifacts = artifacts
        self.supervised = Supervised()
        self.closing = False

    def take(self, request: Request, sent_at: int, outcome: Outcome) -> None:
        """Start what was queued, before anybody hears of it. On the store's thread.

        An old answer starts nothing, unless this very request had been applied before without anybody knowing.
        """
        queued = outcome.answer
        if not isinstance(queued, AttemptQueued) or not request.drew(queued.token):
            return
        try:
            self._loop.call_soon_threadsafe(self._start, queued, request.actor, sent_at)
        except RuntimeError:
            log.warning("operation %s was queued, and will read as interrupted: the loop is closed", queued.operation)

    def hear(self, outcome: Outcome) -> None:
        """Stop what somebody has asked to be cancelled through this process. On the store's thread."""
        left = outcome.answer
        if isinstance(left, OperationLeft):
            with suppress(RuntimeError):  # the loop is closed, and nothing runs any more
                self._loop.call_soon_threadsafe(self._cancel, left.operation, left.attempt)

    def _cancel(self, operation: str, number: int) -> None:
        for attempt in self._running.values():
            if attempt.is_of(operation, number):
                attempt.stop(CANCELLED)

    def _start(self, queued: AttemptQueued, operator: str, sent_at: int) -> None:
        kind = self._registry.get(queued.kind)
        if kind is None:
            raise LookupError(f"kind {queued.kind!r} has a grant of this process, and is not registered")
        attempt = Attempt(self, kind, queued, operator, sent_at)
        if self.closing:
            attempt.stop(_CLOSING)
        task = self._loop.create_task(attempt.run(), name=f"operation {queued.operation}")
        self._running[task] = attempt
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not task.cancelled() and task.exception() is not None:
            log.error("an attempt ended unexpectedly", exc_info=task.exception())

    async def close(self) -> None:
        """Stop what runs, and see its end recorded."""
        self.closing = True
        await self.writer.settle()  # what was queued until now has been handed over
        while self._running:
            for attempt in self._running.values():
                attempt.stop(_CLOSING)
            await asyncio.wait(list(self._running))
        await self.supervised.close()
