"""One attempt of an operation while it runs in this process: renewed, stopped if need be, and its end recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio
from msgspec import Raw

from coordinator.answers import AttemptQueued
from coordinator.artifacts import Artifact, Artifacts, record
from coordinator.children import Supervised
from coordinator.clock import Clock, SystemClock
from coordinator.commands import (
    AnyCommand,
    FailOperation,
    RecordProgress,
    RenewOperation,
    StartOperation,
    StopOperation,
    SucceedOperation,
)
from coordinator.errors import Busy, CoordinatorError, OutcomeUnknown, Unavailable
from coordinator.kinds import Kind, SubprocessKind, Work, folder_made, is_cancelled, validated
from coordinator.limits import fitting_reason, words_of
from coordinator.payloads import encode
from coordinator.program import Program, ProgramStopped
from coordinator.progress import Progress
from coordinator.receipts import generate
from coordinator.refusals import ClaimLost, LeaseLapsed
from coordinator.renewals import Renewal
from coordinator.request import Outcome, Request
from coordinator.seen import Seen
from coordinator.timers import Timers
from coordinator.writer import Writer
from events.streams import in_words, operation_stream
from projections.operations import LIVE

log = logging.getLogger("coordinator")

_PAUSE_S = 0.05
_WATCHED_AFTER_S = 0.25
_SYSTEM = SystemClock()  # supervisors know no other

CANCELLED = "cancelled"


T = TypeVar("T")


class Running(Protocol):
    """What an attempt needs of the process in which it runs."""

    artifacts: Artifacts
    supervised: Supervised
    closing: bool
    writer: Writer
    timers: Timers
    clock: Clock

    def until(self, look: Callable[[Seen], tuple[T] | frozenset[str]]) -> Awaitable[T]: ...


class Stopped(Exception):
    """The work was stopped, and this is why."""


class WorkFailed(CoordinatorError):
    """The work ended in a way that has no exception of its own."""

    code = "work_failed"


class Attempt:
    """Runs on the loop. Everything that ends it comes through `stop`.

    Args:
        sent_at: `boot()` when the approval was sent: the lease counts from there.
    """

    def __init__(self, runner: Running, kind: Kind[Any], queued: AttemptQueued, operator: str, sent_at: int) -> None:
        self._runner = runner
        self._kind = kind
        self._queued = queued
        self._operator = operator
        self._loop = asyncio.get_running_loop()
        self._scope: anyio.CancelScope | None = None  # while a function runs
        self._why: str | None = None
        self._program: Program | None = None
        self._watching: asyncio.Task[None] | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._lease_until = sent_at + queued.lease_us  # by `boot()`
        self._renewal = Renewal(
            runner.writer,
            runner.timers,
            runner.clock,
            request=lambda: self._request(RenewOperation(operation=queued.operation, token_digest=queued.token.digest)),
            lease_us=queued.lease_us,
            sent_at=sent_at,
            renewed=self._renewed,
            lost=self._lose,
            lapsed=lambda: LeaseLapsed(self._subject, attempt=queued.attempt, lease_until=queued.lease_until),
        )

    @property
    def _subject(self) -> str:
        return operation_stream(self._queued.operation)

    def is_of(self, operation: str, attempt: int) -> bool:
        return (operation, attempt) == (self._queued.operation, self._queued.attempt)

    def stop(self, why: str) -> None:
        """End the work, which has its grace for that. The first reason counts. On the loop."""
        if self._why is not None:
            return
        self._why = why
        if self._program is not None:
            self._program.stop()
        elif self._scope is not None:
            self._scope.cancel()
        # Who does not end in time is not kept alive.
        self._grace = self._loop.call_later(self._kind.grace_s, self._renewal.stop)

    async def run(self) -> None:
        """From its start to the record of its end."""
        watching = self._loop.call_later(_WATCHED_AFTER_S, self._begin_watching)  # what is done soon need not be
        limit = self._loop.call_later(self._kind.time_limit_s, self.stop, "its time limit passed")
        try:
            await self._run()
        except asyncio.CancelledError:
            self.stop("the program ended")
            if self._program is None:  # what a program still does in its grace nobody sees: that reads as interrupted
                self._post_stopped()
            raise
        finally:
            limit.cancel()
            watching.cancel()
            if self._watching is not None:
                self._watching.cancel()
            self._renewal.stop()
            self._why = self._why or "it has ended"  # what comes too late to stop it sets no timer any more
            if self._grace is not None:
                self._grace.cancel()

    async def _run(self) -> None:
        digest, operation = self._queued.token.digest, self._queued.operation
        if not await self._record(StartOperation(operation=operation, token_digest=digest)):
            return
        try:
            result, files = await self._result()
        except Stopped as stopped:
            end: AnyCommand = StopOperation(
                operation=operation, token_digest=digest, reason=fitting_reason(str(stopped)), stderr=self._stderr()
            )
        except Exception as error:
            log.info("operation %s failed", operation, exc_info=True)
            end = FailOperation(operation=operation, token_digest=digest, reason=_reason(error), stderr=self._stderr())
        else:
            end = SucceedOperation(operation=operation, token_digest=digest, result=result, artifacts=files)
        await self._record(end)

    async def _result(self) -> tuple[Raw, tuple[Artifact, ...]]:
        """What the work came to.

        Raises:
            Stopped: it was stopped before it came to anything.
        """
        arguments = validated(self._kind, bytes(self._queued.arguments))
        progress = Progress(self._loop, self._tell)
        queued = self._queued
        work = Work(
            queued.operation,
            queued.attempt,
            queued.fence,
            queued.plan,
            make_folder=partial(self._runner.artifacts.make_folder, queued.operation, queued.attempt),
            tell=progress.tell,
        )
        try:
            raw = await self._work(arguments, work, progress)
        finally:
            progress.end()
        folder = folder_made(work)
        return raw, () if folder is None else await asyncio.to_thread(record, folder)

    async def _work(self, arguments: Any, work: Work, progress: Progress) -> Raw:
        if self._why is not None:
            raise Stopped(self._why)
        if isinstance(self._kind, SubprocessKind):
            self._program = Program(self._kind, arguments, work, self._queued, progress)
            work_done = self._program.run(self._runner.supervised, self._deadline, self._stop_asked)
        else:
            work_done = self._function(arguments, work)
        try:
            return await work_done
        except ProgramStopped as stopped:
            raise Stopped((self._why or stopped.why) + stopped.left_behind) from None
        except Exception as error:
            if self._why is None:
                raise
            raise Stopped(self._why) from error

    async def _function(self, arguments: Any, work: Work) -> Raw:
        self._scope = anyio.CancelScope()  # not earlier: older anyio makes one only within a task
        with self._scope:
            try:
                return Raw(encode("result", await self._kind.run(arguments, work)))
            except asyncio.CancelledError as error:
                if is_cancelled():
                    raise
                raise WorkFailed("the work raised CancelledError, and nobody had cancelled it") from error
        raise Stopped(self._why or "stopped")

    def _deadline(self) -> int:
        """When a program must begin to end, so that its lease does not end before it; by the system's clock."""
        left_us = self._lease_until - self._runner.clock.boot()
        return _SYSTEM.boot() + left_us - round(self._kind.grace_s * 1_000_000)

    def _stop_asked(self) -> bool:
        return self._why is not None

    async def _record(self, command: AnyCommand) -> bool:
        """Whether it was recorded; it is tried for as long as the lease holds."""
        request = self._request(command)
        while True:
            try:
                error = (await self._runner.writer.send(request)).error
            except CoordinatorError as ended:  # the writer
                error = ended
            if error is None:
                return True
            retry = isinstance(error, Busy | Unavailable | OutcomeUnknown)
            if not retry or self._runner.clock.boot() >= self._lease_until:
                log.warning("%s, attempt %d: %s", in_words(self._subject), self._queued.attempt, error)
                return False
            request.fresh = False
            await asyncio.sleep(_PAUSE_S)

    def _post_stopped(self) -> None:
        """The program ends: nothing can be awaited any more, but what is queued is written yet."""
        command = StopOperation(
            operation=self._queued.operation,
            token_digest=self._queued.token.digest,
            reason=self._why or "the program ended",
        )
        try:
            self._runner.writer.post(self._request(command))
        except CoordinatorError:
            log.warning("%s: its stop was not recorded, and it will read as interrupted", in_words(self._subject))

    def _request(self, command: AnyCommand) -> Request:
        receipt = generate(self._runner.clock.wall())
        return Request(actor=self._operator, command=command, receipt=receipt, generated=True)

    def _tell(self, progress: bytes) -> None:
        command = RecordProgress(
            operation=self._queued.operation, token_digest=self._queued.token.digest, progress=Raw(progress)
        )
        try:
            self._runner.writer.post(self._request(command), self._told)
        except CoordinatorError:
            log.debug("no progress recorded: the writer has ended")

    def _told(self, outcome: Outcome) -> None:
        if isinstance(outcome.error, ClaimLost):
            self._lose(outcome.error)

    def _renewed(self, lease_us: int, lease_until: int, sent_at: int) -> None:
        self._lease_until = sent_at + lease_us
        if self._program is not None:
            self._program.renew(self._deadline())

    def _lose(self, why: ClaimLost) -> None:
        """From any thread."""
        try:
            self._loop.call_soon_threadsafe(self.stop, f"its lease was lost: {why.code}")
        except RuntimeError:
            log.debug("nobody to stop: the loop is closed")

    def _begin_watching(self) -> None:
        self._watching = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        """Stop when its operator asks for it through another process; through this one, the runner hears at once."""
        operation, attempt = self._queued.operation, self._queued.attempt
        streams = frozenset({self._subject})

        def look(seen: Seen) -> tuple[bool] | frozenset[str]:
            row = seen.views.operations.get(operation)
            if row is None or row.attempt != attempt or row.state not in LIVE:
                return (False,)
            return (True,) if row.cancel_asked is not None else streams

        while True:
            try:
                if await self._runner.until(look):
                    self.stop(CANCELLED)
                return
            except CoordinatorError:
                if self._runner.closing:
                    return
                await asyncio.sleep(_PAUSE_S)

    def _stderr(self) -> str | None:
        return None if self._program is None else self._program.stderr


def _reason(error: Exception) -> str:
    if isinstance(error, CoordinatorError):
        return fitting_reason(str(error))
    return fitting_reason(words_of(error))
