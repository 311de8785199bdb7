"""How programs wait for something in the log without asking all the time.

A waiter is woken by this process's commits at once, by other processes' commits through one thread that polls for the
whole process, and by the next lease that falls due: an empty transaction then records the lapse.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from coordinator.clock import Clock
from coordinator.errors import CoordinatorError
from coordinator.loops import refuse_other_loop
from coordinator.stores.interface import Store
from coordinator.threads import start_thread
from coordinator.timers import Timers

log = logging.getLogger("coordinator")

T = TypeVar("T")

POLL_S = 0.004

_SLOWEST_POLL_S = 1.0  # while the store cannot be asked


class Look(NamedTuple, Generic[T]):
    """What a waiter found.

    Attributes:
        found: what it waits for, in a tuple of one; None if it must go on waiting.
        due_in: µs until the next lease runs out; None if none is live.
    """

    found: tuple[T] | None
    due_in: int | None


class Waiting:
    """All waiters of one coordinator.

    Args:
        loop: where they wait.
        tick: has due leases recorded.
        watch: opens a store that notices other processes' commits, on the thread that will use it; None where there
            are no other processes.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        timers: Timers,
        *,
        tick: Callable[[], None],
        watch: Callable[[], Store] | None,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._timers = timers
        self._tick = tick
        self._woken: set[asyncio.Event] = set()
        self._poller = None if watch is None else Poller(watch, self._wake_from_thread)

    async def until(self, look: Callable[[], Awaitable[Look[T]]], woken: asyncio.Event | None = None) -> T:
        """Look, and look again whenever something may have changed, until it is found.

        Args:
            woken: whoever sets this has it look again, too.
        """
        woken = woken or asyncio.Event()
        if self._poller is not None:
            self._poller.more()
        self._woken.add(woken)
        try:
            while True:
                woken.clear()  # before looking: what happens meanwhile wakes us again
                looked_at = self._clock.boot()  # before looking, too: time may pass meanwhile, in suspend a lot
                found, due_in = await look()
                if found is not None:
                    return found[0]
                await self._sleep(woken, None if due_in is None else looked_at + max(0, due_in))
        finally:
            self._woken.discard(woken)
            if self._poller is not None:
                self._poller.fewer()

    def check_loop(self) -> None:
        """Raises `UnsupportedEventLoop` if the caller runs on another loop than those who wait."""
        refuse_other_loop(self._loop)

    def wake(self) -> None:
        """Something was committed: everybody looks again. On the loop."""
        for woken in self._woken:
            woken.set()

    def close(self) -> None:
        if self._poller is not None:
            self._poller.close()

    async def _sleep(self, woken: asyncio.Event, due: int | None) -> None:
        if due is None:
            await woken.wait()
            return
        timer = self._timers.at(due, self._tick)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def _wake_from_thread(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self.wake)
        except RuntimeError:
            log.debug("nobody to wake: the loop is closed")


class Poller:
    """Notices other processes' commits while anybody waits. Its thread sleeps for good when nobody does."""

    def __init__(self, watch: Callable[[], Store], wake: Callable[[], None]) -> None:
        self._watch = watch
        self._wake = wake
        self._waiters = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def more(self) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = start_thread(self._run, "coordinator-poller")
            self._waiters += 1
            self._changed.notify()

    def fewer(self) -> None:
        with self._changed:
            self._waiters -= 1

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        store: Store | None = None
        interval_s = POLL_S
        try:
            while self._wanted(interval_s):
                try:
                    if store is None:
                        store = self._watch()
                        self._wake()  # whatever was committed before the first look
                    elif store.changed():
                        self._wake()
                except CoordinatorError:
                    if interval_s == POLL_S:
                        log.warning("the store does not say whether it changed; trying again", exc_info=True)
                    interval_s = min(2 * interval_s, _SLOWEST_POLL_S)
                    self._wake()  # whoever waits looks too, and hears what is wrong
                else:
                    interval_s = POLL_S
        finally:
            if store is not None:
                store.close()

    def _wanted(self, interval_s: float) -> bool:
        """Wait one interval, or for as long as nobody waits; False when it is time to end."""
        with self._changed:
            self._changed.wait(interval_s)
            while not self._waiters and not self._closed:
                self._changed.wait()
            return not self._closed
