"""The writer: gathers the commands that wait, and runs them in batches on the store's thread.

Callers are coroutines (`ask`), timers that renew leases and blocks that end (`post`). All use one queue. What is asked
is answered only after COMMIT; what is not wanted any more when its batch is drawn is dropped; after that it runs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from itertools import takewhile
from queue import Empty, SimpleQueue

from msgspec.structs import replace

from coordinator.calls import Call, CommandRecord, error_for, stands
from coordinator.deliveries import Deliveries
from coordinator.errors import Busy, Closed, CoordinatorError, Unavailable, turn_held
from coordinator.execute import Journal, commit
from coordinator.limits import BATCH
from coordinator.rebuild import bring_up_to_date
from coordinator.refusals import Refused
from coordinator.request import NO_NEWS, News, Outcome, Request
from coordinator.stores.interface import CommitUnknown, Store, TurnTaken

log = logging.getLogger("coordinator")

_ORPHAN_CHECK_S = 0.5  # how soon a writer notices that the program ended without closing
_RETRY_PAUSE_S = 0.02


class Writer:
    """Feeds one store from one event loop.

    Args:
        journal: what is kept from batch to batch.
        loop: where callers wait.
        busy_timeout_s: how long a command may wait for the turn before it ends with `Busy`.
        committed: called on the loop after each batch, with what it means to those who wait.
        observe: called on the loop with a record of each command.
        orphaned: called on the store's thread when the program ends without closing.
    """

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        *,
        busy_timeout_s: float,
        committed: Callable[[News], None],
        observe: Callable[[CommandRecord], None] | None = None,
        orphaned: Callable[[], None] = lambda: None,
    ) -> None:
        self._journal = journal
        self._loop = loop
        self._thread = threading.current_thread()  # in which the loop runs
        self._timeout_s = busy_timeout_s
        self._deliveries = Deliveries(loop, committed=committed, observe=observe, post=self.post)
        self._orphaned = orphaned
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self._waiting: deque[Call] = deque()
        self._batch: list[Call] = []  # drawn, and not answered yet
        self._tick_posted = False
        self._limit = BATCH
        self._closing = False
        self._broken = False  # the store must be reopened first
        self._ended: CoordinatorError | None = None
        self._ending = threading.Lock()  # so that no call slips into the queue behind the last look at it

    # From any thread

    async def ask(self, request: Request, done: Callable[[Outcome], None] | None = None) -> Outcome:
        """The outcome of one request, on the loop. If the caller is cancelled, it runs once or not at all.

        `done` is called first, on the store's thread, whether or not the caller still waits.
        """
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._put(self._call(request, future, done))
        try:
            outcome = await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._deliveries.unheard(request, future.result())
            raise
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def send(self, request: Request) -> asyncio.Future[Outcome]:
        """Queue a request that runs even if nobody waits for its outcome any more, from the loop."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        call = self._call(request, future)
        call.kept = True
        self._put(call)
        return future

    def post(self, request: Request, done: Callable[[Outcome], None] | None = None) -> None:
        """Queue a request that nobody can cancel. `done` is called on the store's thread.

        Raises:
            Closed: the writer has ended.
        """
        self._put(self._call(request, done=done))

    def tick(self) -> None:
        """Have due leases recorded as lapsed, by a batch that may be empty."""
        if self._tick_posted:
            return
        self._tick_posted = True
        try:
            self._put(self._call(None))
        except CoordinatorError:
            log.debug("no tick: the writer has ended")

    async def settle(self) -> None:
        """Wait until all that was asked before is answered, and its answers were heard or undone. On the loop."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        with suppress(CoordinatorError):  # it has ended, and nothing is under way
            self._put(self._call(None, future))
            await future

    def check_running(self) -> None:
        """Raise what every call would be answered with, if the writer has ended."""
        if self._ended is not None:
            raise copy(self._ended)

    def close(self) -> None:
        """Let the writer finish what waits, and end."""
        self._queue.put(None)

    def _call(
        self,
        request: Request | None,
        future: asyncio.Future[Outcome] | None = None,
        done: Callable[[Outcome], None] | None = None,
    ) -> Call:
        asked_at = time.monotonic()
        return Call(request, asked_at + self._timeout_s, asked_at, future, done, asked_at)

    def _put(self, call: Call) -> None:
        with self._ending:
            if self._ended is not None:
                raise copy(self._ended)
            self._queue.put(call)

    # On the store's thread

    def prepare(self, store: Store) -> None:
        """Make sure that the views are those of our folds."""
        bring_up_to_date(store, self._timeout_s)

    def run(self, store: Store) -> None:
        """Serve until closed. Whatever ends it, nobody is left waiting."""
        try:
            while self._next():
                if self._waiting:
                    self._serve(store)
            self._end(Closed("the coordinator is closed"))
        except BaseException as error:
            log.exception("the writer stopped")
            for call in self._batch:
                call.unknown = True
            self._end(Unavailable(f"the writer stopped: {error}"))
            raise

    def _next(self) -> bool:
        """Wait until there is something to do; False when there will be nothing any more."""
        self._gather()
        while not self._anybody():
            if self._closing:
                return False
            try:
                call = self._queue.get(timeout=_ORPHAN_CHECK_S)
            except Empty:
                if self._loop.is_closed() or not self._thread.is_alive():
                    self._orphaned()
                    return False
                continue
            self._accept(call)
            self._gather()
        return True

    def _gather(self) -> None:
        while True:
            try:
                self._accept(self._queue.get_nowait())
            except Empty:
                return

    def _accept(self, call: Call | None) -> None:
        if call is None:
            self._closing = True
        else:
            self._waiting.append(call)

    def _serve(self, store: Store) -> None:
        """One batch, or one failure to have one."""
        batch = self._batch = []

        def draw_batch() -> list[Request]:
            self._draw(batch)
            return [call.request for call in batch if call.request is not None]

        try:
            if self._broken:
                store.reopen(self._still_wanted)
                self._broken = False
            outcomes = commit(store, draw_batch, self._journal, still_wanted=self._still_wanted)
        except TurnTaken as taken:
            self._expire(turn_held(taken.holder, f"more than {self._timeout_s:g} s"))
        except CommitUnknown as error:
            self._broken = True
            self._try_again(Unavailable(f"COMMIT failed: {error.__cause__ or error}"), unknown=True)
        except Unavailable as error:
            self._try_again(error)
        except CoordinatorError as error:
            self._put_back()
            self._refuse(len(self._waiting), error)  # waiting would not help
        except Exception as error:
            # Nobody knows how far it came. Each command alone, with its receipt, finds out, and spares its neighbours.
            if not any(call.unknown for call in batch):
                log.exception("a batch failed unexpectedly")
            self._try_again(Unavailable(f"the batch failed unexpectedly: {error!r}"), unknown=True)
        else:
            self._limit = BATCH
            self._journal.outcomes = []  # pages of messages are large, and the next batch may come much later
            ticked = any(call.request is None for call in batch)  # it may have come too early, and must be set anew
            # What is unknown may have been committed the first time.
            added = None if any(call.unknown for call in batch) else self._journal.added
            self._answer(batch, outcomes, News(added, ticked))
            self._batch = []

    def _still_wanted(self) -> bool:
        self._gather()
        return self._anybody() and time.monotonic() < self._waiting[0].deadline

    def _anybody(self) -> bool:
        """Whether anybody waits for the turn: not those who have gone, nor who waits only for those before it."""
        while self._waiting:
            call = self._waiting[0]
            if call.request is None and call.future is not None:
                self._answer([self._waiting.popleft()], ())
            elif call.unwanted():
                self._waiting.popleft()
            else:
                return True
        return False

    def _draw(self, batch: list[Call]) -> None:
        """What waits now, without those whose callers have gone; the oldest first."""
        self._gather()
        drawn_at = time.monotonic()
        while self._waiting and len(batch) < self._limit:
            call = self._waiting.popleft()
            if call.request is None:
                self._tick_posted = False
            if not call.unwanted():
                call.drawn_at = drawn_at
                batch.append(call)

    def _try_again(self, error: CoordinatorError, *, unknown: bool = False) -> None:
        """Put a batch back that failed as a whole, each command for itself now, until its time is up.

        A command of an unknown outcome is asked again with its receipt: if it was applied, the log knows.
        """
        self._answer_refused()
        for call in self._batch:
            call.unknown = call.unknown or unknown
            if call.request is not None:
                call.request.fresh = False
        self._put_back()
        self._limit = 1
        self._expire(error)
        time.sleep(_RETRY_PAUSE_S)

    def _answer_refused(self) -> None:
        """A refusal stands, although its record could not be kept."""
        calls = [call for call in self._batch if call.request is not None]
        told = [(call, o) for call, o in zip(calls, self._journal.outcomes, strict=False) if stands(call, o)]
        for _, outcome in told:
            if isinstance(outcome.error, Refused):
                outcome.error.position = None
        answered = {id(call) for call, _ in told}
        self._batch = [call for call in self._batch if id(call) not in answered]
        self._answer([call for call, _ in told], [replace(outcome, position=None) for _, outcome in told])

    def _put_back(self) -> None:
        """What was drawn waits again, before all others."""
        self._waiting.extendleft(reversed(self._batch))
        self._batch = []

    def _expire(self, error: CoordinatorError) -> None:
        """Answer those whose time is up; they wait in the order in which they were asked."""
        now = time.monotonic()
        late = (self._closing or call.deadline <= now for call in self._waiting)
        self._refuse(sum(1 for _ in takewhile(bool, late)), error)

    def _refuse(self, count: int, error: CoordinatorError) -> None:
        refused = [self._waiting.popleft() for _ in range(count)]
        calls = [call for call in refused if call.request is not None]
        ticked: bool | None = len(calls) < len(refused)
        if ticked:
            self._tick_posted = False
            ticked = None if isinstance(error, Busy) else True
        answers = [Outcome(error=error_for(call, error)) for call in calls]
        self._answer([*calls, *(call for call in refused if call.request is None)], answers, News(ticked=ticked))

    def _answer(
        self,
        batch: Sequence[Call],
        outcomes: Sequence[Outcome],
        news: News = NO_NEWS,
    ) -> None:
        answered = list(zip([call for call in batch if call.request is not None], outcomes, strict=False))
        answered += [(call, Outcome()) for call in batch if call.request is None and call.future is not None]
        self._deliveries.send(answered, news)

    def _end(self, error: CoordinatorError) -> None:
        with self._ending:
            self._ended = error
            self._gather()
        self._put_back()
        self._refuse(len(self._waiting), error)
        self._answer((), (), News(added=None))  # whoever waits for news looks once more, and hears of the end
