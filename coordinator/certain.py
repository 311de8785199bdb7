"""Doing the last things to the end, also for a caller that is being cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")


async def certainly(steps: Coroutine[Any, Any, T]) -> T:
    """The result of `steps`, which run to their end; a cancellation is passed on afterwards."""
    task = asyncio.ensure_future(steps)
    return await _end_of(lambda: task)


class Once(Generic[T]):
    """Steps that run once, and to their end; whoever asks for them waits for the same end.

    `asyncio.run` cancels all tasks when the program ends, this one's too: then the steps are begun anew, and must do no
    harm to what they have done already.
    """

    def __init__(self, steps: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._steps = steps
        self._task: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        return await _end_of(self._begun)

    def _begun(self) -> asyncio.Task[T]:
        if self._task is None or self._task.cancelled():
            self._task = asyncio.ensure_future(self._steps())
        return self._task


async def _end_of(begun: Callable[[], asyncio.Task[T]]) -> T:
    """anyio's shield keeps its own scopes from cancelling again and again; a native `task.cancel()` pierces it, so the
    steps run in a task of their own.
    """
    cancelled: asyncio.CancelledError | None = None
    task = begun()
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
            task = begun()
    if cancelled is not None:
        raise cancelled from None if task.cancelled() else task.exception()
    return task.result()
