"""The block in which a claim is worked on: renewed, cancelled if the claim is lost, ended however it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Literal

import anyio

from coordinator.commands import FailJob, ReleaseJob
from coordinator.errors import CoordinatorError, LimitPassed, NotSubmitted
from coordinator.held import Held
from coordinator.limits import fitting_reason
from coordinator.refusals import ClaimEnded, ClaimLost
from coordinator.renewals import Renewal
from coordinator.request import Outcome
from coordinator.timers import Timer
from events.streams import job_stream

log = logging.getLogger("coordinator")


class Working:
    """See `Claim.working`. One cancel scope, so that the body's exceptions arrive bare.

    Args:
        limit_s: seconds that the block may take, or None.
        on_cancel: what becomes of the claim if the block is cancelled from outside.
    """

    def __init__(self, held: Held, limit_s: float | None, on_cancel: Literal["fail", "release"]) -> None:
        self._held = held
        self._limit_s = limit_s
        self._on_cancel = on_cancel
        self._scope = anyio.CancelScope()
        self._why: ClaimLost | LimitPassed | None = None  # we cancelled the block
        self._renewal: Renewal | None = None
        self._limit: Timer | None = None

    async def __aenter__(self) -> None:
        session = self._held.session
        session.check_here()
        if self._held.ended:
            attempt = self._held.granted.attempt
            raise ClaimEnded(job_stream(self._held.job), attempt=attempt, how="submitted, failed or released")
        self._scope.__enter__()
        self._held.when_ended = self._stop_timers
        self._renewal = self._held.keep_renewing(self._stop)
        if self._limit_s is not None:
            due = session.clock.boot() + round(self._limit_s * 1_000_000)
            self._limit = session.timers.at(due, self._outran)

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:  # `bool` alone would tell type checkers that any exception may be swallowed
        self._stop_timers()
        ours = bool(self._scope.__exit__(type_, error, traceback))
        if self._held.ended:
            if ours and self._why is not None:
                raise self._why  # the body was cut off, but could still end its claim
        elif error is None or ours:
            await self._left()
        elif isinstance(error, asyncio.CancelledError):
            self._cancelled()
        elif isinstance(error, Exception):
            await self._raised(error)
        else:  # the program is ending: nothing more can be awaited
            self._post(self._failure(error))
        return ours

    async def _left(self) -> None:
        """The block came to its end, or swallowed that we cancelled it."""
        if isinstance(self._why, ClaimLost):
            if await self._ended_after_all():
                return
            raise self._why
        error = self._why or NotSubmitted(f"the block on job {self._held.job!r} ended without submit, fail or release")
        refusal = await self._fail("left without submit" if self._why is None else str(error))
        if isinstance(refusal, ClaimLost):
            raise refusal
        if refusal is not None:
            error.add_note(f"the attempt could not be failed: {refusal}")
        raise error

    async def _ended_after_all(self) -> bool:
        """Whether the submit, fail or release that we cut off was in time. Asking again applies nothing twice."""
        request = self._held.ending
        if request is None:
            return False
        request.fresh = False
        try:
            outcome = await self._held.session.writer.send(request)
        except CoordinatorError:
            return False
        return outcome.error is None

    async def _raised(self, error: Exception) -> None:
        if isinstance(error, ClaimLost) and self._is_about_ours(error):
            return
        if isinstance(self._why, ClaimLost):
            error.add_note(f"the claim was lost: {self._why}")
            return
        refusal = await self._fail(self._failure(error).reason)
        if refusal is not None:
            error.add_note(f"the attempt could not be failed: {refusal}")

    def _is_about_ours(self, lost: ClaimLost) -> bool:
        """Whether it is this claim that was lost, and not another one that the block works on as well."""
        ours = (job_stream(self._held.job), self._held.granted.attempt)
        return (lost.values.get("subject"), lost.values.get("attempt")) == ours

    def _cancelled(self) -> None:
        """Queued before anything is awaited, so that a second cancellation cannot lose it."""
        if isinstance(self._why, ClaimLost):
            return
        if self._on_cancel == "release" and self._why is None:
            self._post(ReleaseJob(job=self._held.job, token_digest=self._held.token_digest, reason="cancelled"))
        else:
            self._post(self._failing("cancelled" if self._why is None else str(self._why)))

    async def _fail(self, reason: str) -> CoordinatorError | None:
        """Fail the attempt, and wait for it. What stood in the way, if anything did."""
        try:
            outcome = await self._send(self._failing(reason))
        except CoordinatorError as error:
            return error
        self._held.ended = outcome.error is None
        return outcome.error if isinstance(outcome.error, CoordinatorError) else None

    def _post(self, command: FailJob | ReleaseJob) -> None:
        """Fail or release the attempt without waiting for it."""
        try:
            self._send(command)
            self._held.ended = True  # the rest is the writer's
        except CoordinatorError:
            log.warning("the claim of %s on %s was left to lapse", self._held.actor, self._held.job, exc_info=True)

    def _send(self, command: FailJob | ReleaseJob) -> asyncio.Future[Outcome]:
        session = self._held.session
        return session.writer.send(session.request(self._held.actor, command))

    def _failure(self, error: BaseException) -> FailJob:
        try:
            said = str(error)
        except Exception:  # an exception that cannot say what it is must not hide that the work failed
            said = "(it does not say)"
        return self._failing(f"{type(error).__name__}: {said}")

    def _failing(self, reason: str) -> FailJob:
        return FailJob(job=self._held.job, token_digest=self._held.token_digest, reason=fitting_reason(reason))

    # From other threads

    def _outran(self) -> None:
        self._stop(LimitPassed(f"the block on job {self._held.job!r} outran its limit of {self._limit_s:g} s"))

    def _stop(self, why: ClaimLost | LimitPassed) -> None:
        """End the block. A loop that is blocked hears of it late; that nothing is renewed any more holds at once."""
        self._stop_timers()

        def cancel() -> None:
            if self._why is None and not self._ended_by_itself(why):
                self._why = why
                self._scope.cancel()

        self._on_loop(cancel)

    def _ended_by_itself(self, why: ClaimLost | LimitPassed) -> bool:
        """Whether the body has ended its claim, or has asked for it and will be answered in a moment.

        A renewal that stood behind that in the queue is refused, which is no loss.
        """
        if self._held.ended:
            return True
        return (
            self._held.ending is not None
            and isinstance(why, ClaimEnded)
            and why.how in ("submitted", "failed", "released")
        )

    def _stop_timers(self) -> None:
        if self._renewal is not None:
            self._renewal.stop()
        if self._limit is not None:
            self._limit.cancel()

    def _on_loop(self, function: Callable[[], None]) -> None:
        try:
            self._held.session.loop.call_soon_threadsafe(function)
        except RuntimeError:
            log.debug("the loop is closed")
