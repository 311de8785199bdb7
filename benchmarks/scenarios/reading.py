"""A topic read page by page, each acknowledged, against plain paging of the same rows."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from benchmarks import logs
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from coordinator import Coordinator

_MESSAGES = 100_000
_PAGE = 100
_SELECT = "SELECT position, at, actor, body FROM events WHERE position > ? ORDER BY position LIMIT ?"


def _paged_per_second(path: Path) -> float:
    """The limit: the rows by the standard library, each page remembered as read by a durable commit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE kept(up_to INTEGER NOT NULL)")
        connection.execute("INSERT INTO kept VALUES (0)")
        read, position, began = 0, 0, time.perf_counter()
        while page := connection.execute(_SELECT, (position, _PAGE)).fetchall():
            read, position = read + len(page), page[-1][0]
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE kept SET up_to = ?", (position,))
            connection.execute("COMMIT")
        return read / (time.perf_counter() - began)


async def _read_per_second(path: Path, messages: int) -> float:
    async with Coordinator.open(path) as coordinator, coordinator.agent("ada").reader(logs.TOPIC) as reader:
        began = time.perf_counter()
        while page := await reader.read(_PAGE):
            await reader.acknowledge(page)
        took = time.perf_counter() - began
        assert reader.acknowledged == messages
    return messages / took


def _sample(bench: Bench) -> Sample:
    messages = bench.scaled(_MESSAGES)
    built = bench.built(f"topic-{messages}.db", lambda path: logs.topic(path, messages))
    with bench.scratch() as folder:
        before, work, after = (Path(shutil.copy(built, folder / name)) for name in ("before", "work.db", "after"))
        raw_before = _paged_per_second(before)
        read = asyncio.run(_read_per_second(work, messages))
        raw_after = _paged_per_second(after)
    raw = (raw_before + raw_after) / 2
    return {
        "ratio": read / raw,
        "messages_per_s": read,
        "raw_rows_per_s": raw,
        "page_ms": _PAGE / read * 1_000,
        "raw_page_ms": _PAGE / raw * 1_000,
        "raw_before": raw_before,
        "raw_after": raw_after,
    }


READING = Scenario(
    name="reading",
    title="Reading a topic",
    how=f"One agent reads {_MESSAGES:,} messages in pages of {_PAGE} and acknowledges each page: two commands, each"
    " durable before it is answered. The limit is the standard library's sqlite3, which selects the same rows by"
    " position, as many at a time, and after each page commits durably how far it came, before and after.",
    figures=(
        Figure("ratio", "messages/s against plain paging with one durable commit a page", "ratio", at_least=0.30),
        Figure("messages_per_s", "messages read and acknowledged", "per_s"),
        Figure("raw_rows_per_s", "rows by plain paging", "per_s"),
        Figure("page_ms", "a page, read and acknowledged", "ms"),
        Figure("raw_page_ms", "a page by plain paging", "ms"),
    ),
    sample=_sample,
)
