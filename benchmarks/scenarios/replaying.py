"""Replaying a log with all projections."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.apart import call_apart, memory_mb
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from benchmarks.scenarios.growth import LONG, log_of
from coordinator.rebuild import replay_page
from coordinator.stores.sqlite import SqliteReader
from projections.replay import replay

_EVENTS = 300_000


def replay_apart(path: str, events: int) -> dict[str, float]:
    """In a process of its own: events/s from nothing to rows, and memory before and after."""
    with closing(SqliteReader(path)) as reader:
        before = memory_mb()
        began = time.perf_counter()
        rows, position = replay([]), 0
        while position < events:
            position = reader.read(lambda snapshot: replay_page(snapshot, rows, position, events))  # noqa: B023
        elapsed = time.perf_counter() - began
    return {
        "events_per_s": position / elapsed,
        "rows": sum(map(len, rows.values())),
        "memory_before_mb": before,
        "memory_mb": memory_mb(),
    }


def _read_per_second(path: Path, events: int) -> float:
    """The limit: the same rows, fetched by the standard library and dropped."""
    began = time.perf_counter()
    with closing(sqlite3.connect(path)) as connection:
        rows = sum(
            1 for _ in connection.execute("SELECT * FROM events WHERE position <= ? ORDER BY position", (events,))
        )
    return rows / (time.perf_counter() - began)


def _sample(bench: Bench) -> Sample:
    log, events = log_of(bench, LONG), bench.scaled(_EVENTS)
    replayed: dict[str, Any] = call_apart(replay_apart, path=str(log), events=events)
    raw = _read_per_second(log, events)
    return {
        **replayed,
        "raw_rows_per_s": raw,
        "ratio": replayed["events_per_s"] / raw,
        "bytes_a_row": (replayed["memory_mb"] - replayed["memory_before_mb"]) * 1e6 / replayed["rows"],
    }


REPLAYING = Scenario(
    name="replay",
    title="Replay",
    how=f"A new process reads {_EVENTS:,} events of the long log page by page, decodes them and folds them with all"
    " projections from nothing. All rows stay in memory, as a rebuild of the views needs them.",
    figures=(
        Figure("events_per_s", "events replayed", "per_s", at_least=100_000),
        Figure("raw_rows_per_s", "rows only read, by the standard library", "per_s"),
        Figure("ratio", "events replayed against rows read", "ratio"),
        Figure("rows", "rows afterwards", "count"),
        Figure("memory_mb", "memory afterwards", "MB"),
        Figure("memory_before_mb", "memory before", "MB"),
        Figure("bytes_a_row", "memory a row, in bytes", "count"),
    ),
    sample=_sample,
)
