"""Write docs/performance.md from the files in benchmarks/results: `python -m benchmarks.report`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.measurement import RESULTS, RUNS, Measured, Measurement, is_trial, read_all
from benchmarks.scenario import Unit
from benchmarks.scenarios import SCENARIOS

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"

_HEAD = f"""\
# Performance

<!-- Written by `python -m benchmarks.report` from benchmarks/results/*.json. Do not edit: a test compares. -->

`make bench` measures what follows and writes this page. Every figure is the median of at least {RUNS} runs, and every \
sample is kept in [benchmarks/results](../benchmarks/results) with the command, the commit and the machine.

Machines and disks differ, and the same one is faster at one time than at another. So read the ratios: both sides of \
each were measured in the same run, on the same disk, one right after the other. Absolute figures tell what this one \
machine did.
"""

_UNITS: dict[Unit, tuple[str, str]] = {
    "ratio": ("{:.2f}", ""),
    "times": ("{:.2f}", " times"),
    "per_s": ("{:,.0f}", "/s"),
    "ms": ("{:.3g}", " ms"),
    "MB": ("{:.0f}", " MB"),
    "rows": ("{:.1f}", ""),
    "count": ("{:,.0f}", ""),
    "percent": ("{:.2f}", " %"),
}


def value(number: float | None, unit: Unit) -> str:
    return "–" if number is None else _plain(number, unit) + _UNITS[unit][1]


def target(figure: Measured) -> str:
    """What the median should come to, in words."""
    said = [
        f"{word} {bound:,g}{_UNITS[figure['unit']][1]}"
        for word, bound in (
            ("at least", figure["at_least"]),
            ("at most", figure["at_most"]),
            ("aim for", figure["aim"]),
        )
        if bound is not None
    ]
    return ", ".join(said)


def _plain(number: float, unit: Unit) -> str:
    return f"{number:,.0f}" if unit == "ms" and number >= 100 else _UNITS[unit][0].format(number)


def verdict(figure: Measured) -> str:
    """Whether it does."""
    if figure["median"] is None:
        return "skipped"
    return {True: "yes", False: "**no**", None: ""}[figure["met"]]


def page(measurements: Sequence[Measurement]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_targets(measurements), *_sections(measurements), *_machines(measurements)])


def _targets(measurements: Sequence[Measurement]) -> Iterator[str]:
    rows = [
        (figure["what"], value(figure["median"], figure["unit"]), target(figure), verdict(figure))
        for measurement in measurements
        for figure in measurement["figures"]
        if target(figure)
    ]
    yield "## Targets\n"
    if rows:
        yield _table(("what", "median", "target", "met"), rows)
    absent = [s.title for s in SCENARIOS if s.name not in {measurement["name"] for measurement in measurements}]
    if absent:
        yield f"Not measured yet: {', '.join(absent)}.\n"
    trials = [measurement["title"] for measurement in measurements if is_trial(measurement)]
    if trials:
        yield f"Only trials, which say nothing: {', '.join(trials)}.\n"


def _sections(measurements: Sequence[Measurement]) -> Iterator[str]:
    for measurement in measurements:
        yield f"## {measurement['title']}\n"
        yield f"{measurement['how']}\n"
        if is_trial(measurement):
            yield "**A trial: too short or too small to conclude anything from.**\n"
        for reason in measurement["skipped"]:
            yield f"Skipped: {reason}.\n"
        for remark in measurement["notes"]:
            yield f"Note: {remark}.\n"
        rows = [
            (
                figure["what"],
                value(figure["median"], figure["unit"]),
                _spread(figure),
                target(figure),
                verdict(figure),
            )
            for figure in measurement["figures"]
        ]
        yield _table(("what", "median", "lowest to highest", "target", "met"), rows)
        if measurement["beside"]:
            header, lines = measurement["beside"]
            yield _table(header, lines)
        yield f"{_circumstances(measurement)}\n"


def _spread(figure: Measured) -> str:
    if figure["lowest"] is None:
        return "–"
    return f"{_plain(figure['lowest'], figure['unit'])} to {value(figure['highest'], figure['unit'])}"


def _circumstances(measurement: Measurement) -> str:
    commit = measurement["commit"][:12] or "an unknown commit"
    changes = " with uncommitted changes" if measurement["changed"] else ""
    size = "" if measurement["scale"] == 1 else f", scale {measurement['scale']:g}"
    return (
        f"{measurement['runs']} runs{size}; `{measurement['command']}` at `{commit}`{changes},"
        f" {measurement['began_at']}, {measurement['took_s']:.0f} s, load {measurement['load']:.1f} at the beginning."
    )


def _machines(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Each machine with what was measured on it; how long a flush took there varies, so as a span."""
    machines: dict[tuple[tuple[str, object], ...], list[Measurement]] = {}
    for measurement in measurements:
        facts = tuple((fact, said) for fact, said in measurement["machine"].items() if fact != "flush_ms")
        machines.setdefault(facts, []).append(measurement)
    for facts, of_it in machines.items():
        yield (
            "## The machine\n" if len(machines) == 1 else f"## The machine of {', '.join(m['title'] for m in of_it)}\n"
        )
        flushes = [measurement["machine"]["flush_ms"] for measurement in of_it]
        rows = [(fact, str(said)) for fact, said in facts]
        rows.append(("to append and flush 4 KB", f"{min(flushes):.2f} to {max(flushes):.2f} ms"))
        yield _table(("fact", "here"), rows)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [_line(header), _line("---" for _ in header), *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def write(folder: Path = RESULTS) -> None:
    PAGE.write_text(page(read_all(folder, SCENARIOS)))


def main() -> int:
    write()
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
