"""The end of a long topic against that of a short one."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks import logs
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import Coordinator

_LONG = 1_000_000
_SHORT = 1_000
_PAGE = 100


def _topic_of(bench: Bench, messages: int) -> Path:
    messages = bench.scaled(messages)
    return bench.built(f"read-topic-{messages}.db", lambda path: logs.read_topic(path, messages))


async def _pages(short: Path, long: Path, seconds: float) -> list[float]:
    """Median ms to read and acknowledge a page in both, in turns so that both meet the same weather."""
    took: tuple[list[float], list[float]] = [], []
    with closing(logs.Writer(short)) as one, closing(logs.Writer(long)) as other:
        until = time.perf_counter() + seconds
        async with Coordinator.open(short) as in_short, Coordinator.open(long) as in_long:
            while time.perf_counter() < until:
                for coordinator, writer, times in zip((in_short, in_long), (one, other), took, strict=True):
                    writer.tell(_PAGE)
                    times.append(await _page(coordinator))
    return [median(times) * 1_000 for times in took]


async def _page(coordinator: Coordinator) -> float:
    """Seconds to read and acknowledge what was just sent."""
    async with coordinator.agent(logs.READER).reader(logs.TOPIC) as reader:
        began = time.perf_counter()
        page = await reader.read(_PAGE)
        await reader.acknowledge(page)
        took = time.perf_counter() - began
    assert len(page) == _PAGE
    return took


def _sample(bench: Bench) -> Sample:
    long = _topic_of(bench, _LONG)
    with bench.scratch() as folder:
        short = Path(shutil.copy(_topic_of(bench, _SHORT), folder / "short.db"))
        in_short, in_long = asyncio.run(_pages(short, long, bench.seconds))
    return {"ratio": in_long / in_short, "long_ms": in_long, "short_ms": in_short}


LONG_TOPIC = Scenario(
    name="long_topic",
    title="The end of a long topic",
    how=f"A reader that has read all of a topic, once of a short one and once of a long one, in turns. Somebody else"
    f" commits {_PAGE} more messages to it, and the reader begins a session; what is timed is reading the page and"
    " acknowledging it.",
    figures=(
        Figure("ratio", f"a page at the end of {_LONG:,} messages against {_SHORT:,}", "times", at_most=1.3),
        Figure("long_ms", f"read and acknowledge, {_LONG:,} messages", "ms"),
        Figure("short_ms", f"read and acknowledge, {_SHORT:,} messages", "ms"),
    ),
    sample=_sample,
)
