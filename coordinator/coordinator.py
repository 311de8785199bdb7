"""The coordinator: one workspace, opened; whose agents write, and which everybody may read."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

from coordinator import limits
from coordinator.agent import Agent
from coordinator.artifacts import Artifacts
from coordinator.calls import CommandRecord
from coordinator.certain import certainly
from coordinator.clock import Clock, SystemClock, origin
from coordinator.differences import RowChange
from coordinator.envelopes import reading
from coordinator.errors import Closed, InvalidInput, UnsupportedPlatform
from coordinator.execute import Journal
from coordinator.explanation import Explanation, explain
from coordinator.hosting import Host, SqliteHost, host_for
from coordinator.jobs import Job, JobState
from coordinator.kinds import Kind, Registry
from coordinator.log import Log, stream_of
from coordinator.loops import running_loop
from coordinator.operating import Operating
from coordinator.past import Past, changes_between
from coordinator.reads import STATES, Reads
from coordinator.request import News
from coordinator.seen import Seen
from coordinator.session import Session
from coordinator.steps import drive_async
from coordinator.stores.interface import LogRow
from coordinator.timers import Timers
from coordinator.waiting import Waiting
from coordinator.writer import Writer
from events.streams import EVERYTHING
from projections.jobs import SETTLED

T = TypeVar("T")


class Coordinator(Reads):
    """One workspace, shared by all who open it.

        async with Coordinator.open("work.db") as coordinator:
            ada = coordinator.agent("ada")

    The methods that read see the present; `at` gives the same methods for any moment of the past.
    """

    def __init__(
        self,
        host: Host,
        *,
        artifacts: str | None = None,
        clock: Clock | None = None,
        busy_timeout_s: float = 5,
        observe: Callable[[CommandRecord], None] | None = None,
    ) -> None:
        self._host = host
        self._registry = Registry()
        beside = host.artifacts if artifacts is None else artifacts
        self._artifacts = Artifacts(None if beside is None else Path(beside))
        self._clock = clock or SystemClock()
        self._busy_timeout_s = limits.seconds("busy_timeout_s", busy_timeout_s, 0, 3_600)
        self._observe = observe
        self._entered = False
        self._session: Session | None = None

    @classmethod
    def open(
        cls,
        path_or_url: str | os.PathLike[str],
        *,
        busy_timeout_s: float = 5,
        artifacts: str | os.PathLike[str] | None = None,
        observe: Callable[[CommandRecord], None] | None = None,
        clock: Clock | None = None,
    ) -> Coordinator:
        """A coordinator for a workspace, to be entered with `async with`; the workspace is created if need be.

        Args:
            path_or_url: the path of the workspace's file, `sqlite:PATH`, or `memory:` for one that is gone with this
                object. A file whose name looks like a URL is named by a `Path` or with `./` before it.
            busy_timeout_s: seconds that a command may wait for its turn to write, 0 to 3,600, before it ends with
                `Busy`.
            artifacts: the folder in which operations leave their files; by default one beside the workspace's file,
                with `.artifacts` behind its name. It is created, and written to, when a kind is registered.
            observe: called on the event loop with a `CommandRecord` for each command.
            clock: another clock, for tests.

        Raises:
            NotAWorkspace: the file is not a database, or another program's. This and what follows on entering.
            NewerFormat: newer software wrote it.
            Unavailable: it cannot be reached, created or written.
            UnsupportedPlatform: it lies on a network file system.
            UnsupportedEventLoop: the program does not run under asyncio.
            Busy: somebody else held the turn for too long.
        """
        if os.name != "posix":
            raise UnsupportedPlatform(f"this operating system ({os.name}) has not the locks that the store needs")
        text = _text(path_or_url)
        host = host_for(text) if isinstance(path_or_url, str) else SqliteHost(text)
        folder = None if artifacts is None else _text(artifacts, "artifacts")
        return cls(host, artifacts=folder, clock=clock, busy_timeout_s=busy_timeout_s, observe=observe)

    async def __aenter__(self) -> Coordinator:
        if self._entered:
            raise Closed("a coordinator can be entered once", hint="open another")
        loop = running_loop()
        self._entered = True
        timers = Timers(self._clock)
        host = self._host

        def committed(news: News) -> None:
            waiting.committed(news)

        writer = Writer(
            Journal(self._clock, origin()),
            loop,
            busy_timeout_s=self._busy_timeout_s,
            committed=committed,
            observe=self._observe,
            orphaned=host.orphaned,
        )
        waiting = Waiting(loop, self._clock, timers, tick=writer.tick, watch=host.watch)
        session = Session(
            loop=loop,
            clock=self._clock,
            host=host,
            writer=writer,
            timers=timers,
            waiting=waiting,
            operating=lambda session: Operating(session, self._registry, self._artifacts),
        )
        give_up_at, wanted = time.monotonic() + self._busy_timeout_s, True
        opening = asyncio.ensure_future(host.open(writer, lambda: wanted and time.monotonic() < give_up_at))
        try:
            await asyncio.wait([opening])
            opening.result()
        except BaseException:
            wanted = False
            try:
                await certainly(_undo(opening, session))
            finally:
                self._entered = False  # what stood in the way may be gone another time
            raise
        self._session = session
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what was asked and let go of the workspace. Leaving `async with` does it; twice is harmless."""
        if self._session is not None:
            await self._session.close()

    def register(self, kind: Kind[Any]) -> None:
        """Make a kind of operations known to this process, before or after the coordinator is entered.

        Raises:
            InvalidInput: it lacks something, or another kind has its name.
            Unavailable: the artifact folder cannot be written.
        """
        self._artifacts.prepare()
        self._registry.add(kind)

    def agent(self, name: str) -> Agent:
        """A handle to act under this name. A name is no credential, and one name is one incarnation at a time."""
        return Agent(self._open(), limits.name("name", name))

    def at(self, position_or_time: int | datetime) -> Past:
        """The workspace as it was behind a position of the log, or at a time.

        Args:
            position_or_time: a log position, 0 for before the first event; or an aware datetime.
        """
        return Past(self._open(), position_or_time)

    async def diff(self, before: int | datetime, after: int | datetime) -> list[RowChange]:
        """What changed between two moments: every row of every view that differs, field by field.

        Args:
            before, after: log positions, or aware datetimes, as for `at`.
        """
        return await changes_between(self._open(), before, after)

    async def explain(self, position: int) -> Explanation:
        """One event of the log: the others of its command, what it changed, and what a refusal goes back to.

        Raises:
            InvalidInput: the log ends before this position.
        """
        session = self._open()
        session.check_here()
        position = limits.whole("position", position, 1, limits.INTEGER_MAX)
        with reading():
            return await drive_async(explain(position), session.host.read)

    async def wait_for_job(self, job: str, *states: JobState) -> Job:
        """Wait until the job is in one of the states (if none is named: accepted, failed or cancelled).

        It also returns when the job can no longer get there unless somebody reopens or revises a job, so look at the
        returned `state`. There is no timeout argument: use `anyio.fail_after` or `asyncio.timeout`.

        Raises:
            JobUnknown: there is none of this id.
        """
        job = limits.name("job", job)
        example = 'wait_for_job(id, "accepted", "failed")'
        wanted = frozenset(limits.choices("states", states, STATES, example=example)) or SETTLED

        def look(seen: Seen) -> tuple[Job] | frozenset[str]:
            found = seen.job(job)
            on_the_way = None if found.state in wanted else seen.on_the_way(found, wanted)
            return on_the_way or (found,)

        return await self._open().until(look)

    def follow(
        self, *, after: int = 0, job: str | None = None, topic: str | None = None, operation: str | None = None
    ) -> Log:
        """The log as it grows: `async for entry in coordinator.follow(after=position)`. It never ends by itself.

        Each event comes once, in order, however far behind the loop is; who falls behind holds up nobody. To go on
        later, keep the `position` of the last entry.

        Args:
            after: begin behind this position; 0 for the beginning.
            job, topic, operation: only the events of this one, also if there is none of that name yet.

        Raises:
            InvalidInput: the log ends before that position, as that of an older copy does; on the first step.
        """
        session = self._open()
        after = limits.whole("after", after, 0, limits.INTEGER_MAX)
        stream = stream_of(job, topic, operation)
        streams = EVERYTHING if stream is None else frozenset({stream})

        async def page(after: int, limit: int) -> list[LogRow]:
            def look(seen: Seen) -> tuple[list[LogRow]] | frozenset[str]:
                rows = seen.rows(after, limit, stream)
                return (rows,) if rows else streams

            return await session.until(look)

        return Log(page, after, ends=False)

    async def back_up(self, target: str | os.PathLike[str]) -> None:
        """Copy the workspace, as it stands at one moment, to a new file, while everybody goes on.

        The copy has reached the disk when this returns; before that there is no file of this name. Who cancels it hears
        of that when the copying has ended, and finds a whole copy or none. It holds the secret from which tokens are
        made: keep it as private as the workspace.

        Args:
            target: path of the new file, in a folder that exists.

        Raises:
            Unavailable: the file exists, or cannot be written.
        """
        await self._open().back_up(_text(target, "target"))

    async def _see(self, look: Callable[[Seen], T]) -> T:
        return await self._open().see(look)

    def _open(self) -> Session:
        if self._session is None:
            raise Closed("the coordinator is not open yet", hint="enter it: async with Coordinator.open(…)")
        self._session.check_open()
        return self._session


async def _undo(opening: asyncio.Task[None], session: Session) -> None:
    """Let go of whatever was opened, once nothing more is."""
    await asyncio.wait([opening])
    if not opening.cancelled():
        opening.exception()  # it was raised, or the caller has gone
    await session.close()


def _text(path_or_url: object, field: str = "path_or_url") -> str:
    if not isinstance(path_or_url, (str, os.PathLike)):
        hint = "os.fsdecode makes text of it" if isinstance(path_or_url, bytes) else ""
        raise InvalidInput(field, f"must be a path, not {limits.kind(path_or_url)}", hint=hint)
    path = os.fspath(cast("str | os.PathLike[str]", path_or_url))
    if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(field, f"must be a path of text, not of {limits.kind(cast('object', path))}")
    if not path:
        raise InvalidInput(field, "is empty")
    if "\0" in path:
        raise InvalidInput(field, "holds a NUL")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise InvalidInput(field, "holds a lone surrogate") from None
    return path
