"""The test's side of `member.py`: worker processes that do as they are told."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator.stores.interface import LogRow
from coordinator.stores.sqlite import SqliteStore
from coordinator.stores.turn import Turn
from tests.processes.diary import Entries, read
from tests.support import Workspace

LONGER = int(os.environ.get("LONGER", "1"))
"""How many times longer than usual the tests go on that leave something to chance."""

NAMES_HOLDERS = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@dataclass
class Answer:
    """Either a value or an error."""

    value: Any = None
    error: str | None = None
    said: str = ""


class Member:
    """One process. What it is asked runs side by side."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.member"],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._asked = 0
        self._begun: set[int] = set()
        self._answers: dict[int, Answer] = {}

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, do: str, **how: Any) -> Any:
        """The value; an error is a failure of the test."""
        answer = self.attempt(do, **how)
        assert answer.error is None, f"{do}: {answer.error}: {answer.said}"
        return answer.value

    def attempt(self, do: str, **how: Any) -> Answer:
        return self.answer(self.send(do, **how))

    def send(self, do: str, **how: Any) -> int:
        """Ask, and go on when the process is at it."""
        number = self.send_without_waiting(do, **how)
        while number not in self._begun:
            self._read()
        return number

    def send_without_waiting(self, do: str, **how: Any) -> int:
        self._asked += 1
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": self._asked, "do": do, "with": how}) + "\n")
        self.process.stdin.flush()
        return self._asked

    def answer(self, number: int) -> Answer:
        while number not in self._answers:
            self._read()
        return self._answers.pop(number)

    def stall(self) -> None:
        """As if the machine had no time for it any more; returns when it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def stall_with_turn(self, turn: Turn) -> None:
        """Stall it, while it works, in a moment in which it holds the turn."""
        while True:
            time.sleep(random.uniform(0, 0.01))  # any moment will do
            self.stall()
            if turn.holder() == self.pid:
                return
            self.go_on()

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def reset(self) -> bool:
        """Make it as good as new; False if it is not there any more."""
        if self.process.poll() is not None:
            return False
        self.ask("close")
        return True

    def end(self) -> None:
        if self.process.poll() is None:
            self.go_on()  # in case it was stalled
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process has ended"
        said = cast("dict[str, Any]", json.loads(line))
        number = said.pop("id")
        if said.pop("begun", False):
            self._begun.add(number)
        else:
            self._answers[number] = Answer(**said)


class Pool:
    """Processes that are used by one test after the other, because starting one takes a while."""

    def __init__(self) -> None:
        self._idle: list[Member] = []
        self._used: list[Member] = []

    def take(self, number: int) -> list[Member]:
        missing = number - len(self._idle)
        self._idle += [Member() for _ in range(missing)]
        taken, self._idle = self._idle[:number], self._idle[number:]
        self._used += taken
        return taken

    def take_back(self, *, healthy: bool) -> None:
        for member in self._used:
            if healthy and member.reset():
                self._idle.append(member)
            else:
                member.end()
        self._used = []

    def end(self) -> None:
        self.take_back(healthy=False)
        for member in self._idle:
            member.end()


class Team:
    """The processes of one test, which work on one file."""

    def __init__(self, pool: Pool, database: Path) -> None:
        self._pool = pool
        self.database = database

    def open(self, *actors: str, **how: Any) -> list[Member]:
        """One process for each name, with the workspace open."""
        members = self._pool.take(len(actors))
        for asked in [
            (member, member.send_without_waiting("open", path=str(self.database), actor=actor, **how))
            for member, actor in zip(members, actors, strict=True)
        ]:
            answer = asked[0].answer(asked[1])
            assert answer.error is None, f"open: {answer.error}: {answer.said}"
        return members

    def diary(self, actor: str) -> str:
        return str(self.database.with_name(f"{actor}.diary"))

    def diaries(self) -> dict[str, Entries]:
        return {path.stem: read(path) for path in self.database.parent.glob("*.diary")}

    def reckon(self) -> list[LogRow]:
        """The log, after everybody has closed: whole, and with everything that anybody was told, once."""
        with closing(SqliteStore.open(self.database)) as store:
            workspace = Workspace(store)
            workspace.check()
            log = workspace.log()
        with closing(sqlite3.connect(self.database)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = Counter((row.actor, row.receipt) for row in log if row.receipt is not None)
        for actor, diary in self.diaries().items():
            assert [receipt for receipt in diary.told if found[actor, receipt] != 1] == []
        events = Counter((row.stream, row.type) for row in log)
        assert [event for event, times in events.items() if times != 1] == []
        return log

    def bystander(self) -> Member:
        """A process that has nothing open."""
        return self._pool.take(1)[0]


def ask_all(members: Sequence[Member], do: str, **how: Any) -> list[int]:
    """Ask all of them the same; returns when all are at it."""
    asked = [member.send_without_waiting(do, **how) for member in members]
    for member, number in zip(members, asked, strict=True):
        while number not in member._begun:  # pyright: ignore[reportPrivateUsage]
            member._read()  # pyright: ignore[reportPrivateUsage]
    return asked


def answers(members: Sequence[Member], asked: Sequence[int]) -> list[Answer]:
    return [member.answer(number) for member, number in zip(members, asked, strict=True)]


def run_program(text: str, *arguments: object, cwd: Path, timeout_s: float = 30) -> subprocess.CompletedProcess[str]:
    """Run a whole program; one that does not end in time fails the test."""
    program = cwd / "program.py"
    program.write_text(text)
    return subprocess.run(
        [sys.executable, "-W", "error", str(program), *map(str, arguments)],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
