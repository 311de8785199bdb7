"""The full journey (add, claim, note, submit, accept) against what raw SQLite makes of as many rows a commit."""

from __future__ import annotations

from benchmarks.agents import Work, journeys, pace
from benchmarks.raw import rows_per_second
from benchmarks.scenario import Bench, Figure, Sample, Scenario


def against_raw(bench: Bench, agents: int, work: Work = journeys) -> Sample:
    """One sample; the raw limit is measured right before and right after, because disks change their mind."""
    with bench.scratch() as folder:
        rows = round(pace(folder / "warm.db", agents, bench.seconds / 4, work).rows_a_commit)
        before = rows_per_second(folder / "before.db", rows, bench.seconds / 2)
        commands, rows_a_commit = pace(folder / "work.db", agents, bench.seconds, work)
        after = rows_per_second(folder / "after.db", round(rows_a_commit), bench.seconds / 2)
    raw = (before + after) / 2
    return {
        "ratio": commands / raw,
        "commands_per_s": commands,
        "raw_rows_per_s": raw,
        "rows_a_commit": rows_a_commit,
        "raw_before": before,
        "raw_after": after,
    }


JOURNEY = Scenario(
    name="journey",
    title="64 agents in one process",
    how="Each agent takes jobs of its own through the full journey: add, claim, note, submit, and accept by a reviewer;"
    " every command is one event. The limit is the standard library's sqlite3 with WAL and synchronous=FULL, one table"
    " with a unique index of time-ordered receipts, and as many rows a commit as a batch held, before and after.",
    figures=(
        Figure("ratio", "commands/s against raw group commit of as many rows", "ratio", at_least=0.20, aim=0.30),
        Figure("commands_per_s", "commands", "per_s"),
        Figure("raw_rows_per_s", "rows of raw group commit", "per_s"),
        Figure("rows_a_commit", "rows a commit", "rows"),
    ),
    sample=lambda bench: against_raw(bench, 64),
)

ALONE = Scenario(
    name="alone",
    title="One agent",
    how="The same journey, one command after another, against raw commits of one row each.",
    figures=(
        Figure("ratio", "commands/s against raw single commits", "ratio", at_least=0.45, aim=0.55),
        Figure("commands_per_s", "commands", "per_s"),
        Figure("raw_rows_per_s", "raw commits of one row", "per_s"),
    ),
    sample=lambda bench: against_raw(bench, 1),
)
