"""The driver: plans the jobs, and sees to it that what goes wrong goes wrong in the same way each time.

    the worker that will be killed claims a job, and so does the one that will stall
    SIGSTOP to this one, SIGKILL to that one; both leases lapse
    two others take the two jobs over, the killed one is started anew and claims a third
    SIGCONT: the late worker submits, and is refused
    everybody goes on; SIGKILL to the reviewer, which has read a page and not acknowledged it
    the reviewer is started anew, is handed the page again, and goes on until all is done

Each step waits for the one before it, by cue or by the log, so nothing depends on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import time
import typing
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path

from coordinator import Agent, Coordinator, CoordinatorError, receipt_for
from coordinator.surfaces.demo.cast import Cast, DemoFailed, Player, cast
from coordinator.surfaces.demo.index import index_file
from coordinator.surfaces.demo.merged import MergedIndex
from coordinator.surfaces.demo.plan import MERGE, Piece, Plan, Task
from coordinator.surfaces.demo.progress import Progress
from coordinator.surfaces.demo.stage import AskedTwice, CameLate, HasRead, Holds
from coordinator.surfaces.demo.submissions import SUBMISSIONS, Submission
from coordinator.surfaces.demo.worker import BUSY_TIMEOUT_S

_SHORT_LEASE_S = 2
_LEASE_S = 20
_LAPSE_S = 60
_DEADLINE_S = 900
_UNREAD = 2  # messages that wait when the reviewer begins
_TOGETHER = 256
_HIGHEST = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """A claim that its worker lost.

    Attributes:
        restarted_as: process id of the same worker started anew.
        came_late: what the worker was told when it came back.
    """

    worker: str
    pid: int
    held: Holds
    restarted_as: int | None = None
    came_late: CameLate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """A page that the reviewer was handed, and did not come to acknowledge: the process, and the one that followed."""

    pid: int
    read: HasRead
    restarted_as: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the driver knows of a finished run; the rest is in the log."""

    stalled: Mishap
    killed: Mishap
    interrupted: Interrupted
    asked_twice: AskedTwice
    asked_twice_by: str
    alone: MergedIndex
    seconds: float


async def drive(plan: Plan, database: Path, workers: int, progress: Progress) -> Played:
    """Play the whole demo.

    Args:
        workers: how many, at least four: one stalls, one is killed, two take over.

    Raises:
        DemoFailed: it did not come to its end.
    """
    try:
        async with (
            asyncio.timeout(_DEADLINE_S),
            Coordinator.open(database, busy_timeout_s=BUSY_TIMEOUT_S) as coordinator,
            cast(database, plan.folder) as company,
            asyncio.TaskGroup() as group,
        ):
            driver = Driver(plan, workers, progress, coordinator, company, group)
            played = group.create_task(driver.play())
        return played.result()
    except TimeoutError:
        raise DemoFailed(f"it was not over after {_DEADLINE_S} s") from None
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    except CoordinatorError as error:
        raise DemoFailed(str(error)) from error


class Driver:
    """One run. `group` holds what goes on beside the story; a failure in it ends the story too."""

    def __init__(
        self,
        plan: Plan,
        workers: int,
        progress: Progress,
        coordinator: Coordinator,
        company: Cast,
        group: asyncio.TaskGroup,
    ) -> None:
        self._plan = plan
        self._workers = workers
        self._progress = progress
        self._coordinator = coordinator
        self._cast = company
        self._group = group
        self._to_review = asyncio.Event()

    async def play(self) -> Played:
        begun = time.monotonic()
        (first, staller, victim, fourth, *rest), reviewer = await self._start()
        planner = self._coordinator.agent("planner")
        await self._add_jobs(planner)
        self._progress.begin(len(self._plan.pieces) + 1)
        following = self._group.create_task(self._follow())
        alone = self._group.create_task(self._index_alone())

        killed, stalled = await self._lose_two(victim, staller)
        self._progress.say(f"starting {victim.name} anew; waiting until both leases have lapsed")
        restarted = await self._enter(self._cast.worker(victim.name, _LEASE_S))
        await self._cast.ready(restarted)
        await self._until_lapsed(stalled.job)
        await self._until_lapsed(killed.job)
        for heir in (first, fourth):
            self._tell_claim(heir, await heir.take_a_job())
        self._tell_claim(restarted, await restarted.take_a_job())
        came_late = await self._come_back(staller)

        for player in (first, staller, restarted, fourth):
            player.cue()
        for player in rest:
            player.cue()  # to claim
            player.cue()  # and to go on
        asked_twice = await fourth.hear(AskedTwice)
        self._progress.say(f"{fourth} lost the answer to its submit, and repeated it with the same receipt")
        interrupted, successor = await self._interrupt(reviewer)
        for player in (first, staller, restarted, fourth, *rest):
            await player.ended()
        await planner.send(SUBMISSIONS, Submission(), receipt=receipt_for("demo", SUBMISSIONS, "over"))
        await successor.ended()
        seconds = time.monotonic() - begun
        self._progress.say("all processes have ended; reading the log")
        index = await alone
        following.cancel()
        return Played(
            stalled=Mishap(worker=staller.name, pid=staller.pid, held=stalled, came_late=came_late),
            killed=Mishap(worker=victim.name, pid=victim.pid, held=killed, restarted_as=restarted.pid),
            interrupted=interrupted,
            asked_twice=asked_twice,
            asked_twice_by=fourth.name,
            alone=index,
            seconds=seconds,
        )

    async def _start(self) -> tuple[list[Player], Player]:
        reviewer = await self._enter(self._cast.reviewer("--pauses"))
        workers: list[Player] = []
        for number in range(1, self._workers + 1):
            lease_s = _SHORT_LEASE_S if number == 3 else _LEASE_S
            flags = {2: ["--stalls", str(_SHORT_LEASE_S)], 4: ["--loses-an-answer"]}.get(number, [])
            workers.append(await self._enter(self._cast.worker(f"worker-{number}", lease_s, *flags)))
        self._progress.say("started " + ", ".join(map(str, [*workers, reviewer])))
        await self._cast.ready(*workers, reviewer)
        return workers, reviewer

    async def _add_jobs(self, planner: Agent) -> None:
        """The largest first, as a late large one would keep everybody waiting.

        Each has a priority of its own, so that what lapsed is the next again to be claimed.
        """

        async def add(place: int, piece: Piece) -> None:
            await planner.add_job(
                piece.id,
                Task(files=piece.paths),
                paths=piece.paths,
                priority=max(_HIGHEST - place, 0),
                receipt=receipt_for("demo", piece.id, "add"),
            )

        pieces = sorted(self._plan.pieces, key=lambda piece: -piece.size)
        for start in range(0, len(pieces), _TOGETHER):
            together = enumerate(pieces[start : start + _TOGETHER], start)
            await asyncio.gather(*(add(place, piece) for place, piece in together))
        ids = [piece.id for piece in pieces]
        await planner.add_job(MERGE, Task(merge=True), depends_on=ids, receipt=receipt_for("demo", MERGE, "add"))

    async def _lose_two(self, victim: Player, staller: Player) -> tuple[Holds, Holds]:
        """Nobody else claims yet, so the jobs that these two lose stay the next ones to be claimed."""
        killed = await victim.take_a_job()
        stalled = await staller.take_a_job()
        staller.stop()
        victim.kill()
        await victim.ended()
        self._progress.say(f"{staller} holds {stalled.job}: stopped (SIGSTOP)")
        self._progress.say(f"{victim} holds {killed.job}: killed (SIGKILL)")
        return killed, stalled

    async def _until_lapsed(self, job: str) -> None:
        try:
            async with asyncio.timeout(_LAPSE_S):
                found = await self._coordinator.wait_for_job(job, "ready")
        except TimeoutError:
            raise DemoFailed(f"the lease on {job} did not lapse within {_LAPSE_S} s") from None
        if found.state != "ready":
            raise DemoFailed(f"{job} is {found.state}, and should be ready again")

    async def _come_back(self, staller: Player) -> CameLate:
        staller.go_on()
        staller.cue()
        said = await staller.hear(CameLate)
        outcome = "let through" if said.code is None else f"refused ({said.code})"
        self._progress.say(
            f"{staller} goes on (SIGCONT), knows that {said.job} is at version {said.version}: {outcome}"
        )
        return said

    async def _interrupt(self, reviewer: Player) -> tuple[Interrupted, Player]:
        """Kill the reviewer when it has looked at the first of several submissions, and start it anew."""
        await self._to_review.wait()
        reviewer.cue()
        read = await reviewer.hear(HasRead)
        reviewer.kill()
        await reviewer.ended()
        read_up_to = f"has read messages {read.first} to {read.last} and acknowledged none"
        self._progress.say(f"{reviewer} {read_up_to}: killed (SIGKILL)")
        successor = await self._enter(self._cast.reviewer())
        await self._cast.ready(successor)
        self._progress.say(f"{successor} goes on behind what was acknowledged")
        successor.cue()
        return Interrupted(pid=reviewer.pid, read=read, restarted_as=successor.pid), successor

    def _tell_claim(self, player: Player, held: Holds) -> None:
        self._progress.say(f"{player} holds {held.job}, attempt {held.attempt}")

    async def _enter(self, starting: Awaitable[Player]) -> Player:
        """From now on, whoever ends badly ends the demo at once."""
        player = await starting
        self._group.create_task(player.ended())
        return player

    async def _follow(self) -> None:
        sent = accepted = 0
        async for entry in self._coordinator.follow():
            match entry.type:
                case "message.sent":
                    sent += 1
                    if sent == _UNREAD:
                        self._to_review.set()
                case "job.accepted":
                    accepted += 1
                    self._progress.accepted(accepted)
                case _:
                    pass

    async def _index_alone(self) -> MergedIndex:
        """The same index, built in this process alone. Between files the driver does what it has to."""
        index: MergedIndex = {}
        for path in self._plan.files:
            index[path] = index_file(self._plan.folder / path)
            await asyncio.sleep(0)
        return index


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first, in the words of the demo where it has some."""
    failure = failures.exceptions[0]
    if isinstance(failure, BaseExceptionGroup):
        return _first(typing.cast("BaseExceptionGroup[BaseException]", failure))
    return DemoFailed(str(failure)) if isinstance(failure, CoordinatorError) else failure
