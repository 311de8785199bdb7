"""What a run of a scenario came to: its samples, their medians, whether the targets are met, and the file of it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from benchmarks.scenario import Figure, Sample, Scenario, Table, Unit

RESULTS = Path(__file__).parent / "results"
RUNS = 5
"""So many samples are needed for a median that counts."""


class Measured(TypedDict):
    """A figure with what was measured; None where nothing was, and for `met` where there is no target."""

    key: str
    what: str
    unit: Unit
    median: float | None
    lowest: float | None
    highest: float | None
    at_least: float | None
    at_most: float | None
    aim: float | None
    met: bool | None


class Measurement(TypedDict):
    """A file of results."""

    name: str
    title: str
    how: str
    figures: list[Measured]
    skipped: list[str]
    notes: list[str]
    beside: Table | list[Any] | None
    samples: list[Sample]
    runs: int
    seconds: float
    scale: float
    command: str
    commit: str
    changed: bool
    began_at: str
    took_s: float
    load: float
    machine: dict[str, Any]


def measured(figure: Figure, samples: Sequence[Sample]) -> Measured:
    values = [sample[figure.key] for sample in samples if figure.key in sample]
    median = statistics.median(values) if values else None
    return {
        "key": figure.key,
        "what": figure.what,
        "unit": figure.unit,
        "median": median,
        "lowest": min(values, default=None),
        "highest": max(values, default=None),
        "at_least": figure.at_least,
        "at_most": figure.at_most,
        "aim": figure.aim,
        "met": _met(figure, median),
    }


def _met(figure: Figure, median: float | None) -> bool | None:
    if median is None or (figure.at_least is None and figure.at_most is None):
        return None
    reaches = figure.at_least is None or median >= figure.at_least
    return reaches and (figure.at_most is None or median <= figure.at_most)


def is_trial(measurement: Measurement) -> bool:
    """Whether it was too short or too small to say anything."""
    return measurement["runs"] < RUNS or measurement["scale"] != 1 or measurement["seconds"] < 1


def write(measurement: Measurement, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(measurement, indent=2, ensure_ascii=False)
    (folder / f"{measurement['name']}.json").write_text(text + "\n")


def read_all(folder: Path, scenarios: Sequence[Scenario]) -> list[Measurement]:
    """The results that there are, in the order of the scenarios."""
    paths = [folder / f"{scenario.name}.json" for scenario in scenarios]
    return [json.loads(path.read_text()) for path in paths if path.exists()]
