"""Operations: approving one against raw commits, and running a program against starting it bare."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec

from benchmarks.raw import rows_per_second
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import Agent, Coordinator, Kind, SubprocessKind, Work

_MANY = 64
_PROGRAM = ["/bin/sh", "-c", """echo '{"result": {}}'"""]


class Nothing(msgspec.Struct):
    number: int = 0


class Instant(Kind[Nothing]):
    """Its work is done at once: it is the approval that is measured."""

    name = "instant"
    arguments = Nothing

    async def preview(self, arguments: Nothing) -> Any:
        return {"number": arguments.number}

    async def run(self, arguments: Nothing, work: Work) -> Any:
        return {}


class NoOperation(SubprocessKind[Nothing]):
    name = "nothing"
    arguments = Nothing

    async def preview(self, arguments: Nothing) -> Any:
        return {}

    def command(self, arguments: Nothing, work: Work) -> Sequence[str]:
        return _PROGRAM


async def _approvals(path: Path, operators: int, seconds: float) -> float:
    """Approvals/s, from the preview to the answer "queued"; the attempts run beside them."""
    count = 0

    async def approve(agent: Agent, until: float) -> None:
        nonlocal count
        while time.perf_counter() < until:
            await agent.apply(await agent.preview("instant", {"number": count}))
            count += 1

    async with Coordinator.open(path) as coordinator:
        coordinator.register(Instant())
        began = time.perf_counter()
        agents = [coordinator.agent(f"agent-{number}") for number in range(operators)]
        await asyncio.gather(*(approve(agent, began + seconds) for agent in agents))
        return count / (time.perf_counter() - began)


async def _runs(path: Path, seconds: float) -> tuple[float, float, float]:
    """Median ms of the program bare, median ms of it as an operation, and status reads/s."""
    bare: list[float] = []
    operated: list[float] = []
    async with Coordinator.open(path) as coordinator:
        coordinator.register(NoOperation())
        ada = coordinator.agent("ada")
        operation = await ada.apply(await ada.preview("nothing", {}))
        await operation.wait()  # the supervisor runs now
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or len(bare) < 10:
            began = time.perf_counter()
            await asyncio.to_thread(subprocess.run, _PROGRAM, stdout=subprocess.PIPE, check=True)
            bare.append(time.perf_counter() - began)
            began = time.perf_counter()
            operation = await ada.apply(await ada.preview("nothing", {}))
            status = await operation.wait()
            operated.append(time.perf_counter() - began)
            assert status.state == "succeeded", status.reason
        reads, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds / 2 or not reads:
            await operation.status()
            reads += 1
    return median(bare) * 1_000, median(operated) * 1_000, reads / elapsed


def _sample(bench: Bench) -> Sample:
    with bench.scratch() as folder:
        raw_1 = [rows_per_second(folder / "one-before.db", 1, bench.seconds / 2)]
        raw_64 = [rows_per_second(folder / "many-before.db", _MANY, bench.seconds / 2)]
        one = asyncio.run(_approvals(folder / "one.db", 1, bench.seconds))
        many = asyncio.run(_approvals(folder / "many.db", _MANY, bench.seconds))
        raw_1.append(rows_per_second(folder / "one-after.db", 1, bench.seconds / 2))
        raw_64.append(rows_per_second(folder / "many-after.db", _MANY, bench.seconds / 2))
        bare_ms, operated_ms, reads = asyncio.run(_runs(folder / "programs.db", bench.seconds))
    return {
        "ratio_1": one / mean(raw_1),
        "ratio_64": many / mean(raw_64),
        "overhead_ms": operated_ms - bare_ms,
        "approvals_per_s_1": one,
        "approvals_per_s_64": many,
        "bare_ms": bare_ms,
        "operated_ms": operated_ms,
        "status_per_s": reads,
    }


OPERATIONS = Scenario(
    name="operations",
    title="Operations",
    how=f"Operators preview and apply one operation after another, each new, until it is answered as queued; meanwhile"
    f" the attempts run beside them, and write two more events each. The limits are raw commits of one row, and of"
    f" {_MANY}. Then a program that prints an empty result is run bare, and as an operation from its preview to the end"
    " of `wait`, in turns.",
    figures=(
        Figure("ratio_1", "approvals/s of one operator against raw single commits", "ratio", at_least=0.3),
        Figure("ratio_64", f"approvals/s of {_MANY} operators against raw group commit", "ratio", at_least=0.15),
        Figure("overhead_ms", "an operation that does nothing, over starting its program bare", "ms", at_most=25),
        Figure("approvals_per_s_1", "approvals, one operator", "per_s"),
        Figure("approvals_per_s_64", f"approvals, {_MANY} operators", "per_s"),
        Figure("bare_ms", "the program bare", "ms"),
        Figure("operated_ms", "the program as an operation", "ms"),
        Figure("status_per_s", "reads of a status", "per_s"),
    ),
    sample=_sample,
)
