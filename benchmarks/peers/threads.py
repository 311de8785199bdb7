"""Threads that each go through a peer's cycle again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypedDict


class Cycles(TypedDict):
    """What a peer managed.

    Attributes:
        per_s: cycles that were completed.
        failed: cycles that ended with an error.
        error: the first of these.
    """

    per_s: float
    failed: int
    error: str


def cycles(cycle: Callable[[], None], workers: int, seconds: float) -> Cycles:
    """How many cycles so many threads complete in a second."""
    cycle()  # connections, tables and statements are made when they are first needed
    done: list[float] = []
    errors: list[str] = []
    until = time.perf_counter() + seconds

    def work() -> None:
        while time.perf_counter() < until:
            try:
                cycle()
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
            else:
                done.append(time.perf_counter())

    threads = [threading.Thread(target=work) for _ in range(workers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - began
    return {"per_s": len(done) / elapsed, "failed": len(errors), "error": errors[0] if errors else ""}
