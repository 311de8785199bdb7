"""How programs wait for something in the log without asking all the time.

A waiter is woken by this process's commits at once, by other processes' commits through one thread that polls for the
whole process, and by the next lease that falls due: an empty transaction then records the lapse. It says which streams
of the log it waits for, and what happens in others does not wake it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from coordinator.clock import Clock
from coordinator.loops import refuse_other_loop
from coordinator.poller import Poller
from coordinator.request import News
from coordinator.stores.interface import Store
from coordinator.timers import Timer, Timers
from events.streams import EVERYTHING, keys

log = logging.getLogger("coordinator")

T = TypeVar("T")

_PAUSE_S = 0.05
"""Before due leases are tried again for which the turn did not come."""


class Look(NamedTuple, Generic[T]):
    """What a waiter found.

    Attributes:
        found: what it waits for, in a tuple of one; None if it must go on waiting.
        due_in: µs until the next lease runs out that it would go on after; None if there is none.
        streams: what it waits for otherwise: names of streams, kinds of them, or `EVERYTHING`.
    """

    found: tuple[T] | None
    due_in: int | None = None
    streams: frozenset[str] = EVERYTHING


class Due(NamedTuple):
    """When the lease that somebody waits for should be over, and whether a look has shown that it is."""

    at: int
    seen: bool


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
        self._woken: dict[str, set[asyncio.Event]] = {}  # by what they wait for
        self._timed: dict[asyncio.Event, Due] = {}  # those who wait for a lease, too
        self._trying_again: asyncio.TimerHandle | None = None
        self._poller = None if watch is None else Poller(watch, self._wake_from_thread)

    async def until(self, look: Callable[[], Awaitable[Look[T]]], woken: asyncio.Event | None = None) -> T:
        """Look, and look again whenever something may have changed, until it is found.

        Args:
            woken: whoever sets this has it look again, too.
        """
        woken, streams = woken or asyncio.Event(), EVERYTHING
        if self._poller is not None:
            self._poller.more()
        self._watch(woken, streams)
        try:
            while True:
                woken.clear()  # before looking: what happens meanwhile wakes us again
                looked_at = self._clock.boot()  # before looking, too: time may pass meanwhile, in suspend a lot
                found = await look()
                if found.found is not None:
                    return found.found[0]
                watched = streams is EVERYTHING or found.streams <= streams
                if streams != found.streams:
                    self._ignore(woken, streams)
                    streams = found.streams
                    self._watch(woken, streams)
                if watched:  # else something may have happened there meanwhile
                    await self._sleep(woken, found.due_in, looked_at)
        finally:
            self._ignore(woken, streams)
            if self._poller is not None:
                self._poller.fewer()

    def check_loop(self) -> None:
        """Raises `UnsupportedEventLoop` if the caller runs on another loop than those who wait."""
        refuse_other_loop(self._loop)

    def call_in(self, us: int, function: Callable[[], None]) -> Timer:
        """Call `function` on the loop when so many µs have passed."""
        return self._timers.at(self._clock.boot() + us, lambda: self._from_thread(function))

    def committed(self, news: News) -> None:
        """This process committed a batch. On the loop.

        If it was looked for due leases, that may have come too early: who has waited for one looks again.
        """
        added, ticked = news
        self.wake(None if added is None else added.streams)
        if added is not None and self._poller is not None:
            self._poller.told(added.after, added.until)
        if ticked is None:
            self._held_up()
        elif ticked:
            for woken, _ in self._overdue():  # the others will have it looked for themselves
                woken.set()

    def _held_up(self) -> None:
        """Leases that are due could not be recorded. Whoever has not seen that they are over looks, and may go.

        The others would see nothing new. They wait until it is tried again, after a pause: where commands are set to
        wait for the turn hardly at all, trying without end would keep a processor busy.
        """
        for woken, seen in self._overdue():
            if not seen:
                woken.set()
        if self._trying_again is None:
            self._trying_again = self._loop.call_later(_PAUSE_S, self._try_again)

    def wake(self, streams: Collection[str] | None = None) -> None:
        """Have those look again who wait for these streams, or all. On the loop."""
        if not self._woken:
            return
        for key in self._woken if streams is None else keys(streams):
            for woken in self._woken.get(key, ()):
                woken.set()

    def close(self) -> None:
        if self._poller is not None:
            self._poller.close()

    def _watch(self, woken: asyncio.Event, streams: Iterable[str]) -> None:
        for key in streams:
            self._woken.setdefault(key, set()).add(woken)

    def _ignore(self, woken: asyncio.Event, streams: Iterable[str]) -> None:
        for key in streams:
            self._woken[key].discard(woken)
            if not self._woken[key]:
                del self._woken[key]

    async def _sleep(self, woken: asyncio.Event, due_in: int | None, looked_at: int) -> None:
        if due_in is None:
            await woken.wait()
            return
        due = self._timed[woken] = Due(looked_at + max(0, due_in), due_in <= 0)
        timer = None  # where it is tried again anyway
        if not due.seen or self._trying_again is None:
            timer = self._timers.at(due.at, self._tick)
        try:
            await woken.wait()
        finally:
            if timer is not None:
                timer.cancel()
            del self._timed[woken]

    def _overdue(self) -> list[tuple[asyncio.Event, bool]]:
        """Those who wait for a lease that should be over, and whether a look has shown that it is."""
        now = self._clock.boot()
        return [(woken, due.seen) for woken, due in self._timed.items() if due.at <= now]

    def _try_again(self) -> None:
        self._trying_again = None
        if self._overdue():
            self._tick()

    def _wake_from_thread(self, streams: Collection[str] | None) -> None:
        self._from_thread(partial(self.wake, streams))

    def _from_thread(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            log.debug("nobody to wake: the loop is closed")
