"""What all handles of one open coordinator share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from coordinator import limits
from coordinator.answers import Answer, answer
from coordinator.certain import Once
from coordinator.clock import Clock
from coordinator.commands import AnyCommand
from coordinator.envelopes import StoredLog, events_of_command, reading
from coordinator.errors import Closed
from coordinator.execute import now
from coordinator.forks import INSTEAD, this_process
from coordinator.hosting import Host
from coordinator.loops import refuse_other_loop
from coordinator.operating import Operating
from coordinator.rebuild import check_head
from coordinator.receipts import generate
from coordinator.request import Outcome, Request
from coordinator.search import Found, Search
from coordinator.seekers import Seekers
from coordinator.seen import Seen
from coordinator.stores.interface import Snapshot
from coordinator.threads import aside
from coordinator.timers import Timers
from coordinator.waiting import Look, Waiting
from coordinator.writer import Writer

T = TypeVar("T")


class Session:
    """The running parts of an open coordinator: its writer, its host, its timers and its waiters."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        host: Host,
        writer: Writer,
        timers: Timers,
        waiting: Waiting,
        operating: Callable[[Session], Operating],
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.host = host
        self.writer = writer
        self.timers = timers
        self.waiting = waiting
        self.seekers = Seekers(self._search, waiting)
        self._searched = Search(clock)
        self.operating = operating(self)
        self._closed = False
        self._close_once = Once(self._close)
        self._process = this_process()

    async def ask(self, actor: str, command: AnyCommand, receipt: str | None, context: str | None) -> Outcome:
        """Run one command for an actor, under the caller's receipt or one made for it."""
        self.check_here()
        return await self.writer.ask(self.request(actor, command, receipt, context))

    def request(
        self,
        actor: str,
        command: AnyCommand,
        receipt: str | None = None,
        context: str | None = None,
        candidate: str | None = None,
    ) -> Request:
        """A checked request. Without a receipt it gets one of its own."""
        self.check_open()
        return Request(
            actor=actor,
            command=command,
            receipt=generate(self.clock.wall()) if receipt is None else limits.name("receipt", receipt),
            generated=receipt is None,
            context=limits.context("context", context),
            candidate=candidate,
        )

    async def see(self, look: Callable[[Seen], T]) -> T:
        """Read the present."""
        self.check_here()
        with reading():
            return await self.host.read(lambda snapshot: look(self._seen(snapshot)))

    async def recall(self, actor: str, receipt: str) -> Answer | None:
        """The answer to the command that had this receipt; None if there was none."""
        self.check_here()
        key = self.host.key

        def look(seen: Seen) -> Answer | None:
            first = seen.log.receipt(actor, receipt)
            if first is None:
                return None
            envelopes = events_of_command(seen.log, first.position)
            return answer(envelopes, key=key, log=StoredLog(seen.log, seen.views))

        return await self.see(look)

    async def until(self, look: Callable[[Seen], tuple[T] | frozenset[str]]) -> T:
        """Wait until `look` finds something.

        Args:
            look: what it found, in a tuple of one; else the streams of the log that it waits for. It looks again when
                something was appended to them, or when a lease on one of them ran out.
        """
        self.check_here()

        def look_once(seen: Seen) -> Look[T]:
            found = look(seen)
            return Look(found) if isinstance(found, tuple) else Look(None, seen.due_in(found), found)

        def look_on() -> Awaitable[Look[T]]:
            self.writer.check_running()  # without it nobody records lapses, and some waits would never end
            return self.see(look_once)

        return await self.waiting.until(look_on)

    async def back_up(self, target: str) -> None:
        """Copy the workspace to a new file."""
        self.check_here()
        await self.host.back_up(target)

    def check_open(self) -> None:
        if self._closed:
            raise Closed("the coordinator is closed")
        if self._process is not this_process():
            raise Closed("the coordinator belongs to the parent of this process", hint=INSTEAD)

    def check_here(self) -> None:
        """Before anything is awaited: the caller must run on the loop that the coordinator was opened in.

        Raises:
            Closed: it is not open.
            UnsupportedEventLoop: the caller runs on another loop.
        """
        self.check_open()
        refuse_other_loop(self.loop)

    async def close(self) -> None:
        """Finish what was asked, and let go of everything. Whoever asks again waits for the same end."""
        if self._process is not this_process():
            return  # all of it belongs to the parent
        refuse_other_loop(self.loop)
        await self._close_once()

    async def _close(self) -> None:
        self._closed = True
        self.waiting.wake()  # those who wait hear that it is closed
        if self.host.opened:
            await self.operating.close()
            await self.writer.settle()  # a claim whose caller is gone is still given back
        self.writer.close()
        try:
            await self.host.close()
        finally:
            await aside(self._stop_threads)

    def _stop_threads(self) -> None:
        self.timers.close()
        self.waiting.close()

    async def _search(self, count: int) -> Found:
        """At most so many jobs that can be claimed now."""
        while True:
            self.check_open()
            self.writer.check_running()  # without it nobody records lapses, and some would be sought for ever
            with reading():
                found = await self.host.read(lambda snapshot: self._searched.step(snapshot, count))
            if found is not None:
                return found
            await asyncio.sleep(0)  # a store in memory is read without ever letting others run

    def _seen(self, snapshot: Snapshot) -> Seen:
        head = snapshot.head()
        check_head(head)
        return Seen(snapshot, now(head, self.clock))
