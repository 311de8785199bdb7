"""What `make bench` writes and says. The measurements themselves are not run here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import report, run
from benchmarks.apart import Apart, call_apart, memory_mb, together
from benchmarks.measurement import RESULTS, measured, read_all
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.journey import ALONE
from benchmarks.scenarios.turn import member


def scenario(*samples: Sample, at_least: float | None = None, at_most: float | None = None) -> Scenario:
    left = iter(samples)
    figure = Figure("speed", "speed of the fake", "per_s", at_least=at_least, at_most=at_most)
    return Scenario(name="fake", title="A fake", how="Not at all.", figures=(figure,), sample=lambda bench: next(left))


def bench(scenario: Scenario, folder: Path, monkeypatch: pytest.MonkeyPatch, *, runs: int) -> int:
    monkeypatch.setattr(run, "SCENARIOS", (scenario,))
    return run.main(["--runs", str(runs), "--folder", str(folder), "--results", str(folder / "results")])


def test_the_page_on_performance_is_what_the_files_of_results_give() -> None:
    expected = report.page(read_all(RESULTS, SCENARIOS))

    assert report.PAGE.read_text() == expected, "run python -m benchmarks.report"


def test_every_file_of_results_belongs_to_a_scenario() -> None:
    names = {scenario.name for scenario in SCENARIOS}

    assert len(names) == len(SCENARIOS)
    assert {path.stem for path in RESULTS.glob("*.json")} <= names


def test_the_median_of_the_samples_is_held_against_the_target() -> None:
    samples: list[Sample] = [{"speed": 90}, {"speed": 10}, {"speed": 50}]

    met = measured(Figure("speed", "speed", "per_s", at_least=50), samples)
    missed = measured(Figure("speed", "speed", "per_s", at_most=49), samples)
    without = measured(Figure("speed", "speed", "per_s"), samples)

    assert (met["lowest"], met["median"], met["highest"]) == (10, 50, 90)
    assert (met["met"], missed["met"], without["met"]) == (True, False, None)


def test_a_run_keeps_every_sample_and_ends_with_0_if_no_target_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = bench(scenario({"speed": 1}, {"speed": 3}, {"speed": 2}, at_most=2), tmp_path, monkeypatch, runs=3)

    kept = json.loads((tmp_path / "results" / "fake.json").read_text())
    assert status == 0
    assert kept["samples"] == [{"speed": 1}, {"speed": 3}, {"speed": 2}]
    assert kept["command"].startswith("python -m benchmarks.run --runs 3")
    assert kept["machine"]["sqlite"]


def test_a_run_that_misses_a_target_says_which_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = bench(scenario({"speed": 1}, at_least=2), tmp_path, monkeypatch, runs=1)

    assert status == 1
    assert "speed of the fake  1/s  MISSED   at least 2/s" in capsys.readouterr().out


def test_what_cannot_be_measured_is_shown_as_skipped_and_is_no_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = scenario(at_least=2)
    without_compiler = Scenario(
        name=fake.name,
        title=fake.title,
        how=fake.how,
        figures=fake.figures,
        sample=lambda bench: bench.skip("no compiler") or {},
    )

    status = bench(without_compiler, tmp_path, monkeypatch, runs=1)

    page = report.page(read_all(tmp_path / "results", [fake]))
    assert status == 0
    assert "skipped: no compiler" in capsys.readouterr().out
    assert "Skipped: no compiler." in page
    assert "| speed of the fake | – | – | at least 2/s | skipped |" in page


def test_a_trial_is_called_one_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = scenario({"speed": 1})

    bench(fake, tmp_path, monkeypatch, runs=1)

    assert "**A trial:" in report.page(read_all(tmp_path / "results", [fake]))


def test_a_sample_holds_every_figure_of_its_scenario(tmp_path: Path) -> None:
    sample = ALONE.sample(Bench(seconds=0.02, scale=0.001, folder=tmp_path))

    assert {figure.key for figure in ALONE.figures} <= set(sample)


def test_measurements_in_processes_of_their_own_begin_together_and_answer(tmp_path: Path) -> None:
    path = str(tmp_path / "work.db")

    answers = together([Apart(member, {"path": path, "number": number, "seconds": 0.02}) for number in range(2)])

    assert all(waits and min(waits) >= 0 for waits in answers)
    assert 1 < call_apart(memory_mb) < 1_000
