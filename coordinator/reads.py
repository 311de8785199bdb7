"""What can be read, of the present and of any moment of the past, with the same methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from coordinator import limits
from coordinator.clock import to_datetime
from coordinator.holders import Holder, holders
from coordinator.jobs import Job, JobState
from coordinator.log import Log, stream_of
from coordinator.messages import ReaderPositions, Topic
from coordinator.paths import normalise_one
from coordinator.reasons import Why
from coordinator.seen import Seen
from coordinator.stores.interface import LogRow
from coordinator.why import why

T = TypeVar("T")

STATES: tuple[JobState, ...] = ("blocked", "ready", "claimed", "submitted", "accepted", "failed", "cancelled")

_LIMIT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A path that a claim holds.

    Attributes:
        path: as the job named it.
        job: id of the job.
        worker: who holds it.
        attempt: number of the claim.
        until: when it is free unless the claim is renewed.
    """

    path: str
    job: str
    worker: str
    attempt: int
    until: datetime


class Reads:
    """The read methods. What is read together is one consistent state; leases that have run out read as lapsed."""

    @abstractmethod
    async def _see(self, look: Callable[[Seen], T]) -> T: ...

    async def job(self, job: str) -> Job:
        """One job.

        Raises:
            JobUnknown: there is none of this id.
        """
        job = limits.name("job", job)
        return await self._see(lambda seen: seen.job(job))

    async def jobs(self, *states: JobState, limit: int = _LIMIT) -> list[Job]:
        """Jobs of the states named, or of all, at most `limit` of each; within a state in the order of claiming."""
        wanted = limits.choices("states", states or STATES, STATES, example='jobs("accepted", "failed")')
        limit = limits.whole("limit", limit, 1, 1_000_000)
        return await self._see(lambda seen: [job for state in wanted for job in seen.jobs(state, limit)])

    async def reservations(self, path: str | None = None) -> list[Reservation]:
        """All reservations; or those of `path` itself, its parents and its children, which stand in its way."""
        wanted = None if path is None else normalise_one("path", path)
        found = await self._see(lambda seen: list(seen.reservations(wanted)))
        return [
            Reservation(path=row.path, job=row.job, worker=row.worker, attempt=row.attempt, until=to_datetime(until))
            for row, until in sorted(found, key=lambda pair: pair[0].path)
        ]

    async def who(self, path: str) -> list[Holder]:
        """Who holds a path, a folder above it, or something inside it, for which job and until when; empty if nobody.

        Args:
            path: relative to the workspace; "." is everything.
        """
        wanted = normalise_one("path", path)
        return await self._see(lambda seen: holders(seen, wanted))

    async def why(self, job: str) -> Why:
        """Whether a job can be claimed, and all that stands in the way, down the chain; `str()` tells it in words.

        Raises:
            JobUnknown: there is none of this id.
        """
        job = limits.name("job", job)
        return await self._see(lambda seen: why(seen, job))

    async def topics(self) -> list[Topic]:
        """All topics that somebody has sent to, by name."""
        rows = await self._see(lambda seen: list(seen.views.topics.between("", None)))
        return [
            Topic(name=row.topic, last=row.last, sent_at=to_datetime(row.sent_at))
            for row in sorted(rows, key=lambda row: row.topic)
        ]

    async def readers(self, topic: str) -> list[ReaderPositions]:
        """Where the readers of a topic stand, by name."""
        topic = limits.name("topic", topic)
        return await self._see(lambda seen: seen.readers(topic))

    def log(
        self, *, after: int = 0, job: str | None = None, topic: str | None = None, operation: str | None = None
    ) -> Log:
        """The events behind position `after`: `async for entry in coordinator.log()`.

        Args:
            after: begin behind this position; 0 for the beginning.
            job, topic, operation: only the events of this one.

        Raises:
            InvalidInput: the log ends before that position; on the first step.
        """
        after = limits.whole("after", after, 0, limits.INTEGER_MAX)
        stream = stream_of(job, topic, operation)

        async def page(after: int, limit: int) -> list[LogRow]:
            return await self._see(lambda seen: seen.rows(after, limit, stream))

        return Log(page, after)
