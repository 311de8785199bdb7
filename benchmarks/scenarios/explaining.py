"""Asking a long log from the command line: why, who, one event, one moment."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.scenario import Bench, Figure, Sample, Scenario
from benchmarks.scenarios.growth import LONG, log_of

_TIMES = 9


def _ms(*arguments: str) -> float:
    """One command in a process of its own, from its start to its end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "coordinator", *arguments], check=True, capture_output=True)
    return (time.perf_counter() - began) * 1_000


def _in_turns(commands: dict[str, list[str]]) -> dict[str, float]:
    """Medians of commands that are run in turns, so that all meet the same weather."""
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(_TIMES):
        for name, arguments in commands.items():
            took[name].append(_ms(*arguments))
    return {name: median(times) for name, times in took.items()}


def _sample(bench: Bench) -> Sample:
    log: Path = log_of(bench, LONG)
    events = bench.scaled(LONG)
    named = ["--database", str(log)]
    took = _in_turns(
        {
            "version_ms": ["--version"],
            "why_ms": ["why", "waiting/0", *named],
            "who_ms": ["who", "src", *named],
            "explain_ms": ["explain", str(events // 2), *named],
            "at_job_ms": ["at", str(events // 2), "--job", "done/0", *named],
        }
    )
    at_ms = _ms("at", str(events - 1), *named)
    return {
        **took,
        "why_ratio": took["why_ms"] / took["version_ms"],
        "at_events_per_s": (events - 1) / at_ms * 1_000,
    }


EXPLAINING = Scenario(
    name="explaining",
    title="Asking a long log",
    how=f"`coordinator why`, `who`, `explain` and `at --job` on the long log ({LONG:,} events), each in a process of"
    f" its own, in turns with `coordinator --version`; medians of {_TIMES}. Then once `coordinator at` near its end,"
    " which folds all of it.",
    figures=(
        Figure("why_ratio", "`coordinator why` against `coordinator --version`", "times", at_most=3),
        Figure("why_ms", "`coordinator why`", "ms"),
        Figure("version_ms", "`coordinator --version`", "ms"),
        Figure("who_ms", "`coordinator who`", "ms"),
        Figure("explain_ms", "`coordinator explain`", "ms"),
        Figure("at_job_ms", "`coordinator at --job`", "ms"),
        Figure("at_events_per_s", "`coordinator at` near the end, events folded", "per_s"),
    ),
    sample=_sample,
)
