"""A claim's handle: what its holder may still do, as long as the token holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from os import PathLike
from typing import Literal

from msgspec import Raw

from coordinator import limits
from coordinator.answers import ClaimGranted, LeaseRenewed, MessageNumbered, NoteTaken, PathsReserved, expect
from coordinator.arguments import add_job, send_message
from coordinator.clock import to_datetime
from coordinator.commands import (
    AnyCommand,
    FailJob,
    NoteProgress,
    ReleaseJob,
    RenewClaim,
    ReservePaths,
    Shown,
    SubmitJob,
)
from coordinator.held import Held
from coordinator.jobs import Job, JobRef
from coordinator.paths import absorb, normalise
from coordinator.payloads import Payload, encode
from coordinator.session import Session
from coordinator.tokens import Token
from coordinator.working import Working
from events.jobs import Review


class Claim:
    """One attempt at a job: a lease, a token, the reserved paths.

    Every write below shows the token, takes `receipt=` and `context=` as those of an `Agent` do, and raises besides:

        TokenSuperseded: somebody else holds the job now.
        LeaseLapsed: the lease ran out; nobody has taken the job since.
        ClaimEnded: it was submitted, failed, released, revoked or cancelled.

    All three are `ClaimLost`: what this worker still has is too late.
    """

    def __init__(self, session: Session, actor: str, granted: ClaimGranted, sent_at: int) -> None:
        self._held = Held(session, actor, granted, sent_at)

    def __repr__(self) -> str:
        return f"<Claim {self.job.id!r} attempt {self.attempt} of {self._held.actor!r}>"

    @property
    def job(self) -> Job:
        """The job as this claim found it."""
        return self._held.granted.job

    @property
    def attempt(self) -> int:
        """Number of this claim among all claims of the job; never repeats."""
        return self._held.granted.attempt

    @property
    def fence(self) -> int:
        """Fencing token: a public number that only ever grows, for outside resources that can compare numbers."""
        return self._held.granted.fence

    @property
    def token(self) -> Token:
        """The secret that every later write shows. Keep `token.reveal()` to `resume` after a restart."""
        return self._held.granted.token

    @property
    def lease_s(self) -> float:
        """Length of the lease in seconds."""
        return self._held.lease_us / 1_000_000

    @property
    def lease_until(self) -> datetime:
        """When the claim lapses unless it is renewed, as far as this handle knows."""
        return to_datetime(self._held.lease_until)

    @property
    def paths(self) -> tuple[str, ...]:
        """The reserved paths, normalised."""
        return self._held.paths

    def working(self, *, limit_s: float | None = 3_600, on_cancel: Literal["fail", "release"] = "fail") -> Working:
        """A block in which the claim is renewed, and which is cancelled if the claim is lost.

            async with claim.working():
                ...
                await claim.submit(result)

        However the block ends, the claim ends with it: left without submit, fail or release, it is failed and
        `NotSubmitted` is raised; if it raises, the claim is failed with type and message; if it is cancelled, the claim
        is failed or released; if the claim is lost, it is cancelled and `ClaimLost` is raised; if it outruns its limit,
        `LimitPassed`.

        Args:
            limit_s: seconds that the block may take, at least 0.001; None for no limit, so that a worker that hangs
                keeps its job for ever.
            on_cancel: what becomes of the claim if the block is cancelled from outside.
        """
        limit = None if limit_s is None else limits.seconds("limit_s", limit_s, 0.001, 10 * 366 * 86_400)
        limits.choice("on_cancel", on_cancel, ("fail", "release"))
        return Working(self._held, limit, on_cancel)

    async def renew(
        self, lease_s: float | None = None, *, receipt: str | None = None, context: str | None = None
    ) -> datetime:
        """Let the lease count anew from now.

        Args:
            lease_s: seconds, 1 to 86,400; None for as long as before.

        Returns:
            When the claim lapses now.
        """
        lease_us = None if lease_s is None else limits.lease_us("lease_s", lease_s)
        sent_at = self._held.session.clock.boot()
        command = RenewClaim(job=self._held.job, token_digest=self._held.token_digest, lease_us=lease_us)
        outcome = await self._held.ask(command, receipt, context)
        renewed = expect(LeaseRenewed, outcome.answer)
        if not outcome.repeated:
            self._held.renewed_by_hand(renewed.lease_us, renewed.lease_until, sent_at)
        return to_datetime(renewed.lease_until)

    async def note(self, note: Payload, *, receipt: str | None = None, context: str | None = None) -> int:
        """Keep a note of how far the work is; readers see the last one.

        Returns:
            Its position in the log.
        """
        command = NoteProgress(job=self._held.job, token_digest=self._held.token_digest, note=Raw(encode("note", note)))
        return expect(NoteTaken, (await self._held.ask(command, receipt, context)).answer).position

    async def reserve(
        self, paths: Iterable[str | PathLike[str]], *, receipt: str | None = None, context: str | None = None
    ) -> tuple[str, ...]:
        """Reserve more paths, all of them or none. Never waits.

        Returns:
            All paths that the claim holds then.

        Raises:
            PathClash: names each clash, its holder and until when.
        """
        command = ReservePaths(
            job=self._held.job, token_digest=self._held.token_digest, paths=normalise("paths", paths)
        )
        outcome = await self._held.ask(command, receipt, context)
        if outcome.answer is None:  # they were held already
            return self._held.paths
        reserved = expect(PathsReserved, outcome.answer).paths
        # The answer may be an old one whose first copy was lost. A claim only ever gains paths.
        self._held.paths = absorb((*self._held.paths, *reserved))
        return reserved

    async def submit(
        self, result: Payload | None = None, *, receipt: str | None = None, context: str | None = None
    ) -> JobRef:
        """Hand in the result. The claim ends and its paths are free; the job waits for its review, if it wants one."""
        command = SubmitJob(
            job=self._held.job, token_digest=self._held.token_digest, result=Raw(encode("result", result))
        )
        return await self._end(command, receipt, context)

    async def fail(self, reason: str, *, receipt: str | None = None, context: str | None = None) -> JobRef:
        """Give this attempt up. The job is ready again while attempts are left, else failed."""
        command = FailJob(
            job=self._held.job, token_digest=self._held.token_digest, reason=limits.reason("reason", reason)
        )
        return await self._end(command, receipt, context)

    async def release(
        self, reason: str | None = None, *, receipt: str | None = None, context: str | None = None
    ) -> JobRef:
        """Give the job back without using up the attempt."""
        said = None if reason is None else limits.reason("reason", reason)
        command = ReleaseJob(job=self._held.job, token_digest=self._held.token_digest, reason=said)
        return await self._end(command, receipt, context)

    async def add_job(
        self,
        id: str,
        payload: Payload | None = None,
        *,
        paths: Iterable[str | PathLike[str]] = (),
        depends_on: Iterable[str | JobRef] = (),
        priority: int = 0,
        max_attempts: int = limits.ATTEMPTS_DEFAULT,
        review: Review = "other",
        receipt: str | None = None,
        context: str | None = None,
    ) -> JobRef:
        """Add a job, as `Agent.add_job` does, but only while this claim holds."""
        command = add_job(
            id,
            payload,
            paths=paths,
            depends_on=depends_on,
            priority=priority,
            max_attempts=max_attempts,
            review=review,
            shown=Shown(job=self._held.job, token_digest=self._held.token_digest),
        )
        return expect(JobRef, (await self._held.ask(command, receipt, context)).answer)

    async def send(self, topic: str, body: Payload, *, receipt: str | None = None, context: str | None = None) -> int:
        """Send a message, as `Agent.send` does, but only while this claim holds."""
        shown = Shown(job=self._held.job, token_digest=self._held.token_digest)
        command = send_message(topic, body, shown)
        return expect(MessageNumbered, (await self._held.ask(command, receipt, context)).answer).number

    async def _end(self, command: AnyCommand, receipt: str | None, context: str | None) -> JobRef:
        return expect(JobRef, (await self._held.end(command, receipt, context)).answer)
