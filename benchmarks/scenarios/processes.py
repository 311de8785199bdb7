"""Several processes on one file: what they do together, and whether they share fairly."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

from benchmarks.agents import commands_per_second
from benchmarks.apart import Apart, together, wait_for_start
from benchmarks.scenario import Bench, Figure, Sample, Scenario

_AGENTS = 64
_WARM_S = 0.2


def member(path: str, number: int, agents: int, seconds: float) -> float:
    """One of the processes: its commands/s."""
    return commands_per_second(
        Path(path), agents, seconds, prefix=f"process-{number}/", warm_s=_WARM_S, start=wait_for_start
    )


def _paces(bench: Bench, processes: int) -> list[float]:
    with bench.scratch() as folder:
        arguments = {"path": str(folder / "work.db"), "agents": _AGENTS, "seconds": bench.seconds}
        return together([Apart(member, {**arguments, "number": number}) for number in range(processes)])


def _sample(bench: Bench) -> Sample:
    before, two, four, after = (_paces(bench, processes) for processes in (1, 2, 4, 1))
    one = mean(before + after)
    return {
        "total_2": sum(two) / one,
        "total_4": sum(four) / one,
        "fairness_2": min(two) / max(two),
        "fairness_4": min(four) / max(four),
        "commands_per_s_1": one,
        "commands_per_s_2": sum(two),
        "commands_per_s_4": sum(four),
    }


PROCESSES = Scenario(
    name="processes",
    title="Several processes on one file",
    how=f"The journey by {_AGENTS} agents in each of 1, 2 and 4 processes that begin together on a new file; 1 is"
    " measured before and after the others.",
    figures=(
        Figure("total_2", "2 processes together against one", "ratio", at_least=0.8),
        Figure("total_4", "4 processes together against one", "ratio", at_least=0.8),
        Figure("fairness_2", "2 processes: the slowest against the fastest", "ratio", at_least=0.9),
        Figure("fairness_4", "4 processes: the slowest against the fastest", "ratio", at_least=0.9),
        Figure("commands_per_s_1", "commands, 1 process", "per_s"),
        Figure("commands_per_s_2", "commands, 2 processes", "per_s"),
        Figure("commands_per_s_4", "commands, 4 processes", "per_s"),
    ),
    sample=_sample,
)
