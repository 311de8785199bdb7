"""A subprocess runs as asked, and ends with all it started: by itself, when asked to, or at its deadline."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from coordinator import Closed
from coordinator.children import Supervised
from tests.processes.family import ADOPTS, LONG_S, Family, are_gone, below, boot_in, eventually, is_gone, parent_of

WAITS = "import signal; print(flush=True); signal.pause()"


async def test_a_child_gets_its_arguments_stdin_folder_and_environment_and_a_session_of_its_own(
    family: Family, tmp_path: Path
):
    program = """
import os, sys
print(sys.argv[1:], sys.stdin.read(), os.getcwd(), os.environ["MARK"], "HOME" in os.environ, os.getsid(0) - os.getpid())
print("said aside", file=sys.stderr)
sys.exit(3)
"""

    child = await family.python(program, "ä", "\udcff", stdin=b"fed", environment={"MARK": "\udcfe"})
    end = await child.wait()

    said = f"['ä', '\\udcff'] fed {tmp_path} ".encode() + b"\xfe False 0"
    assert (end.last_line, end.stderr) == (said, b"said aside\n")
    assert (end.returncode, end.how, end.killed, end.left) == (3, "itself", False, 0)


async def test_a_child_killed_by_a_signal_is_reported_as_subprocess_does(family: Family):
    child = await family.python("import os; os.kill(os.getpid(), 9)")

    end = await child.wait()

    assert (end.returncode, end.how, end.killed) == (-9, "itself", False)


@pytest.mark.parametrize(
    ("argv", "folder", "number"),
    [
        (["./missing"], ".", errno.ENOENT),
        (["./plain"], ".", errno.EACCES),
        (["/bin/true"], "./missing", errno.ENOENT),
        (["/bin/true", "\0"], ".", errno.EINVAL),
    ],
    ids=["no such program", "not executable", "no such folder", "NUL in an argument"],
)
async def test_what_cannot_be_started_is_an_error_with_its_number_and_leaves_nothing(
    argv: list[str], folder: str, number: int, supervised: Supervised, tmp_path: Path
):
    (tmp_path / "plain").touch()
    before = os.listdir("/dev/fd")

    with pytest.raises(OSError) as error:  # noqa: PT011
        await supervised.start(argv, folder=tmp_path / folder, deadline=boot_in(60), grace_s=1, line=print)

    assert error.value.errno == number
    await supervised.close()
    assert os.listdir("/dev/fd") == before


@pytest.mark.parametrize(
    ("argv", "environment", "error"),
    [
        pytest.param([], {}, ValueError, id="no program"),
        pytest.param(["/bin/true", 5], {}, TypeError, id="a number for an argument"),
        pytest.param(["/bin/true"], {"WEEKS": 5}, TypeError, id="a number in the environment"),
    ],
)
async def test_what_no_program_can_be_given_is_an_error_and_leaves_nothing(
    argv: Any, environment: Any, error: type[Exception], supervised: Supervised
):
    before = os.listdir("/dev/fd")

    with pytest.raises(error):
        await supervised.start(argv, environment=environment, deadline=boot_in(60), grace_s=1, line=print)

    assert os.listdir("/dev/fd") == before


async def test_what_comes_too_late_is_not_started(family: Family, tmp_path: Path):
    with pytest.raises(TimeoutError):
        await family.python("open('started', 'w')", within_s=-0.001)

    await family.supervised.close()
    assert not (tmp_path / "started").exists()


async def test_a_child_is_stopped_when_its_deadline_passes(family: Family):
    child = await family.python(WAITS, within_s=0.2)

    end = await child.wait()

    assert (end.returncode, end.how, end.killed) == (-signal.SIGTERM, "deadline", False)
    assert is_gone(child.pid)


async def test_a_renewed_child_lives_on_also_while_the_loop_is_blocked(family: Family):
    child = await family.python("import time; time.sleep(1.3); print('done')", within_s=1)

    renewing = threading.Thread(target=child.renew, args=[boot_in(LONG_S)])
    renewing.start()
    renewing.join()
    end = await child.wait()

    assert (end.returncode, end.how, end.last_line) == (0, "itself", b"done")


async def test_a_renewal_may_also_bring_the_deadline_nearer(family: Family):
    child = await family.python(WAITS)

    child.renew(boot_in(0))

    assert (await child.wait()).how == "deadline"


async def test_a_child_may_be_stopped_from_any_thread(family: Family):
    child, _ = await family.tree("stays")

    stopping = threading.Thread(target=child.stop)
    stopping.start()
    stopping.join()
    end = await child.wait()

    assert (end.returncode, end.how, end.killed) == (0, "asked", False)
    assert family.heard() == {child.pid}


async def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(family: Family):
    child, pids = await family.tree("stubborn stays", grace_s=0.1)

    child.stop()
    end = await child.wait()

    assert (end.returncode, end.how, end.killed) == (-signal.SIGKILL, "asked", True)
    assert are_gone(*pids)


async def test_a_child_that_was_frozen_hears_sigterm_too(family: Family):
    child, _ = await family.tree("stays")
    os.kill(child.pid, signal.SIGSTOP)

    child.stop()
    end = await child.wait()

    assert (end.returncode, end.killed) == (0, False)
    assert family.heard() == {child.pid}


LEFT = pytest.param("left", marks=ADOPTS)


@pytest.mark.parametrize("where", ["group", LEFT])
@pytest.mark.parametrize("how", ["itself", "asked", "deadline"])
async def test_descendants_end_with_their_child_and_may_end_cleanly(how: str, where: str, family: Family):
    child, pids = await family.tree(where, where, *(["stays"] if how != "itself" else []))

    if how == "asked":
        child.stop()
    elif how == "deadline":
        child.renew(boot_in(0))
    end = await child.wait()

    assert are_gone(*pids)
    assert (end.how, end.killed, end.returncode) == (how, False, 7 if how == "itself" else 0)
    assert family.heard() == set(pids[how == "itself" :])


@pytest.mark.parametrize("where", ["group", LEFT])
@pytest.mark.parametrize("how", ["itself", "asked"])
async def test_descendants_that_ignore_sigterm_are_killed_after_the_grace(how: str, where: str, family: Family):
    child, pids = await family.tree(f"stubborn {where}", *(["stays"] if how == "asked" else []), grace_s=0.1)

    if how == "asked":
        child.stop()
    end = await child.wait()

    assert are_gone(*pids)
    assert (end.killed, end.returncode) == (True, 7 if how == "itself" else 0)


@ADOPTS
async def test_the_end_of_one_child_leaves_the_descendants_of_another_alone(family: Family):
    staying, pids = await family.tree("left", "group", "stays")
    going, gone = await family.tree("left", "group")

    await going.wait()
    remaining = [pid for pid in pids if not is_gone(pid)]
    staying.stop()
    await staying.wait()

    assert remaining == pids
    assert family.heard() == {*pids, *gone[1:]}


async def test_a_cancelled_wait_does_not_stop_the_child(family: Family):
    child = await family.python(WAITS)
    waiting = asyncio.create_task(child.wait())
    await family.lines.get()

    waiting.cancel()
    await asyncio.wait([waiting])
    child.renew(boot_in(0))

    assert waiting.cancelled()
    assert (await child.wait()).how == "deadline"  # and so it was not stopped before


@ADOPTS
@pytest.mark.parametrize("turns", range(5))
async def test_a_start_that_is_cancelled_at_any_moment_leaves_no_child(turns: int, family: Family):
    other = await family.python(WAITS)
    supervisor = parent_of(parent_of(other.pid))
    starting = asyncio.create_task(family.python(WAITS))
    for _ in range(turns):
        await asyncio.sleep(0.001)  # any moment will do

    starting.cancel()
    await asyncio.wait([starting])

    if not starting.cancelled():  # it was too late to cancel it
        starting.result().stop()
    await eventually(lambda: below(supervisor) == {parent_of(other.pid), other.pid})


async def test_a_start_that_is_cancelled_as_it_succeeds_leaves_no_child(family: Family):
    starting = asyncio.create_task(family.python(WAITS))
    await asyncio.sleep(0)
    [started] = family.supervised._starting  # pyright: ignore[reportPrivateUsage]
    started.add_done_callback(lambda _: starting.cancel())  # before who asked gets the answer

    await asyncio.wait([starting])

    assert starting.cancelled()
    await eventually(lambda: are_gone(started.result().pid))


@ADOPTS
async def test_closing_stops_all_children_and_the_supervisor(family: Family):
    child, pids = await family.tree("left", "group", "stays")
    keeper = parent_of(child.pid)
    supervisor = parent_of(keeper)

    await family.supervised.close()

    assert are_gone(*pids, keeper, supervisor)
    assert (await child.wait()).how == "asked"
    with pytest.raises(Closed):
        await family.python(WAITS)


async def test_closing_also_ends_what_is_just_being_started(family: Family):
    starting = [asyncio.create_task(family.python(WAITS)) for _ in range(3)]
    await asyncio.sleep(0)

    await family.supervised.close()
    ended = await asyncio.gather(*starting, return_exceptions=True)

    assert all(isinstance(end, Closed) for end in ended), ended


@ADOPTS
async def test_fifty_children_leave_no_descriptor_and_no_zombie(family: Family):
    warm = await family.run("/bin/true")
    await warm.wait()
    before = sorted(os.listdir("/dev/fd"))

    for _ in range(10):
        children = await asyncio.gather(*(family.run("/bin/true") for _ in range(5)))
        ends = await asyncio.gather(*(child.wait() for child in children))
        assert {end.returncode for end in ends} == {0}

    assert sorted(os.listdir("/dev/fd")) == before
    await eventually(lambda: len(below(os.getpid())) == 1)  # the supervisor


async def test_children_of_a_program_that_blocks_or_ignores_signals_do_not(family: Family):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        child = await family.python(
            "import signal; print(signal.pthread_sigmask(0, []), signal.getsignal(signal.SIGHUP).name)"
        )
        end = await child.wait()
    finally:
        signal.signal(signal.SIGHUP, ignored)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    assert end.last_line == b"set() SIG_DFL"


async def test_a_program_without_a_python_of_its_own_hears_that_there_is_no_supervisor(
    family: Family, monkeypatch: pytest.MonkeyPatch
):
    from coordinator import Unavailable

    monkeypatch.setattr(sys, "executable", "")

    with pytest.raises(Unavailable, match="no Python"):
        await family.run("/bin/true")
