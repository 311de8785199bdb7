"""Whoever dies, hangs or forks: a subprocess does not outlive who keeps it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator import supervision
from tests.processes.family import (
    ADOPTS,
    LONG_S,
    PYTHON,
    TREE,
    Family,
    are_gone,
    below,
    boot_in,
    eventually,
    have_ended,
    is_gone,
    parent_of,
)
from tests.processes.support import ENVIRONMENT

pytestmark = ADOPTS

RUNNER = """
import asyncio, json, os, sys, time
from coordinator.children import Supervised
from coordinator.clock import SystemClock

async def main():
    supervised = Supervised()
    lines = asyncio.Queue()
    deadline = SystemClock().boot() + int(1_000_000 * float(sys.argv[1]))
    child = await supervised.start(sys.argv[3:], deadline=deadline, grace_s=0.2, line=lines.put_nowait)
    pids = [int(pid) for pid in (await lines.get()).split()]
    forked = 0
    if sys.argv[2] == "forks" and not (forked := os.fork()):
        time.sleep(600)
    print(json.dumps([pids, forked]), flush=True)
    print(json.dumps((await child.wait()).how), flush=True)
    await supervised.close()

asyncio.run(main())
"""


class Runner:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pids, self.forked = self.said()
        self.keeper = parent_of(self.pids[0])
        self.supervisor = parent_of(self.keeper)

    def said(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@contextmanager
def runner(folder: Path, *, within_s: float = LONG_S, forks: bool = False) -> Iterator[Runner]:
    """A program that runs a child with descendants, in a process of its own."""
    tree = [*PYTHON, TREE, "left", "stubborn group", "stubborn stays"]
    arguments = [str(within_s), "forks" if forks else "", *tree]
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER, *arguments], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as process:
        forked = 0
        try:
            running = Runner(process)
            forked = running.forked
            yield running
        finally:
            process.kill()
            if forked:
                os.kill(forked, signal.SIGKILL)


@pytest.mark.parametrize("forks", [False, True], ids=["alone", "and leaves a forked child of its own"])
async def test_when_the_program_is_killed_everything_ends(forks: bool, tmp_path: Path):
    with runner(tmp_path, forks=forks) as running:
        running.process.kill()

        await eventually(lambda: have_ended(*running.pids, running.keeper, running.supervisor))
        assert not forks or not is_gone(running.forked)


async def test_when_the_program_hangs_its_child_is_stopped_at_the_deadline(tmp_path: Path):
    with runner(tmp_path, within_s=1) as running:
        os.kill(running.process.pid, signal.SIGSTOP)

        await eventually(lambda: are_gone(*running.pids))
        os.kill(running.process.pid, signal.SIGCONT)

        assert running.said() == "deadline"
        assert running.process.wait() == 0


async def test_when_the_supervisor_is_killed_its_children_run_on_and_the_next_gets_another(family: Family):
    child, pids = await family.tree("left", "stays")
    supervisor = parent_of(parent_of(child.pid))

    os.kill(supervisor, signal.SIGKILL)
    await eventually(lambda: is_gone(supervisor))  # it is reaped, too
    other, _ = await family.tree("stays")
    running = [pid for pid in pids if not is_gone(pid)]
    child.stop()
    end = await child.wait()

    assert running == pids
    assert parent_of(parent_of(other.pid)) != supervisor
    assert end.how == "asked"
    assert are_gone(*pids)


async def test_a_supervisor_that_was_killed_and_not_yet_missed_is_replaced(family: Family):
    child, _ = await family.tree("stays")

    os.kill(supervisor := parent_of(parent_of(child.pid)), signal.SIGKILL)
    other = await family.run("/bin/true")  # no turn of the loop since

    assert (await other.wait()).returncode == 0
    await eventually(lambda: is_gone(supervisor))


async def test_when_a_keeper_is_killed_all_it_kept_is_killed_and_reported_as_abandoned(family: Family):
    child, pids = await family.tree("stubborn left", "stubborn group", "stubborn stays")
    other, _ = await family.tree("stays")

    os.kill(parent_of(child.pid), signal.SIGKILL)
    end = await child.wait()

    assert (end.returncode, end.how, end.killed, end.left) == (None, "abandoned", True, 0)
    await eventually(lambda: are_gone(*pids))
    assert not is_gone(other.pid)


async def test_when_keeper_and_supervisor_are_killed_the_program_kills_the_group_itself(family: Family):
    child, pids = await family.tree("stubborn group", "stubborn stays")
    keeper = parent_of(child.pid)

    for pid in (parent_of(keeper), keeper):
        os.kill(pid, signal.SIGKILL)
    end = await child.wait()

    assert (end.how, end.killed, end.left) == ("abandoned", True, 0)
    assert have_ended(*pids)


async def test_signals_that_end_a_program_do_not_end_its_supervisor(family: Family):
    child, _ = await family.tree("stays")
    keeper = parent_of(child.pid)
    supervisor = parent_of(keeper)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for pid in (supervisor, keeper):
            os.kill(pid, number)
    child.stop()
    end = await child.wait()
    other = await family.run("/bin/true")
    await other.wait()

    assert end.how == "asked"
    assert not is_gone(supervisor)
    assert os.getsid(supervisor) == supervisor


async def test_supervisor_keeper_and_child_hold_nothing_of_the_program_open(family: Family):
    os.set_inheritable(inherited := os.open("/dev/zero", os.O_RDONLY), True)
    try:
        first, _ = await family.tree("stays")
        child, _ = await family.tree("stays")
    finally:
        os.close(inherited)
    keeper = parent_of(child.pid)

    def held(pid: int) -> list[str]:
        return sorted(os.readlink(f"/proc/{pid}/fd/{name}").partition(":")[0] for name in os.listdir(f"/proc/{pid}/fd"))

    own = ["/dev/null"] * 3 + ["pipe"] * 2 + ["socket"]
    await eventually(lambda: held(parent_of(keeper)) == held(keeper) == held(parent_of(first.pid)) == own)
    assert held(child.pid) == ["pipe"] * 5  # two of them are its own
    assert os.readlink(f"/proc/{keeper}/cwd") == "/"


async def test_a_keeper_that_reads_nothing_more_does_not_block_who_renews(family: Family):
    child, pids = await family.tree("stays")
    keeper = parent_of(child.pid)
    os.kill(keeper, signal.SIGSTOP)

    for _ in range(10_000):
        child.renew(boot_in(LONG_S))
    child.stop()
    os.kill(keeper, signal.SIGCONT)
    end = await child.wait()

    assert end.how == "asked"
    assert are_gone(*pids)


async def test_a_renewal_sent_in_time_counts_although_the_keeper_was_late_to_read_it(family: Family):
    child, _ = await family.tree("stays", within_s=1.5)
    deadline = boot_in(1.5)
    os.kill(keeper := parent_of(child.pid), signal.SIGSTOP)

    child.renew(boot_in(LONG_S))
    await eventually(lambda: boot_in(0) > deadline)
    os.kill(keeper, signal.SIGCONT)
    child.stop()

    assert (await child.wait()).how == "asked"


async def test_a_command_after_the_end_does_no_harm(family: Family):
    child = await family.run("/bin/true")
    await child.wait()

    child.renew(boot_in(LONG_S))
    child.stop()
    child.abandon()

    assert (await child.wait()).how == "itself"


async def test_nothing_is_left_below_a_program_that_has_closed(family: Family):
    others = below(os.getpid())  # such as the one that multiprocessing keeps
    children = await asyncio.gather(*(family.run("/bin/true") for _ in range(3)))
    await asyncio.gather(*(child.wait() for child in children))

    await family.supervised.close()

    assert below(os.getpid()) <= others


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Changes what the next supervisor runs, by some lines of Python."""

    def change(lines: str) -> None:
        before, start = supervision._PROGRAM.split("; main()")  # pyright: ignore[reportPrivateUsage]
        program = f"{before}\nfrom coordinator import keeper, supervisor\n{lines}\nmain(){start}"
        monkeypatch.setattr(supervision, "_PROGRAM", program)

    return change


@pytest.mark.parametrize("stubborn", [False, True], ids=["obedient", "stubborn"])
@pytest.mark.parametrize("how", ["itself", "asked"])
async def test_where_no_orphan_can_be_adopted_the_group_ends_all_the_same(
    how: str, stubborn: bool, family: Family, change: Callable[[str], None]
):
    change("adopt = supervisor.adopt_orphans; supervisor.adopt_orphans = lambda: adopt() and False")
    kind = "stubborn group" if stubborn else "group"
    stays = ["stays"] if how == "asked" else []
    child, pids = await family.tree(kind, kind, *stays, grace_s=0.1 if stubborn else LONG_S)

    if how == "asked":
        child.stop()
    end = await child.wait()

    assert are_gone(*pids)
    assert (end.how, end.killed, end.returncode) == (how, stubborn, 7 if how == "itself" else 0)


async def test_what_cannot_be_killed_is_reported_as_left_and_goes_when_it_can(
    family: Family, change: Callable[[str], None], tmp_path: Path
):
    change(f"""
import os
def only_then(kill):
    return lambda *who_and_what: kill(*who_and_what) if os.path.exists({str(tmp_path / "then")!r}) else None
os.kill, os.killpg = only_then(os.kill), only_then(os.killpg)
keeper._GIVE_UP_US = 50_000
""")
    child, pids = await family.tree("left", "stubborn stays", grace_s=0.01)

    child.stop()
    end = await child.wait()
    running = [pid for pid in pids if not is_gone(pid)]
    (tmp_path / "then").touch()

    assert (end.returncode, end.how, end.killed, end.left) == (None, "asked", True, 2)
    assert running == pids
    await eventually(lambda: are_gone(*pids))


async def test_a_keeper_with_a_defect_leaves_no_child(family: Family, change: Callable[[str], None]):
    change("keeper.Keeper._hear = lambda keeper: 1 / 0")
    child, pids = await family.tree("stubborn group", "stubborn stays")

    child.stop()
    end = await child.wait()

    assert (end.how, end.left) == ("abandoned", 0)
    await eventually(lambda: are_gone(*pids))
