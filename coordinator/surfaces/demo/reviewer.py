"""The reviewer process: reads what was submitted against the files, and accepts or rejects it."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from coordinator import Agent, Coordinator, Job
from coordinator.surfaces.demo.index import PieceIndex
from coordinator.surfaces.demo.merged import Artifact, merge
from coordinator.surfaces.demo.plan import Task
from coordinator.surfaces.demo.review import objection_to_merged, objection_to_piece
from coordinator.surfaces.demo.stage import Ready, entered, perform
from coordinator.surfaces.demo.worker import BUSY_TIMEOUT_S, EVERY_JOB

_LOOK_S = 0.02  # nothing wakes a reviewer yet


async def review_all(coordinator: Coordinator, reviewer: Agent, folder: Path, database: Path) -> None:
    """Until no job can be submitted any more."""
    while await coordinator.jobs("ready", "claimed", "submitted", limit=1):
        for job in await coordinator.jobs("submitted", limit=64):
            objection = await _objection(coordinator, job, folder, database)
            if objection is None:
                await reviewer.accept(job)
            else:
                await reviewer.reject(job, objection)
        await asyncio.sleep(_LOOK_S)


async def _objection(coordinator: Coordinator, job: Job, folder: Path, database: Path) -> str | None:
    task = job.payload_as(Task)
    if not task.merge:
        return objection_to_piece(folder, task, job.result_as(PieceIndex))
    accepted = await coordinator.jobs("accepted", limit=EVERY_JOB)
    pieces = merge(piece.result_as(PieceIndex) for piece in accepted)
    return objection_to_merged(database, pieces, job.result_as(Artifact))


async def part(arguments: argparse.Namespace) -> None:
    folder: Path = arguments.folder
    database: Path = arguments.database
    async with entered() as stage, Coordinator.open(database, busy_timeout_s=BUSY_TIMEOUT_S) as coordinator:
        stage.say(Ready())
        await stage.cue()
        await review_all(coordinator, coordinator.agent("reviewer"), folder, database)


if __name__ == "__main__":
    perform(part, argparse.ArgumentParser(prog="reviewer", description=__doc__))
