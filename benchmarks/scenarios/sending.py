"""Messages to one topic against what raw SQLite makes of as many rows a commit."""

from __future__ import annotations

from benchmarks.agents import sends
from benchmarks.scenario import Figure, Scenario
from benchmarks.scenarios.journey import against_raw

SENDING = Scenario(
    name="sending",
    title="64 senders in one process",
    how="Each sends one message after another to the one topic of all. The limit is the same as for the journey: raw"
    " SQLite with as many rows a commit, before and after.",
    figures=(
        Figure("ratio", "messages/s of 64 senders against raw group commit of as many rows", "ratio", at_least=0.20),
        Figure("commands_per_s", "messages", "per_s"),
        Figure("raw_rows_per_s", "rows of raw group commit", "per_s"),
        Figure("rows_a_commit", "rows a commit", "rows"),
    ),
    sample=lambda bench: against_raw(bench, 64, sends),
)
