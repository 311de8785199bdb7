"""Runs one call and cancels it at its first, second, third … step: whenever it, or a task that it began, is suspended.

Where a command is under way then, the writer is held meanwhile, so that it is known whether it was drawn in time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import coroutine
from typing import Any, Literal, NamedTuple

import anyio
import pytest

import coordinator.writer
from coordinator.stores.interface import CommitUnknown
from tests.public.support import PATIENCE_S


class Way(NamedTuple):
    """How a call is cancelled.

    Attributes:
        by: the scope of anyio's around the call, or the task itself.
        moment: before the writer draws the command that is under way; when it was applied, but not answered yet; or
            with the answer, in the same turn of the event loop. Steps without a command have only the last two, which
            are before and after what the call waits for.
        times: at so many steps in a row.
    """

    by: Literal["scope", "task"]
    moment: Literal["undrawn", "applied", "answered"]
    times: int = 1

    def __str__(self) -> str:
        return f"by {self.by}, {self.moment}" + f", {self.times} times" * (self.times > 1)


EVERY_WAY = [
    Way("scope", "undrawn"),
    Way("scope", "applied"),
    Way("scope", "answered"),
    Way("task", "undrawn"),
    Way("task", "applied"),
    Way("task", "answered"),
    Way("task", "applied", times=3),
]

# Where each step takes long.
SOME_WAYS = [Way("scope", "applied"), Way("task", "answered"), Way("task", "undrawn", times=3)]


@dataclass
class Ended:
    """What became of a call.

    Attributes:
        reached: there was such a step.
        command: whether a command that was under way then was drawn before; None if there was none.
        cancelled: the call did not answer, for it was cancelled.
        answer: what it answered, or the exception that it raised.
    """

    reached: bool = False
    command: Literal["undrawn", "applied"] | None = None
    cancelled: bool = False
    answer: Any = None


class Hold:
    """Holds the writers between two batches. At first open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit, put = coordinator.writer.commit, coordinator.writer.Writer._put
        self._open = threading.Event()
        self._open.set()
        self._applied = threading.Event()
        self._unknown = False
        self.commanded = False

        def commit_when_let(*arguments: Any, **more: Any) -> Any:
            assert self._open.wait(PATIENCE_S), "the writer was held for ever"
            outcomes = commit(*arguments, **more)
            self._applied.set()
            if self._unknown and outcomes:
                self._unknown = False
                raise CommitUnknown("its answer was lost")
            return outcomes

        def put_and_note(writer: Any, call: Any) -> None:
            put(writer, call)
            self.commanded = self.commanded or call.request is not None

        monkeypatch.setattr(coordinator.writer, "commit", commit_when_let)
        monkeypatch.setattr(coordinator.writer.Writer, "_put", put_and_note)

    def close(self) -> None:
        self._open.clear()
        self._applied.clear()
        self.commanded = False

    def open(self) -> None:
        self._open.set()

    def let_it_be_applied(self) -> None:
        """The command that is under way, if there is one. The event loop stands still meanwhile."""
        self._open.set()
        if self.commanded:
            assert self._applied.wait(PATIENCE_S), "the command was never drawn"

    def lose_the_next_answer(self) -> None:
        """As if the disk had failed at COMMIT: the next batch is applied, and nobody knows."""
        self._unknown = True


class Steps:
    """Counts the steps of one call, and calls `strike` at one of them, or at some in a row: it cancels the call."""

    def __init__(self, hold: Hold, way: Way, step: int) -> None:
        self.hold = hold
        self.way = way
        self._first, self._last = step, step + way.times - 1
        self._taken = 0
        self.strike: Callable[[], object] = lambda: None
        self.over = False
        self.ended = Ended()

    def follow(self, steps: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        async def followed() -> Any:
            return await _stepped(steps, self)

        return followed()

    def resumed(self) -> None:
        if not self.over and self.way.moment != "answered" and self._taken + 1 == self._first:
            self.hold.close()

    def suspended(self, waits_for: asyncio.Future[Any] | None) -> None:
        if self.over:
            return
        self._taken += 1
        if not self._first <= self._taken <= self._last:
            return
        self.ended.reached = True
        loop = asyncio.get_running_loop()
        if self.way.moment != "answered":
            loop.call_soon(self._strike_before, self.way.moment)
        elif waits_for is None:
            loop.call_soon(self.strike)
        else:
            waits_for.add_done_callback(lambda _: self.strike())  # before the task hears of it

    def end(self) -> None:
        self.over = True
        self.hold.open()

    def _strike_before(self, moment: Literal["undrawn", "applied"]) -> None:
        if self.hold.commanded and self.ended.command is None:
            self.ended.command = moment
        if moment == "applied":
            self.hold.let_it_be_applied()
        self.strike()
        self.hold.open()


@coroutine
def _stepped(steps: Coroutine[Any, Any, Any], counter: Steps) -> Generator[Any, Any, Any]:
    resume: Callable[[], Any] = partial(steps.send, None)
    while True:
        counter.resumed()
        try:
            waits_for = resume()
        except StopIteration as end:
            return end.value
        counter.suspended(waits_for)
        try:
            sent = yield waits_for
        except BaseException as error:  # whatever it is, it is for the call
            resume = partial(steps.throw, error)
        else:
            resume = partial(steps.send, sent)


_followed: ContextVar[Steps | None] = ContextVar("_followed", default=None)


@contextmanager
def tasks_followed() -> Iterator[None]:
    """Tasks that a call begins count as part of it."""
    loop = asyncio.get_running_loop()

    def factory(loop: asyncio.AbstractEventLoop, steps: Any, **more: Any) -> asyncio.Task[Any]:
        counter = _followed.get()
        return asyncio.Task(steps if counter is None else counter.follow(steps), loop=loop, **more)

    loop.set_task_factory(factory)
    try:
        yield
    finally:
        loop.set_task_factory(None)


def failures_unheard() -> list[Any]:
    """What fails from now on in callbacks, and in tasks for which nobody waits."""
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context))
    return failures


def begin(steps: Steps, call: Callable[[], Awaitable[Any]]) -> asyncio.Task[Ended]:
    """A task that makes the call and says what became of it, however it ends."""
    ended, scope = steps.ended, anyio.CancelScope()

    async def body() -> None:
        _followed.set(steps)
        with scope:
            try:
                ended.answer = await call()
            except Exception as error:
                ended.answer = error

    async def watched() -> Ended:
        try:
            await steps.follow(body())
        except asyncio.CancelledError:
            ended.cancelled = True
        finally:
            steps.end()
        ended.cancelled = ended.cancelled or scope.cancelled_caught
        return ended

    task = asyncio.get_running_loop().create_task(watched())
    steps.strike = scope.cancel if steps.way.by == "scope" else task.cancel
    return task
