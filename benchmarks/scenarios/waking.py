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
_QUIET_WAKES = 20
_PAUSES_S = 0.01, 0.02  # so long that the other one waits again, and never in step with its looks
_QUIET_S = 1.1, 1.3  # so long that it looks less often


def sender(path: str, messages: int, pauses_s: tuple[float, float]) -> list[tuple[float, float]]:
    """One process: when each message was asked to be sent, and when it was."""
    return asyncio.run(_sent(Path(path), messages, pauses_s))


def receiver(path: str, messages: int) -> list[float]:
    """The other: when it had each of them. Linux and macOS have one monotonic clock for all processes."""
    return asyncio.run(_received(Path(path), messages))


def idle(path: str, seconds: float) -> float:
    """A process in which a reader waits and nothing comes: of a core, so many percent."""
    return asyncio.run(_idle(Path(path), seconds))


async def _sent(path: Path, messages: int, pauses_s: tuple[float, float]) -> list[tuple[float, float]]:
    times: list[tuple[float, float]] = []
    async with Coordinator.open(path) as coordinator:
        teller = coordinator.agent("teller")
        wait_for_start()
        for number in range(messages):
            await asyncio.sleep(random.uniform(*pauses_s))
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
        await asyncio.sleep(_QUIET_S[1])
        began, used = time.monotonic(), time.process_time()
        await asyncio.sleep(seconds)
        used, took = time.process_time() - used, time.monotonic() - began
        waiting.cancel()
        await asyncio.wait([waiting])
    return used / took * 100


def _sample(bench: Bench) -> Sample:
    with bench.scratch() as folder:
        sent, received = _told(folder / "work.db", bench.scaled(_WAKES), _PAUSES_S)
        quiet = sorted(_woken(*_told(folder / "quiet.db", bench.scaled(_QUIET_WAKES), _QUIET_S)))
        used = call_apart(idle, path=str(folder / "idle.db"), seconds=bench.seconds)
    woken = sorted(_woken(sent, received))
    whole = sorted(had - asked for (asked, _), had in zip(sent, received, strict=True))
    return {
        "quiet_p50_ms": median(quiet) * 1_000,
        "quiet_longest_ms": quiet[-1] * 1_000,
        "woken_p50_ms": median(woken) * 1_000,
        "woken_p99_ms": woken[int(len(woken) * 0.99)] * 1_000,
        "whole_p50_ms": median(whole) * 1_000,
        "whole_p99_ms": whole[int(len(whole) * 0.99)] * 1_000,
        "longest_ms": woken[-1] * 1_000,
        "idle_percent": used,
    }


def _told(path: Path, messages: int, pauses_s: tuple[float, float]) -> tuple[list[tuple[float, float]], list[float]]:
    arguments = {"path": str(path), "messages": messages}
    sent, received = together([Apart(sender, {**arguments, "pauses_s": pauses_s}), Apart(receiver, arguments)])
    return sent, received


def _woken(sent: list[tuple[float, float]], received: list[float]) -> list[float]:
    return [had - done for (_, done), had in zip(sent, received, strict=True)]


WAKING = Scenario(
    name="waking",
    title="Waking another process",
    how=f"A reader waits in `pages()` while another process sends {_WAKES:,} messages, with pauses of 10 to 20 ms at"
    " random. A wake-up is the time from when `send` returned until the page is there; the page is a command of its"
    f" own, durable before it is handed out. Then {_QUIET_WAKES} messages with more than a second between them, after"
    " which a process looks less often. Then a process in which a reader waits and nothing comes, and the"
    " processor time that it uses.",
    figures=(
        Figure("woken_p50_ms", "another process's message, until a reader has it, median", "ms", at_most=5),
        Figure("woken_p99_ms", "another process's message, until a reader has it, 99th percentile", "ms", at_most=15),
        Figure("quiet_p50_ms", "the same after a quiet second, median", "ms", at_most=5),
        Figure("quiet_longest_ms", "the same after a quiet second, the longest of a sample", "ms"),
        Figure("idle_percent", "a process that waits, of one core", "percent", at_most=1),
        Figure("longest_ms", "until a reader has it, the longest of a sample", "ms"),
        Figure("whole_p50_ms", "from the call of `send` until a reader has it, median", "ms"),
        Figure("whole_p99_ms", "from the call of `send` until a reader has it, 99th percentile", "ms"),
    ),
    sample=_sample,
)
