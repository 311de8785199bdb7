"""The event loop ends in the middle, with commands under way: programs end in time, and what was answered is there."""

from __future__ import annotations

import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.stores.sqlite import SqliteStore
from tests.processes.support import run_program
from tests.support import Workspace

IN_THE_MIDDLE = """
import asyncio, signal, os, sys, threading
from coordinator import Coordinator

answered = []

async def add(ada, job):
    await ada.add_job(job)
    answered.append(job)
    print(job, flush=True)

async def in_the_middle(release=None):
    global coordinator, adding  # or the loop would forget them
    coordinator = await Coordinator.open("work.db").__aenter__()
    ada = coordinator.agent("ada")
    adding = [asyncio.ensure_future(add(ada, f"job-{number}")) for number in range(2_000)]
    while not answered:
        await asyncio.sleep(0)
"""

ENDINGS = {
    "the loop is closed": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(in_the_middle())
        loop.close()
        """,
    "the loop is left alone": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(in_the_middle())
        """,
    "the loop is stopped, and closed by another thread": """
        loop = asyncio.new_event_loop()
        task = loop.create_task(in_the_middle())
        task.add_done_callback(lambda done: loop.stop())
        loop.run_forever()
        closer = threading.Thread(target=loop.close)
        closer.start()
        closer.join()
        """,
    "the main task ends": """
        asyncio.run(in_the_middle())
        """,
    "the main task fails": """
        async def main():
            await in_the_middle()
            raise SystemExit(0)
        asyncio.run(main())
        """,
    "the user interrupts": """
        async def main():
            await in_the_middle()
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            pass
        """,
    "the loop runs in a thread that ends": """
        thread = threading.Thread(target=lambda: asyncio.new_event_loop().run_until_complete(in_the_middle()))
        thread.start()
        thread.join()
        """,
    "the process is killed": """
        async def main():
            await in_the_middle()
            os.kill(os.getpid(), signal.SIGKILL)
        asyncio.run(main())
        """,
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_loop_that_ends_with_commands_under_way_loses_nothing_that_was_answered(ending: str, tmp_path: Path):
    ended = run_program(IN_THE_MIDDLE + textwrap.dedent(ending), cwd=tmp_path)

    answered = ended.stdout.split()
    assert ended.returncode in (0, -9), ended.stderr
    assert 0 < len(answered) < 2_000
    with closing(SqliteStore.open(tmp_path / "work.db", lambda: False)) as store:
        workspace = Workspace(store)
        workspace.check()
        added = [row.stream.removeprefix("job/") for row in workspace.log()]
    assert len(added) == len(set(added))
    assert set(answered) <= set(added)
