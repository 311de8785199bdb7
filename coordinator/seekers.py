"""Those who look for a job where a transaction found none, or would have to look too far. One search serves them all.

It tells which jobs can be claimed now, and each of them is given to one seeker to ask for, in the order in which they
came. The others go on waiting: what is committed costs one search, however many wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from coordinator.decisions.claims import LookDeeper
from coordinator.errors import Busy
from coordinator.search import Found
from coordinator.waiting import Look, Waiting
from events.streams import JOBS

T = TypeVar("T")

_MOST = 64
"""So many jobs are looked for at once. Where there are more, the claims on these lead to the next search."""

_JOBS = frozenset({JOBS})

_PAUSE_S = 0.05
"""Before a seeker asks again that did not get the turn."""


@dataclass(slots=True)
class Wish:
    """What a seeker wants to hear: a job; or that there is none, unless it waits for one.

    One that waits only `until_settled` hears it too when there can be none any more. `place` says who came first.
    """

    place: int
    waits: bool
    until_settled: bool


class Seekers:
    """All seekers of one coordinator.

    Args:
        search: finds at most so many jobs.
    """

    def __init__(self, search: Callable[[int], Awaitable[Found]], waiting: Waiting) -> None:
        self._search = search
        self._waiting = waiting
        self._seeking: dict[asyncio.Future[str | None], Wish] = {}
        self._asking: dict[asyncio.Future[str | None], str] = {}  # those who were told of a job
        self._places = count()
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def find(
        self,
        ask: Callable[[str | None], Awaitable[T | None]],
        *,
        waits: bool = False,
        until_settled: bool = False,
        wait_us: int | None = None,
        recall: Callable[[], Awaitable[object]] | None = None,
    ) -> T | None:
        """Ask for the best job, or seek one where that comes to nothing and one waits or would have to look deeper.

        Args:
            ask: claims the best job there is, or one that was found, or none.
            waits, until_settled, wait_us: as in `seek`.
            recall: what was got already under the same receipt, if anything: that is not waited for.
        """
        others = self._seeking or self._asking  # who wait already, and would be overtaken
        if not waits or not others or (recall is not None and await recall() is not None):
            try:
                claim = await ask(None)
                if claim is not None or not waits:
                    return claim
            except LookDeeper:
                pass
            except Busy:
                if not waits:
                    raise  # but whoever waits for work can wait for the turn, too
        return await self.seek(ask, waits=waits, until_settled=until_settled, wait_us=wait_us)

    async def seek(
        self,
        ask: Callable[[str], Awaitable[T | None]],
        *,
        waits: bool = False,
        until_settled: bool = False,
        wait_us: int | None = None,
    ) -> T | None:
        """Ask for one job after another until one is got, or there is none.

        Args:
            ask: claims the job that was found, or a better one; somebody else may have been faster.
            waits: while there is none, wait.
            until_settled: but not when no job is ready, claimed or submitted.
            wait_us: nor for longer than this; None for as long as it takes.
        """
        self._waiting.check_loop()
        wish = Wish(next(self._places), waits, until_settled)
        if not waits or wait_us is None:
            return await self._seek(ask, wish)
        timer = self._waiting.call_in(wait_us, lambda: self._give_up(wish))
        try:
            return await self._seek(ask, wish)
        finally:
            timer.cancel()

    async def _seek(self, ask: Callable[[str], Awaitable[T | None]], wish: Wish) -> T | None:
        while True:
            told: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            try:
                job = await self._join(told, wish)
                if job is None:
                    return None
                claim = await ask(job)
                if claim is not None or not wish.waits:
                    return claim
            except LookDeeper:
                continue
            except Busy:
                if not wish.waits:
                    raise
                self._leave(told)  # what it was told of is not kept from others during the pause
                await asyncio.sleep(_PAUSE_S)  # the command itself may be set to wait for the turn hardly at all
            finally:
                self._leave(told)

    def _give_up(self, wish: Wish) -> None:
        """It hears what there is now."""
        wish.waits = False
        self._changed.set()

    def _join(self, told: asyncio.Future[str | None], wish: Wish) -> asyncio.Future[str | None]:
        self._seeking[told] = wish
        self._changed.set()
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_on())
        return told

    def _leave(self, told: asyncio.Future[str | None]) -> None:
        """It asked, or does not want to be told any more: what it was told of may be had by somebody else."""
        self._seeking.pop(told, None)
        self._asking.pop(told, None)
        self._changed.set()

    async def _look_on(self) -> None:
        """Search whenever something may have changed, for as long as anybody seeks."""
        try:
            await self._waiting.until(self._look, self._changed)
        except Exception as error:
            for told in self._seeking:
                if not told.done():
                    told.set_exception(copy(error))  # each raises its own
        finally:
            self._looking = None
            for told in self._seeking:  # if the program is ending
                told.cancel()

    async def _look(self) -> Look[None]:
        seeking = sorted(self._seeking.items(), key=_place)  # who came too late for a job keeps its place
        asked_for = list(self._asking.values())
        if not seeking:
            return Look((None,), None)
        found = await self._search(min(len(seeking) + len(asked_for), _MOST))
        taken = {*asked_for, *self._asking.values()}
        jobs = [job for job in found.jobs if job not in taken]
        for told, wish in seeking:
            if told.done():
                continue
            if jobs:
                self._tell(told, jobs.pop(0))
            elif not wish.waits:
                # Others are asking for what there is, but may leave it yet.
                self._tell(told, found.jobs[0] if found.jobs else None)
            elif wish.until_settled and not found.open:
                self._tell(told, None)
        return Look(None, found.due_in, _JOBS)

    def _tell(self, told: asyncio.Future[str | None], job: str | None) -> None:
        del self._seeking[told]
        if job is not None:
            self._asking[told] = job
        told.set_result(job)


def _place(item: tuple[object, Wish]) -> int:
    return item[1].place
