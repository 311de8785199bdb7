"""A worker process: claims a job, reads its files, submits their index, until nothing is left to do.

On request it has one of the two misfortunes that end well. The third, being killed, needs no code.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path

from coordinator import Agent, Claim, ClaimLost, CommandRecord, Coordinator, InvalidInput, JobRef, receipt_for
from coordinator.surfaces.demo.index import PieceIndex, index_files
from coordinator.surfaces.demo.merged import Artifact, merge, write
from coordinator.surfaces.demo.plan import Task
from coordinator.surfaces.demo.stage import AskedTwice, CameLate, Holds, Ready, Stage, entered, perform
from coordinator.surfaces.demo.submissions import SUBMISSIONS, Submission

EVERY_JOB = 1_000_000
BUSY_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Worker:
    agent: Agent
    coordinator: Coordinator
    stage: Stage
    folder: Path
    database: Path

    async def work(self, lease_s: float, unanswered: UnansweredSubmit | None, *, announce: bool) -> None:
        """Claim after claim. The first is announced, and waits for a cue with its lease renewed."""
        async for claim in self.agent.claims(until_settled=True, lease_s=lease_s):
            try:
                async with claim.working():
                    if announce:
                        announce = False
                        self.stage.say(Holds(claim.job.id, claim.attempt))
                        await self.stage.cue()
                    result = await self.result_of(claim)
                    await claim.send(SUBMISSIONS, Submission(claim.job.id))
                    if unanswered is None:
                        await claim.submit(result)
                    else:
                        self.stage.say(await unanswered.submit(claim, result))
                        unanswered = None
            except (ClaimLost, InvalidInput):
                pass  # somebody else has it now; or the result cannot be stored, which its failure says

    async def result_of(self, claim: Claim) -> PieceIndex | Artifact:
        task = claim.job.payload_as(Task)
        if not task.merge:
            return index_files(self.folder, task.files)
        accepted = await self.coordinator.jobs("accepted", limit=EVERY_JOB)
        index = merge(job.result_as(PieceIndex) for job in accepted)
        return write(self.database, index, claim.attempt)

    async def stall(self, lease_s: float) -> None:
        """What a naive agent does: claim, work, look that the version is still right, and submit.

        While it waits for the cue the driver stops the process, until somebody else has the job.
        """
        claim = await self.agent.claim_next(lease_s=lease_s)
        if claim is None:
            raise LookupError("there is no job to stall on")
        self.stage.say(Holds(claim.job.id, claim.attempt))
        result = await self.result_of(claim)
        await self.stage.cue()
        version = (await self.coordinator.job(claim.job.id)).version
        try:
            await claim.submit(result, context=f"knows version {version}")
        except ClaimLost as lost:
            self.stage.say(CameLate(claim.job.id, version, lost.code, lost.position))
        else:
            await self.agent.send(SUBMISSIONS, Submission(claim.job.id))  # then at least the demo comes to its end
            self.stage.say(CameLate(claim.job.id, version))


class UnansweredSubmit:
    """A submit whose answer is lost: its caller is cancelled when the commit is on the disk, before it hears of it."""

    def __init__(self) -> None:
        self._asking: asyncio.Task[JobRef] | None = None
        self._heard: list[CommandRecord] = []

    def observe(self, record: CommandRecord) -> None:
        """Told of each command on the loop, before the task that asked is woken."""
        if record.type == "submit_job":
            self._heard.append(record)
            if self._asking is not None and record.outcome == "ok":
                self._asking.cancel()

    async def submit(self, claim: Claim, result: PieceIndex | Artifact) -> AskedTwice:
        self._heard.clear()
        receipt = receipt_for("demo", claim.job.id, str(claim.attempt), "submit")
        self._asking = asyncio.create_task(claim.submit(result, receipt=receipt))
        await asyncio.wait([self._asking])
        if not self._asking.cancelled():
            await self._asking  # refused, perhaps
            raise LookupError("the answer was not lost")
        self._asking = None
        again = await claim.submit(result, receipt=receipt)
        return AskedTwice(
            job=claim.job.id,
            receipt=receipt,
            first=self._heard[0].position,
            again=again.position,
            outcomes=[record.outcome for record in self._heard],
        )


async def part(arguments: argparse.Namespace) -> None:
    name: str = arguments.name
    lease_s: float = arguments.lease
    stalls_s: float | None = arguments.stalls
    folder: Path = arguments.folder
    database: Path = arguments.database
    unanswered = UnansweredSubmit() if arguments.loses_an_answer else None
    observe = None if unanswered is None else unanswered.observe
    async with (
        entered() as stage,
        Coordinator.open(database, busy_timeout_s=BUSY_TIMEOUT_S, observe=observe) as coordinator,
    ):
        worker = Worker(coordinator.agent(name), coordinator, stage, folder, database)
        stage.say(Ready())
        await stage.cue()
        if stalls_s is not None:
            await worker.stall(stalls_s)
            await stage.cue()
        await worker.work(lease_s, unanswered, announce=stalls_s is None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--lease", type=float, required=True, help="seconds")
    parser.add_argument("--stalls", type=float, help="submit the first claim late; its lease in seconds")
    parser.add_argument("--loses-an-answer", action="store_true", help="to the first submit")
    perform(part, parser)
