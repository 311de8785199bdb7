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
from coordinator.threads import start_thread

log = logging.getLogger("coordinator")


_FEW = 64


def _nothing() -> None:
    pass


class Timer:
    """A call that is due at some time. `cancel` may come from any thread."""

    __slots__ = ("_forget", "cancelled", "function")

    def __init__(self, function: Callable[[], None], forget: Callable[[], None] = _nothing) -> None:
        self._forget = forget
        self.function = function
        self.cancelled = False

    def cancel(self) -> None:
        if not self.cancelled:
            self.cancelled = True
            self.function = _nothing  # let go of what it held
            self._forget()


class Timers:
    """The thread starts with the first timer, and ends with `close` or with the program."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[int, int, Timer]] = []
        self._order = count()
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._closed = False
        self._cancelled = 0  # timers in `_due` that are cancelled, at most

    def at(self, due: int, function: Callable[[], None]) -> Timer:
        """Call `function` on the timers' thread once `boot()` has reached `due`. It must be quick."""
        timer = Timer(function, self._forget_one)
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = start_thread(self._run, "coordinator-timers")
            heapq.heappush(self._due, (due, next(self._order), timer))
            if self._due[0][2] is timer:
                self._changed.notify()
        return timer

    def _forget_one(self) -> None:
        """A timer was cancelled. Most are, long before their time: they go when they are the majority."""
        with self._changed:
            self._cancelled += 1
            if self._cancelled > _FEW and 2 * self._cancelled > len(self._due):
                self._due = [due for due in self._due if not due[2].cancelled]
                heapq.heapify(self._due)
                self._cancelled = 0
            if self._closed:
                self._changed.notify()

    def close(self) -> None:
        """End when nothing is left: a block that is still running must hear when its lease is over."""
        with self._changed:
            self._closed = True
            idle = not any(not timer.cancelled for _, _, timer in self._due)
            self._changed.notify()
        if idle and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while (timer := self._next()) is not None:
            try:
                timer.function()
            except Exception:
                log.exception("a timer failed")

    def _next(self) -> Timer | None:
        with self._changed:
            while True:
                while self._due and self._due[0][2].cancelled:
                    heapq.heappop(self._due)
                    self._cancelled = max(0, self._cancelled - 1)
                if self._closed and not self._due:
                    return None
                if self._due and self._due[0][0] <= self._clock.boot():
                    return heapq.heappop(self._due)[2]
                self._clock.wait(self._changed, self._due[0][0] if self._due else None)
