"""An ordering system under test, and its workers as the processes that they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from examples.reorder import orders
from examples.reorder.check import Finding, check
from examples.reorder.orders import Order
from examples.reorder.plan import Arguments, preview
from examples.reorder.rehearsal import Point, rehearse
from examples.reorder.warehouse import opened

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60
OPERATION = "reorder-1"


@dataclass(frozen=True)
class Ended:
    """How a worker ended, and all that it said."""

    status: int
    said: list[dict[str, Any]]
    complaint: str


@dataclass
class Worker:
    """A process that has its assignment."""

    process: subprocess.Popen[bytes]
    said: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def next_message(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.said.append(json.loads(self.process.stdout.readline()))
        return self.said[-1]

    def stall(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()

    def ended(self) -> Ended:
        out, complaint = self.process.communicate(timeout=TIMEOUT_S)
        said = [*self.said, *map(json.loads, out.splitlines())]
        return Ended(self.process.returncode, said, complaint.decode())


@dataclass
class Shop:
    database: Path
    artifacts: Path
    _workers: list[Worker] = field(default_factory=list[Worker])

    @property
    def file(self) -> Path:
        return self.artifacts / "order.json"

    def start(self, *, attempt: int = 1, fence: int | None = None, **otherwise: Any) -> Worker:
        """A worker of this attempt. Later attempts have higher fences, unless a test says otherwise."""
        assignment = {
            "operation_id": OPERATION,
            "attempt": attempt,
            "fence": 10 * attempt if fence is None else fence,
            "artifacts": str(self.artifacts),
            "arguments": {"supplier": "north", "weeks": 4},
            "plan": msgspec.to_builtins(preview(self.database, Arguments(supplier="north", weeks=4))),
        }
        return self.start_with(json.dumps(assignment | otherwise).encode())

    def start_with(self, given: bytes) -> Worker:
        process = subprocess.Popen(
            [sys.executable, "-m", "examples.reorder.work", str(self.database)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
        process.stdin = None  # communicate() would flush it
        worker = Worker(process)
        self._workers.append(worker)
        return worker

    def run(self, **how: Any) -> Ended:
        return self.start(**how).ended()

    def rehearse(self, *, pause_s: float | None = None, dies: Point | None = None) -> None:
        with opened(self.database) as connection:
            rehearse(connection, pause_s=pause_s, dies=dies)

    def do(self, statement: str) -> None:
        with opened(self.database) as connection:
            connection.execute(statement)

    def order(self) -> Order | None:
        with opened(self.database) as connection:
            return orders.find(connection, OPERATION)

    def count(self) -> int:
        """How many orders there are."""
        with opened(self.database) as connection:
            return orders.count_orders(connection)

    def check(self) -> Finding:
        return check(self.database, OPERATION, self.artifacts)

    def close(self) -> None:
        for worker in self._workers:
            if worker.process.returncode is None:
                worker.process.kill()
                worker.process.wait()
            for pipe in (worker.process.stdout, worker.process.stderr):
                if pipe is not None:
                    pipe.close()
