"""`claim_next` with very many ready jobs."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import logs
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import Agent, Claim, CommandRecord, Coordinator

_MANY = 100_000
_FEW = 100
_SEARCHES_LEAST = 3


async def _next(few: Path, many: Path, seconds: float) -> list[float]:
    """Median ms of `claim_next` in both workspaces, in turns; a claimed job goes back to the end of the queue."""
    took: tuple[list[float], list[float]] = [], []
    async with Coordinator.open(few) as one, Coordinator.open(many) as other:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for coordinator, times in zip((one, other), took, strict=True):
                began = time.perf_counter()
                claim = await coordinator.agent("ada").claim_next()
                times.append(time.perf_counter() - began)
                assert claim is not None
                await claim.release()
    return [median(times) * 1_000 for times in took]


class Waited(NamedTuple):
    """Seconds that calls took."""

    searches: list[float]
    in_turn: list[float]  # what of it the batch of a search held the turn
    alone: list[float]
    meanwhile: list[float]


async def _in_vain(path: Path, seconds: float) -> Waited:
    """Search where every job clashes, while another agent of the same process writes notes."""
    in_turn: list[float] = []

    def observe(record: CommandRecord) -> None:
        if record.type == "claim_next":
            in_turn.append(record.commit_s)

    async with Coordinator.open(path, observe=observe) as coordinator:
        bob = coordinator.agent("bob")
        held = await bob.claim(await bob.add_job("apart", paths=["apart"]), lease_s=3_600)
        alone = await _notes(held, time.perf_counter() + seconds / 2)
        searching = asyncio.create_task(_searches(coordinator.agent("ada"), time.perf_counter() + seconds))
        meanwhile: list[float] = []
        while not searching.done():
            meanwhile += await _notes(held, time.perf_counter() + 0.01)
        return Waited(await searching, in_turn, alone, meanwhile)


async def _searches(agent: Agent, until: float) -> list[float]:
    took: list[float] = []
    while time.perf_counter() < until or len(took) < _SEARCHES_LEAST:
        began = time.perf_counter()
        claim = await agent.claim_next()
        took.append(time.perf_counter() - began)
        assert claim is None
    return took


async def _notes(claim: Claim, until: float) -> list[float]:
    took: list[float] = []
    while (began := time.perf_counter()) < until:
        await claim.note({"progress": 0.5})
        took.append(time.perf_counter() - began)
    return took


def _p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def _sample(bench: Bench) -> Sample:
    many, few = bench.scaled(_MANY), bench.scaled(_FEW)
    with bench.scratch() as folder:

        def copy(kind: str, jobs: int) -> Path:
            built = bench.built(f"{kind}-{jobs}.db", lambda path: getattr(logs, kind)(path, jobs))
            return Path(shutil.copy(built, folder))

        next_few, next_many = asyncio.run(_next(copy("ready", few), copy("ready", many), bench.seconds))
        waited = asyncio.run(_in_vain(copy("clashing", many), bench.seconds))
    return {
        "ratio": next_many / next_few,
        "many_ms": next_many,
        "few_ms": next_few,
        "clashing_ms": median(waited.searches) * 1_000,
        "clashing_worst_ms": max(waited.searches) * 1_000,
        "in_turn_ms": median(waited.in_turn) * 1_000,
        "others_p50_ms": median(waited.meanwhile) * 1_000,
        "others_p99_ms": _p99(waited.meanwhile) * 1_000,
        "others_alone_p50_ms": median(waited.alone) * 1_000,
        "others_alone_p99_ms": _p99(waited.alone) * 1_000,
    }


BACKLOG = Scenario(
    name="backlog",
    title="Many ready jobs",
    how="`claim_next` by one agent, in a workspace with few ready jobs and in one with many, in turns. Then in one"
    " where none of them can be claimed, because one claim holds the folder of all their paths: it must find out that"
    " there is nothing, again and again, while another agent of the same process writes one note after another. That"
    " one is not held up if its notes wait no longer than a search may take.",
    figures=(
        Figure("ratio", f"`claim_next` with {_MANY:,} ready jobs against {_FEW}", "times", at_most=1.5),
        Figure("clashing_ms", f"`claim_next` where {_MANY:,} ready jobs all clash", "ms", at_most=20),
        Figure("others_p99_ms", "others' commands meanwhile, 99th percentile", "ms", at_most=20),
        Figure("others_alone_p99_ms", "others' commands without it, 99th percentile", "ms"),
        Figure("others_p50_ms", "others' commands meanwhile, median", "ms"),
        Figure("others_alone_p50_ms", "others' commands without it, median", "ms"),
        Figure("in_turn_ms", "of such a search, its batch with the turn held", "ms"),
        Figure("clashing_worst_ms", "the longest such search", "ms"),
        Figure("many_ms", f"`claim_next`, {_MANY:,} ready jobs", "ms"),
        Figure("few_ms", f"`claim_next`, {_FEW} ready jobs", "ms"),
    ),
    sample=_sample,
)
