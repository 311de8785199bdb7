"""A worker process that does as a test tells it.

Requests are lines of JSON on stdin: {"id": 1, "do": "claim", "with": {"job": "parser", "version": 1}}. They run side
by side; each is answered by a line on stdout: {"id": 1, "value": …} or {"id": 1, "error": "AlreadyClaimed", …}. Before
that, {"id": 1, "begun": true} says that it is under way.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from coordinator import Claim, CommandRecord, Coordinator, Message, Preview, Reader
from coordinator.stores import checkpoint
from coordinator.stores.turn import Turn
from tests.processes.diary import Diary, do_job
from tests.processes.operating import Runs


class Member:
    def __init__(self) -> None:
        self.records: list[CommandRecord] = []
        self.more = asyncio.Event()
        self.coordinator: Coordinator | None = None
        self.actor = ""
        self.held: Claim | None = None
        self.reader: Reader | None = None
        self.page: tuple[Message, ...] = ()
        self.turn: Turn | None = None
        self.enough = False
        self.planned: Preview | None = None

    def observe(self, record: CommandRecord) -> None:
        self.records.append(record)
        self.more.set()

    @property
    def agent(self):
        assert self.coordinator is not None
        return self.coordinator.agent(self.actor)

    @property
    def claim_held(self) -> Claim:
        assert self.held is not None
        return self.held

    def hold(self, claim: Claim) -> dict[str, Any]:
        self.held = claim
        return {
            "job": claim.job.id,
            "attempt": claim.attempt,
            "fence": claim.fence,
            "digest": claim.token.digest,
            "token": claim.token.reveal(),
        }

    # What it can be told to do

    async def open(self, path: str, actor: str, busy_timeout_s: float = 20) -> None:
        opened = Coordinator.open(path, busy_timeout_s=busy_timeout_s, observe=self.observe)
        self.coordinator, self.actor = await opened.__aenter__(), actor

    async def close(self) -> None:
        if self.coordinator is not None:
            await self.coordinator.close()
        if self.turn is not None:
            self.turn.close()
        self.__init__()

    async def register(self, **settings: Any) -> None:
        assert self.coordinator is not None
        kind = Runs()
        for name, value in settings.items():
            setattr(kind, name, value)
        self.coordinator.register(kind)

    async def plan(self, script: str, id: str) -> None:
        self.planned = await self.agent.preview("runs", {"script": script}, operation_id=id)

    async def apply_planned(self) -> bool:
        """Whether that started it."""
        return (await self.agent.apply(self.planned)).started

    async def approve(self, script: str, id: str) -> bool:
        await self.plan(script, id)
        return await self.apply_planned()

    async def add(self, job: str, **how: Any) -> dict[str, Any]:
        added = await self.agent.add_job(job, **how)
        return {"id": added.id, "version": added.version, "position": added.position}

    async def claim(self, job: str, version: int | None = None, **how: Any) -> dict[str, Any]:
        assert self.coordinator is not None
        seen = await self.coordinator.job(job) if version is None else job
        return self.hold(await self.agent.claim(seen, version=version, **how))

    async def next_claim(self) -> dict[str, Any]:
        self.records.clear()
        return self.hold(await anext(self.agent.claims()))

    async def resume(self, token: str) -> dict[str, Any]:
        return self.hold(await self.agent.resume(token))

    async def submit(self, **how: Any) -> str:
        return (await self.claim_held.submit(**how)).state

    async def submit_with_the_current_version(self) -> str:
        assert self.coordinator is not None
        current = await self.coordinator.job(self.claim_held.job.id)
        return (await self.claim_held.submit({"version": current.version})).state

    async def work_for_ever(self) -> None:
        async with self.claim_held.working():
            await asyncio.Event().wait()

    async def claim_and_work_for_ever(self, **how: Any) -> None:
        await self.claim(**how)
        await self.work_for_ever()

    async def send(self, topic: str, numbers: list[int]) -> list[int]:
        return await asyncio.gather(*(self.agent.send(topic, {"n": number}) for number in numbers))

    async def open_reader(self, topic: str, name: str) -> int:
        self.reader = await self.agent.reader(topic, name).__aenter__()
        return self.reader.acknowledged

    async def read(self, limit: int = 100) -> list[Any]:
        """The numbers that the messages of the page were sent with."""
        assert self.reader is not None
        self.page = await self.reader.read(limit)
        return [message.body["n"] for message in self.page]

    async def acknowledge(self) -> int:
        """The page that was read last."""
        assert self.reader is not None
        return await self.reader.acknowledge(self.page)

    async def keep_all(self, topic: str, name: str, last: int, diary: str) -> None:
        """Write every message down and then acknowledge it, three at a time, to the last."""
        kept = Diary(Path(diary))
        async with self.agent.reader(topic, name) as reader:
            while reader.acknowledged < last:
                page = await reader.read(3)
                for message in page:
                    kept.note(str(message.number))
                await reader.acknowledge(page)

    async def wait_for(self, job: str, *states: Any) -> dict[str, Any]:
        assert self.coordinator is not None
        found = await self.coordinator.wait_for_job(job, *states)
        return {"state": found.state, "version": found.version, "worker": found.worker, "attempt": found.attempt}

    async def observed(self, type: str, outcome: str) -> None:
        while not any((record.type, record.outcome) == (type, outcome) for record in self.records):
            self.more.clear()
            await self.more.wait()

    async def log(self) -> list[Any]:
        assert self.coordinator is not None
        return [[entry.type, entry.actor, dict(entry.body)] async for entry in self.coordinator.log()]

    async def work(self, diary: str, jobs: int | None = None, lanes: int = 1) -> None:
        """Do so many jobs in each of some lanes side by side, or go on until told to stop."""
        kept = Diary(Path(diary))

        async def lane(number: int) -> None:
            assert self.coordinator is not None
            for job in count() if jobs is None else range(jobs):
                if not kept.has_done(id := f"{self.actor}/{number}/{job}"):
                    await do_job(self.coordinator, self.actor, id, kept)
                    if self.enough:
                        return

        await asyncio.gather(*map(lane, range(lanes)))

    async def stop_working(self) -> None:
        self.enough = True

    async def come_and_go(self, path: str, actor: str, diary: str) -> None:
        """Until told to stop: open the workspace, do a few jobs side by side, close it. Checkpoints are frequent."""
        kept = Diary(Path(diary))
        ids = (id for number in count() if not kept.has_done(id := f"{actor}/{number}"))
        with checkpoints_often(kept):
            while not self.enough:
                some = [next(ids) for _ in range(random.randint(1, 5))]
                async with Coordinator.open(path, busy_timeout_s=20) as coordinator:
                    kept.note("opened")
                    await asyncio.gather(*(do_job(coordinator, actor, id, kept) for id in some))
                kept.note("closed")

    # Waiting for each other

    async def follow(self, number: int, **how: Any) -> list[list[Any]]:
        """So many entries of the log as it grows."""
        assert self.coordinator is not None
        log = self.coordinator.follow(**how)
        heard = [await anext(log) for _ in range(number)]
        return [[entry.position, entry.type, entry.actor] for entry in heard]

    async def tell(self, topic: str, number: int) -> None:
        for n in range(number):
            await self.agent.send(topic, {"n": n})

    async def answer_messages(self, hears: Sequence[str], says: Sequence[str], rounds: int, begins: bool) -> list[int]:
        """Answer each message of one topic with one in another, many such pairs side by side. How many were heard."""

        async def player(hears: str, says: str) -> int:
            heard = 0
            async with self.agent.reader(hears) as reader:
                if begins:
                    await self.agent.send(says, {"round": 1})
                async for page in reader.pages():
                    await reader.acknowledge(page)
                    for message in page:
                        heard += 1
                        assert (message.number, message.body["round"]) == (heard, heard)
                        if heard < rounds or not begins:
                            await self.agent.send(says, {"round": heard + begins})
                    if heard == rounds:
                        break
            return heard

        return list(await asyncio.gather(*map(player, hears, says)))

    async def add_and_wait(self, jobs: int, lanes: int) -> int:
        """Add one job after another in each lane, each when somebody has done the last."""

        async def lane(number: int) -> None:
            assert self.coordinator is not None
            for n in range(jobs):
                id = f"{self.actor}/{number}/{n}"
                await self.agent.add_job(id, review="none")
                job = await self.coordinator.wait_for_job(id)
                assert job.state == "accepted"

        await asyncio.gather(*map(lane, range(lanes)))
        return jobs * lanes

    async def do_jobs(self, jobs: int, lanes: int) -> int:
        """Do so many jobs, as they come."""
        left = jobs

        async def lane(number: int) -> None:
            nonlocal left
            while left > 0:
                left -= 1
                claim = await anext(self.agent.claims())
                await claim.submit()

        await asyncio.gather(*map(lane, range(lanes)))
        return jobs

    async def fork(self, until: str) -> int:
        """A child that does nothing, until somebody opens that named pipe; then it drops what it inherited, and ends.

        The other end of the pipe shows when it has ended.
        """
        if child := os.fork():
            return child
        try:
            _pipe = open(until)  # noqa: ASYNC230, SIM115
            assert self.coordinator is not None
            await self.coordinator.close()
            self.coordinator = None
            gc.collect()
        finally:
            os._exit(0)

    async def take_turn(self, path: str) -> None:
        self.turn = Turn(path + ".turn")
        self.turn.take(lambda: True)

    async def give_turn_back(self) -> None:
        assert self.turn is not None
        self.turn.give_back()


@contextmanager
def checkpoints_often(diary: Diary) -> Iterator[None]:
    run = checkpoint.Checkpoints.run

    def run_and_note(checkpoints: checkpoint.Checkpoints) -> bool:
        diary.note("checkpoint")
        return run(checkpoints)

    rows = dict.fromkeys(("_NOTED_ROWS", "_FIRST_ROWS", "_FEWEST_ROWS", "_MOST_ROWS"), 50)
    with patch.multiple(checkpoint, **rows), patch.object(checkpoint.Checkpoints, "run", run_and_note):
        yield


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def answer(member: Member, id: int, do: str, how: dict[str, Any]) -> None:
    say(id=id, begun=True)
    try:
        if states := how.pop("states", None):
            value = await member.wait_for(how["job"], *states)
        else:
            value = await getattr(member, do)(**how)
    except Exception as error:
        say(id=id, error=type(error).__name__, said=str(error))
    else:
        say(id=id, value=value)


async def main() -> None:
    member = Member()
    running: set[asyncio.Task[None]] = set()
    requests = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    while line := await requests.readline():
        asked = json.loads(line)
        task = asyncio.create_task(answer(member, asked["id"], asked["do"], asked["with"]))
        running.add(task)
        task.add_done_callback(running.discard)
    for task in running:
        task.cancel()
    await member.close()


if __name__ == "__main__":
    asyncio.run(main())
