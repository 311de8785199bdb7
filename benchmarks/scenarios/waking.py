"""How soon a process that waits has what another one sent, and what waiting costs."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from statistics import median

from benchmarks import logs
from benchmarks.apart import Apart, call_apart, together, wait_for_start
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import Coordinator

_WAKES = 1_000
_PAUSES_S = 0.01, 0.02  # so long that the other one waits again, and never in step with its looks


def sender(path: str, messages: int) -> list[tuple[float, float]]:
    """One process: when each message was asked to be sent, and when it was."""
    return asyncio.run(_sent(Path(path), messages))


def receiver(path: str, messages: int) -> list[float]:
    """The other: when it had each of them. Linux and macOS have one monotonic clock for all processes."""
    return asyncio.run(_received(Path(path), messages))


def idle(path: str, seconds: float) -> float:
    """A process in which a reader waits and nothing comes: of a core, so many percent."""
    return asyncio.run(_idle(Path(path), seconds))


async def _sent(path: Path, messages: int) -> list[tuple[float, float]]:
    times: list[tuple[float, float]] = []
    async with Coordinator.open(path) as coordinator:
        teller = coordinator.agent("teller")
        wait_for_start()
        for number in range(messages):
            await asyncio.sleep(random.uniform(*_PAUSES_S))
            asked = time.monotonic()
            await teller.send(logs.TOPIC, {"number": number})
            times.append((asked, time.monotonic()))
    return times


async def _received(path: Path, messages: int) -> list[float]:
    times: list[float] = []
    async with Coordinator.open(path) as coordinator, coordinator.agent("ada").reader(logs.TOPIC) as reader:
        wait_for_start()
        async for page in reader.pages():
            times += [time.monotonic()] * len(page)
            await reader.acknowledge(page)
            if reader.acknowledged == messages:
                break
    return times


async def _idle(path: Path, seconds: float) -> float:
    async with Coordinator.open(path) as coordinator, coordinator.agent("ada").reader(logs.TOPIC) as reader:
        waiting = asyncio.create_task(anext(reader.pages()))
        await asyncio.sleep(seconds / 4)
        began, used = time.monotonic(), time.process_time()
        await asyncio.sleep(seconds)
        used, took = time.process_time() - used, time.monotonic() - began
        waiting.cancel()
        await asyncio.wait([waiting])
    return used / took * 100


def _sample(bench: Bench) -> Sample:
    messages = bench.scaled(_WAKES)
    with bench.scratch() as folder:
        arguments = {"path": str(folder / "work.db"), "messages": messages}
        sent, received = together([Apart(sender, arguments), Apart(receiver, arguments)])
        used = call_apart(idle, path=str(folder / "idle.db"), seconds=bench.seconds)
    woken = sorted(had - done for (_, done), had in zip(sent, received, strict=True))
    whole = sorted(had - asked for (asked, _), had in zip(sent, received, strict=True))
    return {
        "woken_p50_ms": median(woken) * 1_000,
        "woken_p99_ms": woken[int(len(woken) * 0.99)] * 1_000,
        "whole_p50_ms": median(whole) * 1_000,
        "whole_p99_ms": whole[int(len(whole) * 0.99)] * 1_000,
        "longest_ms": woken[-1] * 1_000,
        "idle_percent": used,
    }


WAKING = Scenario(
    name="waking",
    title="Waking another process",
    how=f"A reader waits in `pages()` while another process sends {_WAKES:,} messages, with pauses of 10 to 20 ms at"
    " random. A wake-up is the time from when `send` returned until the page is there; the page is a command of its"
    " own, durable before it is handed out. Then a process in which a reader waits and nothing comes, and the"
    " processor time that it uses.",
    figures=(
        Figure("woken_p50_ms", "another process's message, until a reader has it, median", "ms", at_most=5),
        Figure("woken_p99_ms", "another process's message, until a reader has it, 99th percentile", "ms", at_most=15),
        Figure("idle_percent", "a process that waits, of one core", "percent", at_most=1),
        Figure("longest_ms", "until a reader has it, the longest of a sample", "ms"),
        Figure("whole_p50_ms", "from the call of `send` until a reader has it, median", "ms"),
        Figure("whole_p99_ms", "from the call of `send` until a reader has it, 99th percentile", "ms"),
    ),
    sample=_sample,
)
