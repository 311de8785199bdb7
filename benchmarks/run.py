"""Measure, and keep what was measured: `python -m benchmarks.run [--runs N] [--seconds S]`.

Machines are noisy, so every figure is a ratio to the raw limit of the same run and folder: what the standard library's
sqlite3 makes of as many rows a commit, measured right before and right after. Raw samples, the command and the commit
are written to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.journey import commands_per_second
from benchmarks.raw import rows_per_second

RESULTS = Path(__file__).parent / "results"


def journey(agents: int, seconds: float) -> dict[str, float]:
    """One sample: commands/s of the journey against raw group commit of as many rows."""
    with tempfile.TemporaryDirectory() as folder:
        _, batch = commands_per_second(Path(folder, "warm.db"), agents, seconds / 4)
        before = rows_per_second(Path(folder, "before.db"), round(batch), seconds / 2)
        commands, batch = commands_per_second(Path(folder, "work.db"), agents, seconds)
        after = rows_per_second(Path(folder, "after.db"), round(batch), seconds / 2)
    raw = (before + after) / 2
    return {
        "commands_per_s": commands,
        "batch": batch,
        "raw_before": before,
        "raw_after": after,
        "ratio": commands / raw,
    }


def measure(name: str, agents: int, at_least: float, *, runs: int, seconds: float) -> dict[str, Any]:
    samples = [journey(agents, seconds) for _ in range(runs)]
    result = {
        "name": name,
        "agents": agents,
        "at_least": at_least,
        "median_ratio": statistics.median(sample["ratio"] for sample in samples),
        "median_commands_per_s": statistics.median(sample["commands_per_s"] for sample in samples),
        "samples": samples,
        "command": " ".join(["python", "-m", "benchmarks.run", *sys.argv[1:]]),
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--", "coordinator", "events", "projections", "benchmarks/*.py")),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    missed = False
    for name, agents, at_least in (("journey_64", 64, 0.15),):
        result = measure(name, agents, at_least, runs=arguments.runs, seconds=arguments.seconds)
        ratios = " ".join(f"{sample['ratio']:.3f}" for sample in result["samples"])
        print(
            f"{name}: {result['median_ratio']:.3f} of the raw limit (at least {at_least}; runs {ratios}),"
            f" {result['median_commands_per_s']:,.0f} commands/s"
        )
        missed = missed or result["median_ratio"] < at_least
    return 1 if missed else 0


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=RESULTS.parent, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
