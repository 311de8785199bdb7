"""Where and of what something was measured."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from coordinator.stores.sqlite_file import file_system_of

_ROOT = Path(__file__).parents[1]
_MEASURED = ("coordinator", "events", "projections", "benchmarks/*.py", "benchmarks/*.c")


def machine(folder: Path) -> dict[str, Any]:
    """The machine, and the disk that `folder` lies on."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "file system": file_system_of(str(folder)) or "unknown",
        "flush_ms": round(_flush_ms(folder), 3),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def load() -> float:
    """How many programs wanted a core in the last minute, on the average."""
    return round(os.getloadavg()[0], 2)


def commit() -> str:
    return _git("rev-parse", "HEAD")


def changed() -> bool:
    """Whether what is measured differs from the commit."""
    return bool(_git("status", "--porcelain", "--", *_MEASURED))


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _flush_ms(folder: Path) -> float:
    """Median time to append 4 KB to a file and have them on the disk."""
    path = folder / "flush"
    took: list[float] = []
    with open(path, "wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    path.unlink()
    return statistics.median(took) * 1_000
