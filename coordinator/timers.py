"""One thread that calls functions when their time has come, also while the event loop is blocked.

Times are those of the clock that counts suspend, in µs, so that a lease does not outlive a laptop's sleep.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable
from itertools import count

from coordinator.clock import Clock

log = logging.getLogger("coordinator")


class Timer:
    """A call that is due at some time. `cancel` may come from any thread."""

    __slots__ = ("cancelled", "function")

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        self.function = _nothing  # let go of what it held


class Timers:
    """The thread starts with the first timer, and ends with `close` or with the program."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[int, int, Timer]] = []
        self._order = count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def at(self, due: int, function: Callable[[], None]) -> Timer:
        """Call `function` on the timers' thread once `boot()` has reached `due`. It must be quick."""
        timer = Timer(function)
        with self._changed:
            heapq.heappush(self._due, (due, next(self._order), timer))
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="coordinator-timers", daemon=True)
                self._thread.start()
            elif self._due[0][2] is timer:
                self._changed.notify()
        return timer

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while (timer := self._next()) is not None:
            try:
                timer.function()
            except Exception:
                log.exception("a timer failed")

    def _next(self) -> Timer | None:
        with self._changed:
            while not self._closed:
                while self._due and self._due[0][2].cancelled:
                    heapq.heappop(self._due)
                if self._due and self._due[0][0] <= self._clock.boot():
                    return heapq.heappop(self._due)[2]
                self._clock.wait(self._changed, self._due[0][0] if self._due else None)
            return None


def _nothing() -> None:
    pass
