"""Other processes, which talk with a test by lines: what a line says has happened, and nobody needs to sleep."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

ROOT = Path(__file__).parents[2]

_BEGINNING = """
import os, sqlite3, sys
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from coordinator.stores.interface import CommitUnknown, TurnTaken
from coordinator.errors import Closed, Unavailable
from tests.stores.rows import *

path = sys.argv[1]

def say(*words):
    line = " ".join(map(str, words)) + "\\n"
    os.write(1, line.encode())  # at once, because forked processes share the pipe

def hear():
    return sys.stdin.readline().strip()
"""


class Child:
    """A Python process that runs `script`, in which `say`, `hear`, `path` and the store's names are known."""

    def __init__(self, script: str, *arguments: object, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BEGINNING + script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self) -> str:
        """The next line; an empty one if the process has ended."""
        return self._pipe(self._process.stdout).readline().strip()

    def say(self, line: str = "") -> None:
        pipe = self._pipe(self._process.stdin)
        pipe.write(line + "\n")
        pipe.flush()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def ended(self) -> int:
        """Wait until it has ended by itself; its exit code."""
        return self._process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        self._pipe(self._process.stdin).close()
        self._pipe(self._process.stdout).close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def preloaded(source: str, folder: Path) -> dict[str, str]:
    """The environment of a process whose system calls go through a library of ours, which is built in `folder`."""
    library = folder / "preloaded.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, Path(__file__).parent / source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}
