"""Measurements in processes of their own: for several at once, for what one takes of memory, under a preload.

A measurement is a function of this package whose arguments and answer are JSON. Those that are to begin together call
`wait_for_start()` when they are ready.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TextIO

_ROOT = Path(__file__).parents[1]
_LIMIT_S = 600.0
_SERVE = "from benchmarks.apart import serve; serve()"
_READY = "ready"

_answers: TextIO = sys.stdout


class Apart(NamedTuple):
    """A measurement that is to be made in a process of its own."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    environment: Mapping[str, str] = {}


class _Process:
    def __init__(self, what: Apart) -> None:
        self._name = f"{what.function.__module__}:{what.function.__name__}"
        self._running = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            cwd=_ROOT,
            env={**os.environ, **what.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps([self._name, what.arguments]))
        self._limit = threading.Timer(_LIMIT_S, self._running.kill)
        self._limit.daemon = True
        self._limit.start()

    def __enter__(self) -> _Process:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._limit.cancel()
        self._running.kill()
        with self._running:
            pass

    def wait_until_ready(self) -> None:
        if (said := self._next_line()) != _READY:
            raise RuntimeError(f"{self._name} said {said!r} instead of being ready")

    def start(self) -> None:
        self._say("go")

    def answer(self) -> Any:
        return json.loads(self._next_line())

    def _say(self, line: str) -> None:
        assert self._running.stdin is not None
        self._running.stdin.write(line + "\n")
        self._running.stdin.flush()

    def _next_line(self) -> str:
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with status {self._running.wait()} and no answer")
        return line.rstrip("\n")


def call_apart(function: Callable[..., Any], *, environment: Mapping[str, str] | None = None, **arguments: Any) -> Any:
    """The answer of one function, from a process of its own."""
    with _Process(Apart(function, arguments, environment or {})) as process:
        return process.answer()


def together(measurements: Sequence[Apart]) -> list[Any]:
    """The answers of several that begin at the same time."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_Process(measurement)) for measurement in measurements]
        for process in processes:
            process.wait_until_ready()
        for process in processes:
            process.start()
        return [process.answer() for process in processes]


def wait_for_start() -> None:
    """In the process: say that all is ready, and wait for the others."""
    print(_READY, file=_answers, flush=True)
    sys.stdin.readline()


def serve() -> None:
    """The process: run what is named on standard input, and answer on what was standard output."""
    global _answers
    _answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    name, arguments = json.loads(sys.stdin.readline())
    module, _, function = name.partition(":")
    answer = getattr(import_module(module), function)(**arguments)
    print(json.dumps(answer), file=_answers, flush=True)


def memory_mb() -> float:
    """The most memory that this process had at once.

    `getrusage` would count what the parent had when it started this process, so on Linux the system is asked.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used / 1e6 if sys.platform == "darwin" else used * 1024 / 1e6
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024 / 1e6
