"""Programs that end in every way there is: in time, and with the exit code that is theirs."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.processes.support import run_program

OPEN = """
import asyncio, os, sys
import anyio
from coordinator import Coordinator

async def opened():
    coordinator = await Coordinator.open(sys.argv[1]).__aenter__()
    await coordinator.agent("ada").add_job("parser")
    return coordinator
"""

PROGRAMS: dict[str, tuple[str, int]] = {
    "falls off the end": (
        """
        async def main():
            coordinator = await opened()
            print("done")
        asyncio.run(main())
        """,
        0,
    ),
    "falls off the end with the coordinator in a global": (
        """
        async def main():
            global coordinator
            coordinator = await opened()
            print("done")
        asyncio.run(main())
        """,
        0,
    ),
    "falls off the end under anyio": (
        """
        async def main():
            coordinator = await opened()
            print("done")
        anyio.run(main)
        """,
        0,
    ),
    "leaves by sys.exit a loop that nobody runs again": (
        """
        async def main():
            async with Coordinator.open(sys.argv[1]) as coordinator:
                print("done")
                sys.exit(3)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        """,
        3,
    ),
    "falls off the end of a loop that nobody closes": (
        """
        async def main():
            global coordinator
            coordinator = await opened()
            print("done")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        """,
        0,
    ),
    "falls off the end of a loop that is closed": (
        """
        async def main():
            global coordinator
            coordinator = await opened()
            print("done")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()
        """,
        0,
    ),
    "leaves waiters and a block behind": (
        """
        async def main():
            coordinator = await opened()
            ada = coordinator.agent("ada")
            claim = await ada.claim("parser", version=1)
            waiting = [asyncio.ensure_future(coordinator.wait_for_job("parser")),
                       asyncio.ensure_future(anext(ada.claims()))]
            await claim.working().__aenter__()
            for number in range(5):
                await claim.note({"number": number})  # those who wait have looked meanwhile, and found nothing
            print("done")
        asyncio.run(main())
        """,
        0,
    ),
    "leaves a command behind": (
        """
        async def main():
            coordinator = await opened()
            adding = asyncio.ensure_future(coordinator.agent("ada").add_job("lexer"))
            await asyncio.sleep(0)
            print("done")
        asyncio.run(main())
        """,
        0,
    ),
    "exits in the middle": (
        """
        async def main():
            async with Coordinator.open(sys.argv[1]) as coordinator:
                await coordinator.agent("ada").add_job("parser")
                print("done")
                sys.exit(7)
        asyncio.run(main())
        """,
        7,
    ),
    "exits without closing": (
        """
        async def main():
            coordinator = await opened()
            print("done")
            sys.exit(7)
        asyncio.run(main())
        """,
        7,
    ),
    "fails in the middle of a block": (
        """
        async def main():
            async with Coordinator.open(sys.argv[1]) as coordinator:
                ada = coordinator.agent("ada")
                async with (await ada.claim(await ada.add_job("parser"))).working():
                    print("done")
                    raise ValueError("boom")
        asyncio.run(main())
        """,
        1,
    ),
    "is interrupted in a block": (
        """
        import signal
        async def main():
            async with Coordinator.open(sys.argv[1]) as coordinator:
                ada = coordinator.agent("ada")
                async with (await ada.claim(await ada.add_job("parser"))).working():
                    print("done", flush=True)
                    os.kill(os.getpid(), signal.SIGINT)
                    await asyncio.Event().wait()
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            sys.exit(9)
        """,
        9,
    ),
    "closes well": (
        """
        async def main():
            async with Coordinator.open(sys.argv[1]) as coordinator:
                await coordinator.agent("ada").add_job("parser")
            print("done")
        asyncio.run(main())
        """,
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", ["memory:", "work.db"])
@pytest.mark.parametrize(("text", "status"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_ends_in_time_however_it_leaves(text: str, status: int, place: str, tmp_path: Path):
    ended = run_program(OPEN + textwrap.dedent(text), place, cwd=tmp_path)

    assert ended.stdout == "done\n"
    assert ended.returncode == status, ended.stderr


@pytest.mark.parametrize("name", ["closes well", "exits in the middle", "falls off the end"])
def test_a_program_that_ends_says_nothing_that_it_was_not_told_to(name: str, tmp_path: Path):
    ended = run_program(OPEN + textwrap.dedent(PROGRAMS[name][0]), "work.db", cwd=tmp_path)

    assert ended.stderr == ""


TURN_TAKEN = """
from coordinator.stores.turn import Turn

turn = Turn(sys.argv[1] + ".turn")  # as another process would
turn.take(lambda: True)

async def main():
    coordinator = Coordinator.open(sys.argv[1], busy_timeout_s=3600)
    {what}
    print("done")

asyncio.run(main())
"""

LEFT_WITHOUT_THE_TURN = {
    "opening": """
    opening = asyncio.ensure_future(coordinator.__aenter__())
    for _ in range(20):
        await asyncio.sleep(0)  # a thread waits for the turn
    """,
    "asking": """
    turn.give_back()
    await coordinator.__aenter__()
    turn.take(lambda: True)
    ada = coordinator.agent("ada")
    asked = [asyncio.ensure_future(ask) for ask in (ada.add_job("lexer"), ada.claim_next(), anext(ada.claims()))]
    await asyncio.sleep(0)
    """,
}


@pytest.mark.parametrize("what", LEFT_WITHOUT_THE_TURN.values(), ids=LEFT_WITHOUT_THE_TURN)
def test_a_program_that_waits_for_the_turn_ends_in_time_if_it_leaves(what: str, tmp_path: Path):
    ended = run_program(OPEN + TURN_TAKEN.format(what=what.strip()), "work.db", cwd=tmp_path)

    assert (ended.stdout, ended.returncode) == ("done\n", 0), ended.stderr


def test_what_was_answered_before_a_program_left_without_closing_is_there(tmp_path: Path):
    run_program(OPEN + textwrap.dedent(PROGRAMS["falls off the end"][0]), "work.db", cwd=tmp_path)

    again = run_program(
        OPEN
        + textwrap.dedent(
            """
            async def main():
                async with Coordinator.open(sys.argv[1]) as coordinator:
                    print(*[job.id for job in await coordinator.jobs()])
            asyncio.run(main())
            """
        ),
        "work.db",
        cwd=tmp_path,
    )

    assert again.stdout == "parser\n"


def test_a_block_that_ctrl_c_ended_has_failed_its_attempt(tmp_path: Path):
    run_program(OPEN + textwrap.dedent(PROGRAMS["is interrupted in a block"][0]), "work.db", cwd=tmp_path)

    again = run_program(
        OPEN
        + textwrap.dedent(
            """
            async def main():
                async with Coordinator.open(sys.argv[1]) as coordinator:
                    print((await coordinator.job("parser")).reason)
            asyncio.run(main())
            """
        ),
        "work.db",
        cwd=tmp_path,
    )

    assert again.stdout == "cancelled\n"


FORKED = """
import asyncio, os, sys
from coordinator import Closed, Coordinator

async def refused(asking):
    try:
        await asking
    except Closed as error:
        return "belongs to the parent" in str(error)

async def child(coordinator, ada, claim):
    asked = [coordinator.jobs(), ada.add_job("lexer"), claim.submit(), anext(ada.claims())]
    fine = [await refused(asking) for asking in asked]
    await coordinator.close()
    return all(fine)

async def main():
    async with Coordinator.open(sys.argv[1]) as coordinator:
        ada = coordinator.agent("ada")
        claim = await ada.claim(await ada.add_job("parser"))
        pid = os.fork()
        if pid == 0:
            os._exit(0 if await child(coordinator, ada, claim) else 3)
        print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        await claim.submit()
        print((await coordinator.job("parser")).state)

asyncio.run(main())
"""


FORKED_AND_OPENS = """
import asyncio, os, sys
from coordinator import Coordinator, Unavailable

async def child():
    async with Coordinator.open("other.db") as coordinator:
        await coordinator.agent("eve").add_job("elsewhere")
    os.symlink("work.db", "link.db")
    for name in ("work.db", "link.db"):
        try:
            async with Coordinator.open(name) as coordinator:
                print("opened")
        except Unavailable as error:
            print("open when this process was forked" in str(error), "spawn" in error.hint)
    sys.stdout.flush()

def forked():
    pid = os.fork()
    if pid == 0:
        asyncio.new_event_loop().run_until_complete(child())
        os._exit(0)
    os.waitpid(pid, 0)

async def main():
    async with Coordinator.open("work.db") as coordinator:
        await coordinator.agent("ada").add_job("parser")
        await asyncio.to_thread(forked)
        await coordinator.agent("ada").add_job("lexer")
        print(sorted(job.id for job in await coordinator.jobs()))

asyncio.run(main())
"""


def test_a_child_that_was_forked_while_a_workspace_was_open_cannot_open_it_itself(tmp_path: Path):
    """SQLite's memory of its locks passes to the child, the locks do not: the two would remove each other's log."""
    ended = run_program(FORKED_AND_OPENS, cwd=tmp_path)

    assert ended.stdout == "True True\nTrue True\n['lexer', 'parser']\n", ended.stderr


def test_a_child_that_was_forked_before_a_workspace_was_opened_can_open_it(tmp_path: Path):
    program = FORKED_AND_OPENS.replace("asyncio.run(main())", "forked(); asyncio.run(main())")

    ended = run_program(program.replace("        await asyncio.to_thread(forked)\n", ""), cwd=tmp_path)

    assert ended.stdout == "opened\nopened\n['lexer', 'parser']\n", ended.stderr


@pytest.mark.parametrize("place", ["memory:", "work.db"])
def test_a_forked_child_cannot_use_its_parents_coordinator_and_does_it_no_harm(place: str, tmp_path: Path):
    ended = run_program(FORKED, place, cwd=tmp_path)

    assert ended.stdout == "child 0\nsubmitted\n", ended.stderr
