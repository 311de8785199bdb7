"""How the ratios to the raw limit move where a flush takes longer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.apart import call_apart
from benchmarks.scenario import Bench, Figure, Sample, Scenario
from benchmarks.scenarios.journey import against_raw

_SOURCE = Path(__file__).parents[1] / "slow_flush.c"
_EXTRA_MS = (1, 5)
_AGENTS = (64, 1)


def against_raw_apart(folder: str, agents: int, seconds: float) -> Sample:
    """A sample of the journey, in the process that has the preload."""
    return against_raw(Bench(seconds=seconds, scale=1, folder=Path(folder)), agents)


def _preload(bench: Bench) -> Path | None:
    library = bench.folder / "slow_flush.so"
    if library.exists():
        return library
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        bench.skip("no C compiler, so no slower flushes")
        return None
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"], capture_output=True, text=True
    )
    if done.returncode:
        bench.skip(f"the preload does not compile: {done.stderr.strip()[:200]}")
        return None
    return library


def _sample(bench: Bench) -> Sample:
    library = _preload(bench)
    if library is None:
        return {}
    sample: Sample = {}
    for extra_ms in _EXTRA_MS:
        slower = {"LD_PRELOAD": str(library), "SLOW_FLUSH_US": str(extra_ms * 1_000)}
        for agents in _AGENTS:
            found = call_apart(
                against_raw_apart, environment=slower, folder=str(bench.folder), agents=agents, seconds=bench.seconds
            )
            for key in ("ratio", "commands_per_s", "raw_rows_per_s"):
                sample[f"{key}_{agents}_{extra_ms}ms"] = found[key]
        if sample[f"raw_rows_per_s_1_{extra_ms}ms"] > 1_000 / extra_ms:
            bench.skip(f"the preload has no effect here ({os.uname().sysname})")
            return {}
    return sample


def _figures(agents: int, extra_ms: int) -> tuple[Figure, ...]:
    suffix = f"{agents}_{extra_ms}ms"
    where = f"{'one agent' if agents == 1 else f'{agents} agents'}, {extra_ms} ms more"
    return (
        Figure(f"ratio_{suffix}", f"{where}: commands/s against the raw limit", "ratio"),
        Figure(f"commands_per_s_{suffix}", f"{where}: commands", "per_s"),
        Figure(f"raw_rows_per_s_{suffix}", f"{where}: rows of the raw limit", "per_s"),
    )


SLOW_DISK = Scenario(
    name="slow_disk",
    title="On a slower disk",
    how=f"How the ratios of {_AGENTS[0]} agents and of one agent to their raw limits move where a preload adds"
    f" {' or '.join(map(str, _EXTRA_MS))} ms to every fsync and fdatasync, of both sides.",
    figures=tuple(figure for extra_ms in _EXTRA_MS for agents in _AGENTS for figure in _figures(agents, extra_ms)),
    sample=_sample,
)
