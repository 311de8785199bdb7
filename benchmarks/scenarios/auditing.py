"""Auditing a long log, and what it takes of memory beside a short one."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.apart import call_apart, memory_mb
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from benchmarks.scenarios.growth import LONG, log_of
from coordinator import audit

_SHORT = 100_000


def audit_apart(path: str) -> dict[str, float]:
    """In a process of its own: events/s of a whole audit, and the most memory it took."""
    events = 0

    def progress(done: int, of: int) -> None:
        nonlocal events
        events = done

    began = time.perf_counter()
    violations = list(audit(path, progress=progress))
    elapsed = time.perf_counter() - began
    if violations:
        raise RuntimeError(f"the log does not hold: {violations[0]}")
    return {"events_per_s": events / elapsed, "memory_mb": memory_mb()}


def _sample(bench: Bench) -> Sample:
    long: dict[str, Any] = call_apart(audit_apart, path=str(log_of(bench, LONG)))
    short: dict[str, Any] = call_apart(audit_apart, path=str(log_of(bench, _SHORT)))
    return {
        "events_per_s": long["events_per_s"],
        "memory_ratio": long["memory_mb"] / short["memory_mb"],
        "memory_mb": long["memory_mb"],
        "short_memory_mb": short["memory_mb"],
    }


AUDITING = Scenario(
    name="audit",
    title="Audit",
    how=f"A new process audits a log of {LONG:,} events, and another one of {_SHORT:,}: chain and rules, all views"
    " folded anew and compared, receipts, SQLite's own check.",
    figures=(
        Figure("events_per_s", "events audited", "per_s", at_least=50_000),
        Figure("memory_ratio", f"memory at {LONG:,} events against {_SHORT:,}", "times", at_most=1.2),
        Figure("memory_mb", f"memory, {LONG:,} events", "MB"),
        Figure("short_memory_mb", f"memory, {_SHORT:,} events", "MB"),
    ),
    sample=_sample,
)
