"""Threads of the library's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from coordinator.errors import Unavailable


def start_thread(run: Callable[[], object], name: str) -> threading.Thread:
    """A thread that runs, and does not keep the program from ending.

    Raises:
        Unavailable: the system has none to give.
    """
    thread = threading.Thread(target=run, name=name, daemon=True)
    with starting():
        thread.start()
    return thread


@contextmanager
def starting() -> Generator[None]:
    """Around whatever may start threads: says in our words that there are none left."""
    try:
        yield
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        raise Unavailable(f"no thread could be started: {error}", hint="raise the limit of processes") from error


async def aside(function: Callable[[], object]) -> None:
    """Wait for what blocks on another thread; where there is none left to start, on this one."""
    try:
        with starting():
            await asyncio.to_thread(function)
    except Unavailable:
        function()  # closing must come to its end
