"""Doing the last things to the end, also for a caller that is being cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def certainly(steps: Coroutine[Any, Any, T]) -> T:
    """The result of `steps`, which run to their end; a cancellation is passed on afterwards.

    anyio's shield keeps its own scopes from cancelling again and again; a native `task.cancel()` pierces it, so the
    steps run in a task of their own.
    """
    task = asyncio.ensure_future(steps)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()
