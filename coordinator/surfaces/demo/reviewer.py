"""The reviewer process: reads what was submitted against the files, and accepts or rejects it.

It reads a topic, and acknowledges a page when it has reviewed all that the page names. If it is killed before that, its
successor is handed the page again, and passes over what is reviewed already.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator import Agent, Coordinator, Job, Message
from coordinator.surfaces.demo.index import PieceIndex
from coordinator.surfaces.demo.merged import Artifact, merge
from coordinator.surfaces.demo.plan import Task
from coordinator.surfaces.demo.review import objection_to_merged, objection_to_piece
from coordinator.surfaces.demo.stage import HasRead, Ready, entered, perform
from coordinator.surfaces.demo.submissions import SUBMISSIONS, Submission
from coordinator.surfaces.demo.worker import BUSY_TIMEOUT_S, EVERY_JOB


@dataclass(frozen=True, slots=True)
class Reviewer:
    agent: Agent
    coordinator: Coordinator
    folder: Path
    database: Path

    async def review_all(self, reviewed: Callable[[Sequence[Message]], Awaitable[None]] | None = None) -> None:
        """Until a message says that nothing more will come.

        Args:
            reviewed: told of the page after each message that names a job.
        """
        async with self.agent.reader(SUBMISSIONS) as reader:
            async for page in reader.pages():
                submissions = [message.body_as(Submission) for message in page]
                for submission in submissions:
                    if submission.job is not None:
                        await self.review(submission.job)
                        if reviewed is not None:
                            await reviewed(page)
                await reader.acknowledge(page)
                if submissions[-1].job is None:
                    return

    async def review(self, name: str) -> None:
        """Review it, once it is submitted: its worker does that next.

        It is not if the worker lost its claim, and whoever submits it then sends a message too. Nor is it submitted any
        more if it was reviewed before.
        """
        job = await self.coordinator.wait_for_job(name, "submitted", "ready", "accepted", "failed", "cancelled")
        if job.state != "submitted":
            return
        objection = await self._objection(job)
        if objection is None:
            await self.agent.accept(job)
        else:
            await self.agent.reject(job, objection)

    async def _objection(self, job: Job) -> str | None:
        task = job.payload_as(Task)
        if not task.merge:
            return objection_to_piece(self.folder, task, job.result_as(PieceIndex))
        accepted = await self.coordinator.jobs("accepted", limit=EVERY_JOB)
        pieces = merge(piece.result_as(PieceIndex) for piece in accepted)
        return objection_to_merged(self.database, pieces, job.result_as(Artifact))


async def part(arguments: argparse.Namespace) -> None:
    folder: Path = arguments.folder
    database: Path = arguments.database
    pauses: bool = arguments.pauses
    async with entered() as stage, Coordinator.open(database, busy_timeout_s=BUSY_TIMEOUT_S) as coordinator:

        async def pause(page: Sequence[Message]) -> None:
            stage.say(HasRead(page[0].number, page[-1].number))
            await stage.cue()

        stage.say(Ready())
        await stage.cue()
        reviewer = Reviewer(coordinator.agent("reviewer"), coordinator, folder, database)
        await reviewer.review_all(pause if pauses else None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="reviewer", description=__doc__)
    parser.add_argument("--pauses", action="store_true", help="after each review, until it is given a cue")
    perform(part, parser)
