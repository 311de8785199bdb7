"""What the tests of the public API share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

import coordinator.execute
from coordinator import Agent, Claim, CommandRecord, Coordinator, LogEntry, Message
from coordinator.stores.sqlite import SqliteReader
from coordinator.stores.turn import Turn
from coordinator.waiting import Waiting

T = TypeVar("T")

PATIENCE_S = 20  # how long a test waits for what is bound to come


class Records:
    """An observer that keeps what it is told, and can be waited for."""

    def __init__(self) -> None:
        self.all: list[CommandRecord] = []
        self.then: Callable[[CommandRecord], Any] | None = None
        self._more = asyncio.Event()

    def __call__(self, record: CommandRecord) -> None:
        self.all.append(record)
        self._more.set()
        if self.then is not None:
            self.then(record)

    def of(self, type: str, outcome: str | None = None) -> list[CommandRecord]:
        return [record for record in self.all if record.type == type and outcome in (None, record.outcome)]

    async def until(self, type: str, outcome: str | None = None, *, count: int = 1) -> list[CommandRecord]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.of(type, outcome)) < count:
                self._more.clear()
                await self._more.wait()
        return self.of(type, outcome)


class Gate:
    """Stops the writer in the middle of a transaction: its batch is drawn, nothing is decided yet. At first open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        decide = coordinator.execute.decide
        self._drawn = threading.Event()
        self._is_open = threading.Event()
        self._is_open.set()

        def decide_when_let(*arguments: Any) -> Any:
            if not self._is_open.is_set():
                self._drawn.set()
                assert self._is_open.wait(PATIENCE_S), "the gate was never opened"
            return decide(*arguments)

        monkeypatch.setattr(coordinator.execute, "decide", decide_when_let)

    def close(self) -> None:
        self._is_open.clear()

    async def drawn(self) -> None:
        """Wait until the writer stands at the gate."""
        assert await asyncio.to_thread(self._drawn.wait, PATIENCE_S), "no command came"

    def open(self) -> None:
        self._is_open.set()


@contextmanager
def turn_held(database: Path) -> Iterator[None]:
    """Nobody else can write meanwhile, as if another process did."""
    turn = Turn(f"{database}.turn")
    try:
        with turn.held(lambda: False):
            yield
    finally:
        turn.close()


async def claimed(agent: Agent, id: str = "parser", *, lease_s: float = 60, **job: Any) -> Claim:
    """A new job, claimed by who added it."""
    return await agent.claim(await agent.add_job(id, **job), lease_s=lease_s)


async def send(agent: Agent, *numbers: int, topic: str = "builds") -> None:
    """Messages that say which number they must have."""
    sent = await asyncio.gather(*(agent.send(topic, {"n": number}) for number in numbers))
    assert sent == list(numbers)


def numbers(page: tuple[Message, ...]) -> list[int]:
    """The numbers of a page, in which nothing is mixed up."""
    assert [message.body for message in page] == [{"n": message.number} for message in page]
    return [message.number for message in page]


async def entries(coordinator: Coordinator, job: str | None = None, *types: str) -> list[LogEntry]:
    """The log, or what it holds of one job, or of some types."""
    return [entry async for entry in coordinator.log(job=job) if not types or entry.type in types]


async def story(coordinator: Coordinator, job: str | None = None) -> list[str]:
    """What happened, in the words of the log, without the refusals."""
    return [entry.type for entry in await entries(coordinator, job) if entry.type != "command.refused"]


async def refusals(coordinator: Coordinator) -> list[tuple[str | None, object, object]]:
    """Who was refused what, and why."""
    found = await entries(coordinator, None, "command.refused")
    return [(entry.actor, entry.body["command"], entry.body["code"]) for entry in found]


async def at_work(claim: Claim, body: Callable[[], Awaitable[T]], **options: Any) -> T:
    """The body in a block under `claim.working()`."""
    async with claim.working(**options):
        return await body()


async def timers_are_done(coordinator: Coordinator) -> None:
    """Whatever was due on the thread of timers has been called."""
    session = coordinator._open()
    called = threading.Event()
    session.timers.at(session.clock.boot(), called.set)
    assert await asyncio.to_thread(called.wait, PATIENCE_S), "the timers have stopped"


async def asleep(coordinator: Coordinator, number: int) -> None:
    """Wait until so many wait for something, and all of them have looked in vain."""
    waiting = coordinator._open().waiting
    async with asyncio.timeout(PATIENCE_S):
        while True:
            woken = {event for events in waiting._woken.values() for event in events}
            if len(woken) == number and all(sleepers_of(event) and not event.is_set() for event in woken):
                return
            await asyncio.sleep(0.001)  # not 0: the thread that reads for them would hardly ever run


def sleepers_of(event: asyncio.Event) -> int:
    return len(event._waiters)  # type: ignore[attr-defined]


class Looks:
    """Notes the looks of all who wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        until = Waiting.until

        async def until_noted(waiting: Waiting, look: Callable[[], Awaitable[Any]], *woken: asyncio.Event) -> Any:
            def look_and_note() -> Awaitable[Any]:
                self.taken += 1
                return look()

            return await until(waiting, look_and_note, *woken)

        monkeypatch.setattr(Waiting, "until", until_noted)


class Polls:
    """Counts how often this process asks whether others have committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._asked = threading.Semaphore(0)
        self._held = threading.Event()
        self._let_go = threading.Event()
        self._let_go.set()
        changed = SqliteReader.changed

        def changed_and_tell(reader: SqliteReader) -> bool:
            self._asked.release()
            if not self._let_go.is_set():
                self._held.set()
                assert self._let_go.wait(PATIENCE_S), "held for ever"
            return changed(reader)

        monkeypatch.setattr(SqliteReader, "changed", changed_and_tell)

    async def have_seen(self, coordinator: Coordinator) -> None:
        """Whatever was committed before has been noticed, and those concerned were woken. Somebody must be waiting."""
        if coordinator._open().waiting._poller is None:
            return
        while self._asked.acquire(blocking=False):
            pass
        for _ in range(2):  # the first may have begun before
            assert await asyncio.to_thread(self._asked.acquire, timeout=PATIENCE_S), "nobody asks"

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """It is not asked meanwhile. Somebody must be waiting."""
        self._held.clear()
        self._let_go.clear()
        try:
            assert await asyncio.to_thread(self._held.wait, PATIENCE_S), "nobody asks"
            yield
        finally:
            self._let_go.set()


async def forever() -> None:
    await asyncio.Event().wait()
