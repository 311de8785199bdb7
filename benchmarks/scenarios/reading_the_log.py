"""Commands that read a long log, against one that reads nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from benchmarks.scenario import Bench, Figure, Sample, Scenario
from benchmarks.scenarios.growth import LONG, log_of

_TIMES = 15


def _took(arguments: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "coordinator", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _sample(bench: Bench) -> Sample:
    timeline = ["timeline", "--database", str(log_of(bench, LONG)), "--job", "done/7"]
    pairs = [(_took(timeline), _took(["--version"])) for _ in range(_TIMES + 1)][1:]
    timeline_s, version_s = (median(took) for took in zip(*pairs, strict=True))
    return {"timeline": timeline_s / version_s, "timeline_ms": timeline_s * 1_000, "version_ms": version_s * 1_000}


READING_THE_LOG = Scenario(
    name="reading_the_log",
    title="Commands that read a long log",
    how=f"Whole processes, in turns with `coordinator --version`, which reads nothing; median of {_TIMES}, after one"
    " that loads the files.",
    figures=(
        Figure("timeline", f"timeline --job, {LONG:,} events, against --version", "times", at_most=3),
        Figure("timeline_ms", f"timeline --job, {LONG:,} events", "ms"),
        Figure("version_ms", "--version", "ms"),
    ),
    sample=_sample,
)
