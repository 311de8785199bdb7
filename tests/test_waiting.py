"""Who is woken by what, without any store: waiters come and go, look slowly, and much happens meanwhile."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.clock import ManualClock
from coordinator.request import NOTHING_ADDED, Added, News
from coordinator.timers import Timer
from coordinator.waiting import Look, Waiting
from events.streams import EVERYTHING

NAMES: tuple[str, ...] = ("job/a", "job/b", "job/c", "topic/a", "topic/b", "reader/a/x")
WATCHED = (
    EVERYTHING,
    frozenset({"job/"}),
    frozenset({"topic/"}),
    frozenset({"job/", "topic/a"}),
    *(frozenset({name}) for name in NAMES),
    frozenset({"job/a", "topic/b"}),
    frozenset({"topic/a", "reader/a/x"}),
)


class Alarms:
    """Timers without a thread."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._due: list[tuple[int, int, Timer]] = []
        self._order = count()

    def at(self, due: int, function: Callable[[], None]) -> Timer:
        timer = Timer(function)
        heapq.heappush(self._due, (due, next(self._order), timer))
        return timer

    def ring(self) -> None:
        while self._due and self._due[0][0] <= self._clock.boot():
            heapq.heappop(self._due)[2].function()


class World:
    """Counts what was appended to each stream. Leases lapse: that appends, too, but only when somebody writes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.alarms = Alarms(self.clock)
        self.appended = dict.fromkeys(NAMES, 0)
        self.leases: dict[str, int] = {}
        timers: Any = self.alarms
        self.waiting = Waiting(asyncio.get_running_loop(), self.clock, timers, tick=self.tick, watch=None)
        self.looks_begun = 0
        self.looking = 0
        self._ticking: set[asyncio.Task[None]] = set()

    def now(self) -> int:
        return self.clock.wall()

    def commit(self, *streams: str, ticked: bool = False) -> None:
        lapsed = [stream for stream, until in self.leases.items() if until <= self.now()]
        for stream in lapsed:
            del self.leases[stream]
        for stream in (*streams, *lapsed):
            self.appended[stream] += 1
        added = Added(0, 1, {*streams, *lapsed}) if streams or lapsed else NOTHING_ADDED
        self.waiting.committed(News(added, ticked))

    def tick(self) -> None:
        async def later() -> None:
            await turns(3)
            self.commit(ticked=True)

        task = asyncio.create_task(later())
        self._ticking.add(task)
        task.add_done_callback(self._ticking.discard)

    def hold_turn(self, monkeypatch: pytest.MonkeyPatch, *, pause_s: float) -> list[None]:
        """Nothing is recorded from now on. What comes back grows whenever that is tried."""
        tries: list[None] = []

        def tick() -> None:
            tries.append(None)
            asyncio.get_running_loop().call_soon(self.waiting.committed, News(ticked=None))

        monkeypatch.setattr(self.waiting, "_tick", tick)
        monkeypatch.setattr("coordinator.waiting._PAUSE_S", pause_s)
        return tries

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.alarms.ring()

    async def settle(self) -> None:
        """Let all go on that can."""
        quiet = 0
        while quiet < 2:
            before = self.looks_begun
            await turns(5)
            self.alarms.ring()
            quiet = quiet + 1 if self.looks_begun == before and not self.looking and not self._ticking else 0

    def of(self, streams: frozenset[str]) -> list[str]:
        return [name for name in NAMES if any(name.startswith(key) for key in streams)]


class Waiter:
    """Waits until so much was appended to what it watches. That may change: with each append, if there are two."""

    def __init__(self, world: World, watched: list[frozenset[str]], goal: int, slowness: int) -> None:
        self.world = world
        self.looks = 0
        self._watched = watched
        self._goal = goal
        self._slowness = slowness
        self.task = asyncio.create_task(self.wait())

    async def wait(self) -> None:
        await self.world.waiting.until(self.look)

    @property
    def watched(self) -> frozenset[str]:
        """What it must watch as things are: whatever is in its first set says what more."""
        first = self._watched[0]
        sum_of_first = sum(self.world.appended[name] for name in self.world.of(first))
        return first | self._watched[sum_of_first % len(self._watched)]

    @property
    def satisfied(self) -> bool:
        return sum(self.world.appended[name] for name in self.world.of(self.watched)) >= self._goal

    def due_in(self) -> int | None:
        ends = [until for name, until in self.world.leases.items() if name in self.world.of(self.watched)]
        return min(ends) - self.world.now() if ends else None

    async def look(self) -> Look[None]:
        self.looks += 1
        self.world.looks_begun += 1
        self.world.looking += 1
        try:
            await turns(self._slowness)
            look = Look((None,) if self.satisfied else None, self.due_in(), self.watched)
            await turns(self._slowness)
        finally:
            self.world.looking -= 1
        return look


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


steps = st.one_of(
    st.tuples(
        st.just("wait"),
        st.lists(st.sampled_from(WATCHED), min_size=1, max_size=2),
        st.integers(1, 12),
        st.integers(0, 4),
    ),
    st.tuples(st.just("commit"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)),
    st.tuples(st.just("lease"), st.sampled_from(NAMES), st.integers(1, 5)),
    st.tuples(st.just("advance"), st.integers(0, 4)),
    st.tuples(st.just("set the clock"), st.integers(-3, 3)),
    st.tuples(st.just("cancel"), st.integers(0, 20)),
    st.tuples(st.just("let go on"), st.integers(1, 8)),
    st.tuples(st.just("look at all")),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, min_size=1, max_size=40))
def test_nobody_sleeps_on_who_should_be_woken_and_nobody_else_is_woken(story: list[Any]) -> None:
    run(played(story))


async def played(story: list[Any]) -> None:
    world, waiters = World(), list[Waiter]()
    for what, *how in story:
        match what:
            case "wait":
                waiters.append(Waiter(world, *how))
            case "commit":
                world.commit(*how[0])
            case "lease":
                world.leases[how[0]] = world.now() + how[1] * 1_000_000
                world.commit(how[0])
            case "advance":
                world.advance(how[0])
            case "set the clock":
                world.clock.jump_wall(how[0])
            case "cancel" if waiters:
                waiters[how[0] % len(waiters)].task.cancel()
            case "let go on":
                await turns(how[0])
            case "look at all":
                await check(world, waiters)
            case _:
                pass

    await check(world, waiters)
    world.advance(20)
    await world.settle()
    world.advance(20)  # a clock that was set back makes a lease last longer
    await check(world, waiters)
    asleep = [waiter for waiter in waiters if not waiter.task.done()]
    assert all(waiter.due_in() is None for waiter in asleep), "a lapse was not recorded"
    for waiter in asleep:
        waiter.task.cancel()
    await asyncio.gather(*(waiter.task for waiter in waiters), return_exceptions=True)
    assert world.waiting._woken == {}
    assert world.waiting._timed == {}


async def check(world: World, waiters: list[Waiter]) -> None:
    """Whoever sleeps does so rightly, and a commit wakes those whom it concerns."""
    await world.settle()
    for waiter in waiters:
        if not waiter.task.done():
            assert not waiter.satisfied
    for name in NAMES:
        asleep = {waiter: waiter.looks for waiter in waiters if not waiter.task.done()}
        concerned = {waiter for waiter in asleep if name in world.of(waiter.watched)}
        due = {stream for stream, until in world.leases.items() if until <= world.now()}
        world.commit(name)
        await world.settle()
        woken = {waiter for waiter, looks in asleep.items() if waiter.looks > looks}
        assert concerned <= woken
        assert due or woken == concerned


def run(program: Coroutine[Any, Any, None]) -> None:
    asyncio.run(program)


# One by one


@pytest.fixture
async def world() -> World:
    return World()


async def test_one_wake_is_one_look_however_much_happens_until_then(world: World):
    waiter = Waiter(world, [frozenset({"job/a"})], goal=100, slowness=0)
    await world.settle()
    looks = waiter.looks

    for _ in range(10):
        world.commit("job/a")
    await world.settle()

    assert waiter.looks == looks + 1
    waiter.task.cancel()


async def test_what_is_appended_while_somebody_looks_has_it_look_again(world: World):
    waiter = Waiter(world, [frozenset({"job/a"})], goal=100, slowness=5)
    await world.settle()
    looks = waiter.looks

    world.commit("job/a")
    await turns(8)
    assert waiter.looks == looks + 1
    world.commit("job/a")
    await world.settle()

    assert waiter.looks == looks + 2
    waiter.task.cancel()


@pytest.mark.parametrize("moment", range(12))
async def test_what_is_appended_where_somebody_has_just_come_to_watch_is_noticed(moment: int, world: World):
    waiter = Waiter(world, [frozenset({"job/a"}), frozenset({"topic/b"})], goal=2, slowness=3)
    await world.settle()

    world.commit("job/a")  # from now on it watches the other, too
    await turns(moment)
    world.commit("topic/b")
    await world.settle()

    assert waiter.task.done()
    waiter.task.cancel()


async def test_when_nobody_knows_what_was_appended_all_look(world: World):
    waiters = [Waiter(world, [frozenset({name})], goal=100, slowness=0) for name in NAMES]
    await world.settle()
    looks = [waiter.looks for waiter in waiters]

    world.waiting.committed(News(added=None))
    await world.settle()

    assert [waiter.looks for waiter in waiters] == [number + 1 for number in looks]
    for waiter in waiters:
        waiter.task.cancel()


async def test_an_empty_transaction_wakes_those_alone_whose_lease_should_be_over(world: World):
    """It was perhaps too early: log time may be behind."""
    for seconds, name in enumerate(("job/a", "job/b"), start=5):
        world.leases[name] = world.now() + seconds * 1_000_000
    over, later, never = [Waiter(world, [frozenset({f"job/{x}"})], goal=100, slowness=0) for x in "abc"]
    await world.settle()
    looks = over.looks, later.looks, never.looks

    world.clock.jump_wall(-1)
    world.clock.advance(5)
    world.commit(ticked=True)
    await world.settle()
    tried_in_vain = over.looks, later.looks, never.looks
    world.advance(1)
    await world.settle()

    assert tried_in_vain == (looks[0] + 1, looks[1], looks[2])
    assert world.appended["job/a"] == 1
    for waiter in (over, later, never):
        waiter.task.cancel()


async def test_where_the_turn_does_not_come_for_a_lapse_nobody_looks_or_tries_without_end(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    tries = world.hold_turn(monkeypatch, pause_s=3_600)
    world.leases["job/a"] = world.now() + 5_000_000
    waiters = [Waiter(world, [frozenset({"job/a"})], goal=1, slowness=0) for _ in range(3)]
    await world.settle()
    looks = [waiter.looks for waiter in waiters]

    world.clock.advance(5)
    for _ in range(20):
        world.alarms.ring()
        await turns(5)
    late = Waiter(world, [frozenset({"job/a"})], goal=1, slowness=0)
    await world.settle()

    assert [waiter.looks for waiter in waiters] == [number + 1 for number in looks]  # each saw that it is over
    assert len(tries) == len(waiters)  # what a writer would put together
    for waiter in (*waiters, late):
        waiter.task.cancel()


async def test_a_lapse_for_which_the_turn_did_not_come_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch):
    tries = world.hold_turn(monkeypatch, pause_s=0)
    world.leases["job/a"] = world.now() + 5_000_000
    waiter = Waiter(world, [frozenset({"job/a"})], goal=1, slowness=0)
    await world.settle()

    world.advance(5)
    async with asyncio.timeout(20):
        while len(tries) < 3:
            await asyncio.sleep(0)
        monkeypatch.undo()
        await waiter.task

    assert world.appended["job/a"] == 1


async def test_a_batch_that_appended_nothing_wakes_nobody(world: World):
    """Else those who look for work and find none would have each other look again, for ever."""
    waiters = [Waiter(world, [streams], goal=100, slowness=0) for streams in WATCHED]
    await world.settle()
    looks = [waiter.looks for waiter in waiters]

    world.commit()
    await world.settle()

    assert [waiter.looks for waiter in waiters] == looks
    for waiter in waiters:
        waiter.task.cancel()


async def test_who_looks_fails_and_is_forgotten(world: World):
    async def look() -> Look[None]:
        raise LookupError("nothing there")

    with pytest.raises(LookupError):
        await world.waiting.until(look)

    assert world.waiting._woken == {}
