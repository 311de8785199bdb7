"""Which event loop somebody runs on: asyncio's, and the one that a coordinator was opened in."""

from __future__ import annotations

import asyncio

from coordinator.errors import UnsupportedEventLoop


def running_loop() -> asyncio.AbstractEventLoop:
    """The loop that this runs on.

    Raises:
        UnsupportedEventLoop: it is not asyncio's.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UnsupportedEventLoop("this library needs asyncio, and this program runs under something else") from None


def refuse_other_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Futures belong to one loop: on another, an answer would never arrive, or a command would run unnoticed."""
    if running_loop() is not loop:
        raise UnsupportedEventLoop(
            "the coordinator was opened in another event loop", hint="open one in each loop: they can share the file"
        )
