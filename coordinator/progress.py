"""How far work is: at most once a second it is told on, and then the newest."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

log = logging.getLogger("coordinator")

_EVERY_S = 1.0


class Progress:
    """Args:
    tell: is told what is to be recorded.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._tell = tell
        self._newest: bytes | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._thread = threading.get_ident()
        self._ended = False

    def tell(self, progress: bytes) -> None:
        """From any thread."""
        if threading.get_ident() == self._thread:
            self._take(progress)
            return
        try:
            self._loop.call_soon_threadsafe(self._take, progress)
        except RuntimeError:
            log.debug("no progress recorded: the loop is closed")

    def end(self) -> None:
        """Nothing more is told. On the loop, as all that follows."""
        self._ended = True
        if self._pause is not None:
            self._pause.cancel()

    def _take(self, progress: bytes) -> None:
        if self._ended:
            return
        self._newest = progress
        if self._pause is None:
            self._flush()

    def _flush(self) -> None:
        self._pause = None
        if self._newest is not None:
            self._tell(self._newest)
            self._newest = None
            self._pause = self._loop.call_later(_EVERY_S, self._flush)
