"""`claim_next` with very many ready jobs."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Coroutine
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import logs
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import Agent, Claim, CommandRecord, Coordinator

_MANY = 100_000
_FEW = 100
_WAITERS = 200
_NEWS = 20
_BUSY_TIMEOUT_S = 60


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

    first: float
    searches: list[float]
    in_turn: list[float]  # what of it the batch of a search held the turn
    alone: list[float]
    during_the_first: list[float]
    meanwhile: list[float]


async def _in_vain(path: Path, seconds: float) -> Waited:
    """Search where every job clashes, while another agent of the same process writes notes."""
    in_turn: list[float] = []

    def observe(record: CommandRecord) -> None:
        if record.type == "claim_next":
            in_turn.append(record.commit_s)

    async with Coordinator.open(path, observe=observe) as coordinator:
        held = await _held_apart(coordinator)
        alone = await _notes(held, time.perf_counter() + seconds / 2)
        (first,), during_the_first = await _beside(held, _searches(coordinator.agent("ada"), 0))
        until = time.perf_counter() + seconds
        searches, meanwhile = await _beside(held, _searches(coordinator.agent("ada"), until))
    return Waited(first, searches, in_turn, alone, during_the_first, meanwhile)


async def _held_apart(coordinator: Coordinator) -> Claim:
    bob = coordinator.agent("bob")
    return await bob.claim(await bob.add_job("apart", paths=["apart"]), lease_s=3_600)


async def _beside(held: Claim, searches: Coroutine[None, None, list[float]]) -> tuple[list[float], list[float]]:
    """How long searches took, and notes meanwhile."""
    searching = asyncio.create_task(searches)
    meanwhile: list[float] = []
    while not searching.done():
        meanwhile += await _notes(held, time.perf_counter() + 0.01)
    return await searching, meanwhile


async def _searches(agent: Agent, until: float) -> list[float]:
    took: list[float] = []
    while not took or time.perf_counter() < until:
        began = time.perf_counter()
        claim = await agent.claim_next()
        took.append(time.perf_counter() - began)
        assert claim is None
    return took


async def _herd(path: Path, seconds: float) -> tuple[list[float], list[float]]:
    """Notes while very many agents wait for work, and how long each new job takes until one of them has claimed it."""
    async with Coordinator.open(path, busy_timeout_s=_BUSY_TIMEOUT_S) as coordinator:
        bob, held = coordinator.agent("bob"), await _held_apart(coordinator)
        agents = [coordinator.agent(f"worker-{number}") for number in range(_WAITERS)]
        waiting = {asyncio.create_task(anext(agent.claims())) for agent in agents}
        assert await bob.claim_next() is None  # by then what is to be found out once has been
        notes = await _notes(held, time.perf_counter() + seconds)
        claimed: list[float] = []
        for number in range(_NEWS):
            began = time.perf_counter()
            await bob.add_job(f"new/{number}", paths=[f"new/{number}"])
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            claimed.append(time.perf_counter() - began)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    return notes, claimed


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
        notes, claimed = asyncio.run(_herd(copy("clashing", many), bench.seconds))
    return {
        "ratio": next_many / next_few,
        "many_ms": next_many,
        "few_ms": next_few,
        "clashing_ms": median(waited.searches) * 1_000,
        "clashing_p99_ms": _p99(waited.searches) * 1_000,
        "first_ms": waited.first * 1_000,
        "in_turn_ms": median(waited.in_turn) * 1_000,
        "others_p50_ms": median(waited.meanwhile) * 1_000,
        "others_p99_ms": _p99(waited.meanwhile) * 1_000,
        "others_first_p50_ms": median(waited.during_the_first) * 1_000,
        "others_first_p99_ms": _p99(waited.during_the_first) * 1_000,
        "others_alone_p50_ms": median(waited.alone) * 1_000,
        "others_alone_p99_ms": _p99(waited.alone) * 1_000,
        "herd_p50_ms": median(notes) * 1_000,
        "herd_p99_ms": _p99(notes) * 1_000,
        "herd_claimed_ms": median(claimed) * 1_000,
    }


BACKLOG = Scenario(
    name="backlog",
    title="Many ready jobs",
    how="`claim_next` by one agent, in a workspace with few ready jobs and in one with many, in turns. Then in one"
    " where none of them can be claimed, because one claim holds the folder of all their paths: it must find out that"
    " there is nothing, again and again, while another agent of the same process writes one note after another. That"
    " one is not held up if its notes wait no longer than a search may take. The first search of a process reads all"
    " ready jobs; it is told apart. At last very many agents wait for work there, in `claims()`, while another writes"
    " notes, and then adds jobs that can be claimed.",
    figures=(
        Figure("ratio", f"`claim_next` with {_MANY:,} ready jobs against {_FEW}", "times", at_most=1.5),
        Figure("clashing_ms", f"`claim_next` where {_MANY:,} ready jobs all clash", "ms", at_most=20),
        Figure("others_p99_ms", "others' commands meanwhile, 99th percentile", "ms", at_most=20),
        Figure("herd_p99_ms", f"others' commands while {_WAITERS} agents wait for work there, 99th percentile", "ms"),
        Figure("herd_claimed_ms", "from adding a job until one of those has claimed it", "ms"),
        Figure("herd_p50_ms", f"others' commands while {_WAITERS} agents wait for work there, median", "ms"),
        Figure("first_ms", "the first such search of a process", "ms"),
        Figure("others_first_p99_ms", "others' commands during that one, 99th percentile", "ms"),
        Figure("others_first_p50_ms", "others' commands during that one, median", "ms"),
        Figure("others_alone_p99_ms", "others' commands without any search, 99th percentile", "ms"),
        Figure("others_p50_ms", "others' commands during later searches, median", "ms"),
        Figure("others_alone_p50_ms", "others' commands without any search, median", "ms"),
        Figure("in_turn_ms", "of a search, its batch with the turn held", "ms"),
        Figure("clashing_p99_ms", "a later search, 99th percentile", "ms"),
        Figure("many_ms", f"`claim_next`, {_MANY:,} ready jobs", "ms"),
        Figure("few_ms", f"`claim_next`, {_FEW} ready jobs", "ms"),
    ),
    sample=_sample,
)
