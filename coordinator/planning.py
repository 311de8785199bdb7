"""What an actor asks of jobs themselves: to add and describe them, to end and to review them."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from msgspec import UNSET, UnsetType

from coordinator import limits
from coordinator.answers import expect
from coordinator.arguments import add_job, revise_job, seen_version
from coordinator.commands import AcceptJob, AddJob, CancelJob, RejectJob, ReopenJob, ReviseJob, RevokeClaim
from coordinator.jobs import JobRef
from coordinator.payloads import Payload
from coordinator.session import Session
from events.jobs import Review


class Planning:
    """The part of an agent's handle that plans work and judges what came of it: a mixin of `Agent`."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

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
        """Add work to be claimed.

        Args:
            id: the job's id, up to 256 bytes.
            payload: what a worker needs to know: a mapping, a dataclass, a msgspec struct or a pydantic model; as JSON
                at most 256 KiB.
            paths: what a claim reserves, relative to the workspace, folders or files.
            depends_on: jobs that must be accepted first.
            priority: higher is claimed first, -32,767 to 32,767.
            max_attempts: how many claims may come to nothing before the job is failed.
            review: who may accept the result: another actor than the worker ("other"), any ("anyone"), or submitting
                is enough ("none").

        Raises:
            JobExists: the id is taken.
            JobUnknown: a dependency does not exist.
            DependencyCycle: the job depends on itself.
            BadPath: a path cannot be reserved.
        """
        command = add_job(
            id,
            payload,
            paths=paths,
            depends_on=depends_on,
            priority=priority,
            max_attempts=max_attempts,
            review=review,
        )
        return await self._job(command, receipt, context)

    async def revise_job(
        self,
        job: JobRef | str,
        *,
        version: int | None = None,
        payload: Payload | None | UnsetType = UNSET,
        paths: Iterable[str | PathLike[str]] | UnsetType = UNSET,
        depends_on: Iterable[str | JobRef] | UnsetType = UNSET,
        priority: int | UnsetType = UNSET,
        max_attempts: int | UnsetType = UNSET,
        review: Review | UnsetType = UNSET,
        receipt: str | None = None,
        context: str | None = None,
    ) -> JobRef:
        """Describe a job anew, as long as nobody has claimed it. What is not given stays as it is.

        With a `max_attempts` that is used up already, the job is failed.

        Args:
            job: the job as this agent saw it, or its id together with `version`.
            version: the version that was seen; required with an id.

        Raises:
            VersionChanged: the job changed since it was seen.
            AlreadyClaimed, AlreadySubmitted, JobClosed: it is too late.
            JobUnknown: the job or a dependency does not exist.
            DependencyCycle: the job would wait for itself.
        """
        command = revise_job(
            job,
            version,
            payload=payload,
            paths=paths,
            depends_on=depends_on,
            priority=priority,
            max_attempts=max_attempts,
            review=review,
        )
        return await self._job(command, receipt, context)

    async def cancel_job(
        self,
        job: JobRef | str,
        reason: str | None = None,
        *,
        version: int | None = None,
        receipt: str | None = None,
        context: str | None = None,
    ) -> JobRef:
        """Say that a job is not wanted any more. A claim on it ends.

        Raises:
            VersionChanged: the job changed since it was seen.
            JobClosed: it is accepted or cancelled already.
        """
        id, version = seen_version(job, version)
        said = None if reason is None else limits.reason("reason", reason)
        return await self._job(CancelJob(job=id, version=version, reason=said), receipt, context)

    async def reopen_job(
        self,
        job: JobRef | str,
        *,
        version: int | None = None,
        receipt: str | None = None,
        context: str | None = None,
    ) -> JobRef:
        """Want an accepted, failed or cancelled job again; its attempts count from zero.

        Raises:
            VersionChanged: the job changed since it was seen.
            JobOpen: it is not closed.
            DependentsStarted: others already build on its result.
        """
        id, version = seen_version(job, version)
        return await self._job(ReopenJob(job=id, version=version), receipt, context)

    async def revoke(
        self,
        job: JobRef | str,
        reason: str,
        *,
        version: int | None = None,
        receipt: str | None = None,
        context: str | None = None,
    ) -> JobRef:
        """Take a claim away from its worker, whoever that is. The attempt counts as used.

        Raises:
            VersionChanged: the job changed since it was seen.
            NotClaimed: nobody holds it.
        """
        id, version = seen_version(job, version)
        return await self._job(
            RevokeClaim(job=id, version=version, reason=limits.reason("reason", reason)), receipt, context
        )

    async def accept(
        self,
        job: JobRef | str,
        *,
        version: int | None = None,
        receipt: str | None = None,
        context: str | None = None,
    ) -> JobRef:
        """Accept what was submitted. Jobs that waited only for this one become ready.

        Raises:
            VersionChanged: the job changed since it was seen.
            NothingToReview: it is not submitted.
            SelfReview: this agent submitted it, and the job asks for another's eyes.
        """
        id, version = seen_version(job, version)
        return await self._job(AcceptJob(job=id, version=version), receipt, context)

    async def reject(
        self,
        job: JobRef | str,
        reason: str,
        *,
        version: int | None = None,
        receipt: str | None = None,
        context: str | None = None,
    ) -> JobRef:
        """Send what was submitted back. The job is ready again while attempts are left, else failed.

        Raises:
            VersionChanged: the job changed since it was seen.
            NothingToReview: it is not submitted.
            SelfReview: this agent submitted it, and the job asks for another's eyes.
        """
        id, version = seen_version(job, version)
        return await self._job(
            RejectJob(job=id, version=version, reason=limits.reason("reason", reason)), receipt, context
        )

    async def _job(self, command: _JobWrite, receipt: str | None, context: str | None) -> JobRef:
        outcome = await self._session.ask(self._name, command, receipt, context)
        return expect(JobRef, outcome.answer)


_JobWrite = AddJob | ReviseJob | CancelJob | ReopenJob | RevokeClaim | AcceptJob | RejectJob
