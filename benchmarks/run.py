"""Measure, and keep what was measured: `python -m benchmarks.run`.

Each scenario takes its samples one after another; all of them, with the command, the commit and the machine, go to
`benchmarks/results/NAME.json`, and docs/performance.md is written anew from these files. Exit status 1 if a target is
missed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine, measurement, report
from benchmarks.measurement import RESULTS, RUNS, Measurement
from benchmarks.scenario import Bench, Scenario
from benchmarks.scenarios import SCENARIOS


def measure(scenario: Scenario, bench: Bench, *, runs: int, command: str) -> Measurement:
    """Take the samples of one scenario."""
    began_at, began, load = datetime.now(UTC), time.monotonic(), machine.load()
    commit, changed = machine.commit(), machine.changed()
    bench.skipped, bench.notes = [], []
    samples = [scenario.sample(bench) for _ in range(runs)]
    return {
        "name": scenario.name,
        "title": scenario.title,
        "how": scenario.how,
        "figures": [measurement.measured(figure, samples) for figure in scenario.figures],
        "skipped": bench.skipped,
        "notes": bench.notes,
        "beside": scenario.beside,
        "samples": samples,
        "runs": runs,
        "seconds": bench.seconds,
        "scale": bench.scale,
        "command": command,
        "commit": commit,
        "changed": changed,
        "began_at": f"{began_at:%Y-%m-%dT%H:%M:%SZ}",
        "took_s": round(time.monotonic() - began, 1),
        "load": load,
        "machine": machine.machine(bench.folder),
    }


def lines(measurements: Sequence[Measurement]) -> Iterator[str]:
    """The table for the terminal: what has a target, and what was skipped."""
    rows = [
        (found["name"], figure["what"], report.value(figure["median"], figure["unit"]), figure)
        for found in measurements
        for figure in found["figures"]
        if report.target(figure)
    ]
    names, whats, medians = (max((len(row[column]) for row in rows), default=0) for column in range(3))
    for name, what, median, figure in rows:
        said = report.verdict(figure).strip("*")
        verdict = {"yes": "met", "no": "MISSED"}.get(said, said)
        yield f"{name:{names}}  {what:{whats}}  {median:>{medians}}  {verdict:7}  {report.target(figure)}"
    for found in measurements:
        for reason in found["skipped"]:
            yield f"{found['name']:{names}}  skipped: {reason}"


def missed(measurements: Sequence[Measurement]) -> int:
    return sum(figure["met"] is False for found in measurements for figure in found["figures"])


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    asked = _parser().parse_args(words)
    command = shlex.join(["python", "-m", "benchmarks.run", *words])
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    chosen = [by_name[name] for name in by_name if not asked.only or name in asked.only]
    found: list[Measurement] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=asked.folder) as folder:
        bench = Bench(seconds=asked.seconds, scale=asked.scale, folder=Path(folder))
        _warn_of_memory(bench)
        for scenario in chosen:
            print(f"{scenario.name}: {scenario.title}", file=sys.stderr, flush=True)
            result = measure(scenario, bench, runs=asked.runs, command=command)
            measurement.write(result, asked.results)
            found.append(result)
    if asked.results == RESULTS:
        report.write()
    print(*lines(found), sep="\n")
    count = missed(found)
    print(f"{count} targets missed" if count else "no target missed")
    return 1 if count else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure the coordinator.")
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--runs", type=int, default=RUNS, help="samples of each scenario (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2, help="how long one measurement lasts (%(default)s)")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument(
        "--scale", type=float, default=1, help="size of the large logs, to try things out (%(default)s)"
    )
    parser.add_argument("--folder", type=Path, help="where to work: on the disk to be measured (the temporary folder)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to keep the results; elsewhere for trials")
    return parser


def _warn_of_memory(bench: Bench) -> None:
    if machine.machine(bench.folder)["file system"] in ("tmpfs", "ramfs"):
        print(f"{bench.folder} lies in memory, where a flush costs nothing: name a --folder", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
