"""Operations whose work is a program: what it says, how it ends, and that it never outlives its authority."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from coordinator import Agent, Coordinator, Operation, OperationStatus
from tests.processes.operating import Runs
from tests.processes.support import Team, answers
from tests.public.support import PATIENCE_S, entries


@pytest.fixture
def kind() -> Runs:
    return Runs()


@pytest.fixture
async def coordinator(database: Path, kind: Runs) -> AsyncIterator[Coordinator]:
    async with Coordinator.open(database) as opened:
        opened.register(kind)
        yield opened


async def applied(agent: Agent, script: str, id: str | None = None) -> Operation:
    return await agent.apply(await agent.preview("runs", {"script": script}, operation_id=id))


async def ended(operation: Operation) -> OperationStatus:
    async with asyncio.timeout(PATIENCE_S):
        return await operation.wait()


async def said(path: Path) -> str:
    """What a program wrote there, once it has."""
    async with asyncio.timeout(PATIENCE_S):
        while not path.exists() or not path.read_text().endswith("\n"):
            await asyncio.sleep(0.01)
    return path.read_text()


def is_gone(pid: int) -> bool:
    """Within reason: a process that was killed is reaped by whoever is its parent then."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            if not Path("/proc/self/stat").exists():
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    return True
            else:
                return True
        time.sleep(0.01)
    return False


# What it says

RESULT = """print('{"result": {"ordered": 40}}')"""
FILE = """
import json, sys, os
open(os.path.join(json.load(sys.stdin)["artifacts"], "result.json"), "w").write(%s)
"""
DONE = {"ordered": 40}


@pytest.mark.parametrize(
    ("script", "state", "told"),
    [
        pytest.param(RESULT, "succeeded", DONE, id="a line"),
        pytest.param("print('starting', 5, '{', '\\n' * 3)\n" + RESULT, "succeeded", DONE, id="a line after others"),
        pytest.param("print('x' * 2_000_000)\n" + RESULT, "succeeded", DONE, id="a line after one too long to keep"),
        pytest.param("print('y\\n' * 100_000)\n" + RESULT, "succeeded", DONE, id="a line after a flood"),
        pytest.param(FILE % "'{\"ordered\": 40}'", "succeeded", DONE, id="a file"),
        pytest.param(
            FILE % "'{\"ordered\": 4'" + "\nprint('bye')", "failed", "result.json is no JSON", id="a broken file"
        ),
        pytest.param(FILE % "'[' * 100_000", "failed", "result.json is no JSON", id="a bottomless file"),
        pytest.param(FILE % "'x' * 300_000", "failed", "result.json is larger than", id="a file too large"),
        pytest.param(
            "import json, sys, os\nos.mkfifo(os.path.join(json.load(sys.stdin)['artifacts'], 'result.json'))",
            "failed",
            "not an ordinary file",
            id="a pipe in place of the file",
        ),
        pytest.param("", "failed", "without a result", id="nothing"),
        pytest.param("print('{\"result\": {')", "failed", "without a result", id="a line that is no JSON"),
        pytest.param("print('{\"result\": 5}')", "failed", "without a result", id="a line without an object"),
        pytest.param(
            "print('{\"result\": {\"rows\": \"' + 'x' * 300_000 + '\"}}')",
            "failed",
            "result: is 300,011 bytes",
            id="too much",
        ),
        pytest.param(
            "print('{\"result\": {\"rows\": \"' + 'x' * 2_000_000 + '\"}}')",
            "failed",
            "holds none (a line was too long, and lost its end)",
            id="far too much",
        ),
        pytest.param(RESULT + "\nraise SystemExit(3)", "failed", "exit status 3", id="a status"),
        pytest.param(
            RESULT + "\nimport os; os.kill(os.getpid(), 9)", "failed", "exit status -9", id="an end by a signal"
        ),
        pytest.param(
            "import os, time\nos.close(1)\ntime.sleep(0.05)", "failed", "without a result", id="nothing, stdout closed"
        ),
    ],
)
async def test_what_a_program_says_decides_what_is_recorded(
    script: str, state: str, told: object, coordinator: Coordinator
):
    status = await ended(await applied(coordinator.agent("ada"), script))

    assert status.state == state, status.reason
    if state == "succeeded":
        assert status.result == told
    else:
        assert str(told) in (status.reason or "")


async def test_the_end_of_what_a_failed_program_said_on_stderr_is_kept(coordinator: Coordinator):
    script = "import sys\nprint('x' * 200_000, 'no such supplier', file=sys.stderr)\nsys.exit(1)"

    status = await ended(await applied(coordinator.agent("ada"), script))

    assert status.stderr is not None
    assert status.stderr.endswith("no such supplier\n")
    assert len(status.stderr) == 8_192


async def test_a_program_that_cannot_be_started_is_a_failure(coordinator: Coordinator, kind: Runs):
    kind.command = lambda arguments, work: ["/nowhere/program"]

    status = await ended(await applied(coordinator.agent("ada"), ""))

    assert (status.state, "/nowhere/program" in (status.reason or "")) == ("failed", True)


@pytest.mark.parametrize("command", ["python", [], ["python", 5], None], ids=repr)
async def test_a_command_that_is_no_list_of_texts_is_a_failure_that_says_so(
    command: Any, coordinator: Coordinator, kind: Runs
):
    kind.command = lambda arguments, work: command

    status = await ended(await applied(coordinator.agent("ada"), ""))

    assert status.state == "failed"
    assert re.search("command|no program|not int", status.reason or "")


async def test_progress_of_a_program_is_recorded(coordinator: Coordinator):
    script = """print('{"progress": {"rows": 1}}\\n{"progress": 5}')\n""" + RESULT

    status = await ended(await applied(coordinator.agent("ada"), script))

    assert (status.state, status.progress) == ("succeeded", {"rows": 1})


async def test_the_token_is_nowhere_where_a_program_or_others_can_read_it(coordinator: Coordinator, database: Path):
    script = """
import json, os, sys
seen = {"argv": sys.orig_argv, "environment": dict(os.environ), "stdin": json.load(sys.stdin)}
print(json.dumps({"result": {"seen": seen}}))
"""
    ada = coordinator.agent("ada")
    tokens: list[str] = []
    runner = coordinator._open().operating.runner
    take = runner.take

    def note_token(request: object, sent_at: int, outcome: object) -> None:
        tokens.append(outcome.answer.token.reveal())  # type: ignore[attr-defined]
        take(request, sent_at, outcome)  # type: ignore[arg-type]

    runner.take = note_token  # type: ignore[method-assign]
    operation = await applied(ada, script)

    status = await ended(operation)

    assert status.result is not None, status.reason
    seen = json.dumps(status.result)
    log = json.dumps([str(dict(entry.body)) for entry in await entries(coordinator)])
    _, _, secret = tokens[0].partition("-")
    assert len(secret) == 64
    assert secret not in seen
    assert secret not in log
    stdin = status.result["seen"]["stdin"]  # type: ignore[index, call-overload]
    assert sorted(stdin) == ["arguments", "artifacts", "attempt", "fence", "operation_id", "plan"]  # type: ignore[arg-type]


# What ends it

STUBBORN = """
import json, os, signal, sys, time
folder = json.load(sys.stdin)["artifacts"]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if not child:
    time.sleep(600)
with open(os.path.join(folder, "pids"), "w") as file:
    print(os.getpid(), child, file=file)
time.sleep(600)
"""


async def begun(coordinator: Coordinator, id: str, attempt: int = 1) -> list[int]:
    """The processes of a stubborn program."""
    folder = coordinator._open().operating.artifacts.folder(id, attempt)
    return [int(pid) for pid in (await said(folder / "pids")).split()]


@pytest.mark.parametrize("how", ["cancel", "limit", "close", "another process"])
async def test_a_program_that_ignores_its_end_is_gone_with_its_children_before_the_end_is_recorded(
    how: str, coordinator: Coordinator, kind: Runs, database: Path
):
    kind.time_limit_s = 0.5 if how == "limit" else 60
    operation = await applied(coordinator.agent("ada"), STUBBORN, "order-7")
    pids = await begun(coordinator, "order-7")

    if how == "cancel":
        await operation.cancel()
    elif how == "close":
        await coordinator.close()
    elif how == "another process":
        async with Coordinator.open(database) as other:
            await other.agent("ada").operation("order-7").cancel()
    async with Coordinator.open(database) as after:
        status = await ended(after.agent("ada").operation("order-7"))

    reason = {"limit": "its time limit passed", "close": "the coordinator was closed"}.get(how, "cancelled")
    assert (status.state, status.reason) == ("stopped", reason)
    assert all(map(is_gone, pids))


OBEDIENT = """
import json, os, signal, sys, time
folder = json.load(sys.stdin)["artifacts"]
def end(number, frame):
    %s
signal.signal(signal.SIGTERM, end)
with open(os.path.join(folder, "pids"), "w") as file:
    print(os.getpid(), file=file)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("end", "state"),
    [
        pytest.param(RESULT + "; sys.exit(0)", "succeeded", id="a result"),
        pytest.param(RESULT + "; sys.exit(3)", "stopped", id="a result and a status"),
        pytest.param("sys.exit(0)", "stopped", id="nothing"),
    ],
)
async def test_a_program_that_comes_to_its_end_although_it_was_cancelled_has_succeeded(
    end: str, state: str, coordinator: Coordinator
):
    operation = await applied(coordinator.agent("ada"), OBEDIENT % end, "order-7")
    await begun(coordinator, "order-7")

    await operation.cancel()

    status = await ended(operation)
    assert (status.state, status.result) == (state, DONE if state == "succeeded" else None)


async def test_what_a_program_leaves_behind_is_gone_when_its_result_is_recorded(coordinator: Coordinator):
    script = (
        "import os, sys, time\nchild = os.fork()\nif not child:\n    time.sleep(600)\n"
        'print(\'{"result": {"child": %d}}\' % child)'
    )

    status = await ended(await applied(coordinator.agent("ada"), script))

    assert status.result is not None, status.reason
    assert is_gone(int(str(status.result["child"])))


# Several processes


async def test_when_the_process_that_runs_it_is_killed_the_program_goes_too_and_a_new_approval_starts_attempt_2(
    team: Team, database: Path
):
    (runner,) = team.open("ada")
    runner.ask("register", lease_s=1, grace_s=0.1)
    runner.ask("approve", script=STUBBORN, id="order-7")
    async with Coordinator.open(database) as coordinator:
        coordinator.register(Runs())
        pids = await begun(coordinator, "order-7")

        runner.kill()

        operation = coordinator.agent("ada").operation("order-7")
        assert (await ended(operation)).state == "interrupted"
        assert all(map(is_gone, pids))
        again = await applied(coordinator.agent("ada"), STUBBORN, "order-7")
        assert again.attempt == 2


async def test_of_two_processes_that_apply_one_operation_at_once_one_starts_it(team: Team, database: Path):
    members = team.open("ada", "ada")
    for member in members:
        member.ask("register")
        member.ask("plan", script=RESULT, id="order-7")

    asked = [member.send("apply_planned") for member in members]
    found = answers(members, asked)

    started = [answer.value for answer in found if answer.error is None]
    assert sum(started) == 1
    assert [answer.error for answer in found if answer.error] in ([], ["ApprovalMismatch"])
    async with Coordinator.open(database) as coordinator:
        assert (await ended(coordinator.agent("ada").operation("order-7"))).state == "succeeded"
        assert len(await entries(coordinator, None, "operation.queued")) == 1
