"""Who is told of which job, when many look for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from coordinator.clock import ManualClock
from coordinator.decisions.claims import LookDeeper
from coordinator.errors import Busy, Unavailable
from coordinator.search import Found
from coordinator.seekers import Seekers
from coordinator.timers import Timers
from coordinator.waiting import Waiting

PATIENCE_S = 20

Answer = str | Exception | None


class Searches:
    """Each search is answered when the test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._answer: asyncio.Future[Found] | None = None

    async def __call__(self, count: int) -> Found:
        self.asked.append(count)
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None

    async def find(self, *jobs: str, open: bool = True) -> None:
        """The search that is going on finds these."""
        answer = await self._begun()
        answer.set_result(Found(list(jobs), open, None))
        await settled()

    async def fail(self, error: Exception) -> None:
        answer = await self._begun()
        answer.set_exception(error)
        await settled()

    @property
    def going_on(self) -> bool:
        return self._answer is not None

    async def _begun(self) -> asyncio.Future[Found]:
        async with asyncio.timeout(PATIENCE_S):
            while self._answer is None:
                await asyncio.sleep(0)
        return self._answer


class Asking:
    """Claims that are under way: each is answered when the test says so."""

    def __init__(self) -> None:
        self.by: dict[str, tuple[str, asyncio.Future[Answer]]] = {}

    def of(self, name: str) -> Callable[[str], Awaitable[str | None]]:
        async def ask(job: str) -> str | None:
            answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self.by[name] = job, answer
            try:
                told = await answer
            finally:
                del self.by[name]
            if isinstance(told, Exception):
                raise told
            return told

        return ask

    @property
    def jobs(self) -> dict[str, str]:
        """Who asks for what."""
        return {name: job for name, (job, _) in self.by.items()}

    async def answer(self, name: str, answer: Answer) -> None:
        self.by[name][1].set_result(answer)
        await settled()


async def settled() -> None:
    """All that can go on without the test has done so."""
    for _ in range(10):
        await asyncio.sleep(0)


def result(task: asyncio.Task[str | None]) -> str | None:
    """What it came to; it must not go on."""
    assert task.done()
    return task.result()


@pytest.fixture
def searches() -> Searches:
    return Searches()


@pytest.fixture
def asking() -> Asking:
    return Asking()


@pytest.fixture
async def waiting() -> AsyncIterator[Waiting]:
    clock = ManualClock()
    timers = Timers(clock)
    waiting = Waiting(asyncio.get_running_loop(), clock, timers, tick=lambda: None, watch=None)
    yield waiting
    waiting.close()
    timers.close()


@pytest.fixture
def seekers(searches: Searches, waiting: Waiting) -> Seekers:
    return Seekers(searches, waiting)


@pytest.fixture
async def seek(seekers: Seekers, searches: Searches, asking: Asking) -> AsyncIterator[Callable[..., Any]]:
    """Has somebody of this name seek, and leaves nobody behind."""
    tasks: list[asyncio.Task[str | None]] = []

    async def seek(name: str, **wish: bool) -> asyncio.Task[str | None]:
        tasks.append(asyncio.create_task(seekers.seek(asking.of(name), **wish)))
        await settled()
        return tasks[-1]

    yield seek
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await settled()
    while searches.going_on:
        await searches.find()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_each_job_that_is_found_goes_to_one_seeker_in_the_order_in_which_they_came(
    seek: Any, searches: Searches, asking: Asking
):
    for name in ("ada", "bob", "eve"):
        await seek(name, waits=True)
    await searches.find()

    await searches.find("a", "b")

    assert asking.jobs == {"ada": "a", "bob": "b"}


async def test_one_search_serves_all_who_came_before_it_began(seek: Any, searches: Searches, waiting: Waiting):
    for name in ("ada", "bob", "eve"):
        await seek(name, waits=True)
    await searches.find()
    await searches.find()
    searches.asked.clear()

    waiting.wake({"job/a"})
    await searches.find()

    assert (searches.asked, searches.going_on) == ([3], False)


async def test_what_is_claimed_is_what_the_asking_came_to(seek: Any, searches: Searches, asking: Asking):
    task = await seek("ada")
    await searches.find("a")

    await asking.answer("ada", "another")

    assert result(task) == "another"


@pytest.mark.parametrize("waits", [True, False])
async def test_who_was_too_late_is_told_of_the_next_job(waits: bool, seek: Any, searches: Searches, asking: Asking):
    await seek("ada", waits=waits)
    await searches.find("a")

    await asking.answer("ada", LookDeeper())
    await searches.find("b")

    assert asking.jobs == {"ada": "b"}


async def test_who_was_too_late_keeps_its_place_before_those_who_came_later(
    seek: Any, searches: Searches, asking: Asking
):
    for name in ("ada", "bob"):
        await seek(name, waits=True)
    await searches.find()
    await searches.find("a")

    await asking.answer("ada", LookDeeper())
    await searches.find("b")

    assert asking.jobs == {"ada": "b"}


async def test_who_does_not_wait_is_told_that_there_is_nothing(seek: Any, searches: Searches):
    task = await seek("ada")

    await searches.find()

    assert result(task) is None


async def test_who_does_not_wait_and_got_nothing_has_its_answer(seek: Any, searches: Searches, asking: Asking):
    task = await seek("ada")
    await searches.find("a")

    await asking.answer("ada", None)

    assert result(task) is None


async def test_who_waits_and_got_nothing_waits_on(seek: Any, searches: Searches, asking: Asking):
    await seek("ada", waits=True)
    await searches.find("a")

    await asking.answer("ada", None)
    await searches.find("b")

    assert asking.jobs == {"ada": "b"}


async def test_who_waits_is_not_told_of_what_another_asks_for(
    seek: Any, searches: Searches, asking: Asking, waiting: Waiting
):
    await seek("ada", waits=True)
    await searches.find("a")
    await seek("bob", waits=True)

    await searches.find("a", "b")

    assert asking.jobs == {"ada": "a", "bob": "b"}
    assert searches.asked[-1] == 2


async def test_who_waits_is_not_told_of_what_another_has_just_claimed(seek: Any, searches: Searches, asking: Asking):
    """The search may have begun before it was claimed."""
    await seek("ada", waits=True)
    await searches.find("a")
    await seek("bob", waits=True)
    await asking.answer("ada", "a")

    await searches.find("a")

    assert asking.jobs == {}


async def test_who_does_not_wait_may_ask_for_the_same_since_the_other_may_leave_it(
    seek: Any, searches: Searches, asking: Asking
):
    await seek("ada", waits=True)
    await searches.find("a")
    await seek("bob")

    await searches.find("a")

    assert asking.jobs == {"ada": "a", "bob": "a"}


async def test_what_was_found_for_one_who_got_something_else_goes_to_another(
    seek: Any, searches: Searches, asking: Asking
):
    await seek("ada", waits=True)
    await searches.find("found")
    await seek("bob", waits=True)
    await searches.find("found")
    assert asking.jobs == {"ada": "found"}

    await asking.answer("ada", "better")
    await searches.find("found")

    assert asking.jobs == {"bob": "found"}


@pytest.mark.parametrize("when", ["before it asks", "while it asks"])
async def test_what_was_found_for_one_who_is_cancelled_goes_to_another(
    when: str, seek: Any, searches: Searches, asking: Asking, seekers: Seekers, monkeypatch: pytest.MonkeyPatch
):
    ada = await seek("ada", waits=True)
    await seek("bob", waits=True)
    await searches.find()
    if when == "before it asks":
        tell = seekers._tell

        def tell_and_cancel(told: Any, job: str | None) -> None:
            tell(told, job)
            ada.cancel()

        monkeypatch.setattr(seekers, "_tell", tell_and_cancel)
    await searches.find("a")
    monkeypatch.undo()

    ada.cancel()
    await settled()
    await searches.find("a")

    assert asking.jobs == {"bob": "a"}


async def test_who_came_after_a_search_began_is_not_told_what_that_one_found(seek: Any, searches: Searches):
    """What it did before it came may be missing there."""
    await seek("ada", waits=True)
    late = await seek("bob")

    await searches.find()
    told_too_early = late.done()
    await searches.find()

    assert not told_too_early
    assert result(late) is None


@pytest.mark.parametrize(("until_settled", "open"), [(True, True), (False, False)])
async def test_who_waits_goes_on_as_long_as_a_job_may_come(
    until_settled: bool, open: bool, seek: Any, searches: Searches
):
    task = await seek("ada", waits=True, until_settled=until_settled)

    await searches.find(open=open)

    assert not task.done()


async def test_who_waits_until_all_is_settled_is_told_when_it_is(seek: Any, searches: Searches):
    task = await seek("ada", waits=True, until_settled=True)

    await searches.find(open=False)

    assert result(task) is None


async def test_who_waits_for_a_job_waits_for_the_turn_too(seek: Any, searches: Searches, asking: Asking):
    await seek("ada", waits=True)
    await searches.find("a")

    await asking.answer("ada", Busy("not now"))
    await searches.find("a")

    assert asking.jobs == {"ada": "a"}


async def test_who_did_not_get_the_turn_pauses_before_it_looks_again(
    seek: Any, searches: Searches, asking: Asking, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("coordinator.seekers._PAUSE_S", PATIENCE_S)
    await seek("ada", waits=True)
    await searches.find("a")

    await asking.answer("ada", Busy("not now"))

    assert not searches.going_on


async def test_who_does_not_wait_does_not_wait_for_the_turn_either(seek: Any, searches: Searches, asking: Asking):
    task = await seek("ada")
    await searches.find("a")

    await asking.answer("ada", Busy("not now"))

    with pytest.raises(Busy):
        result(task)


async def test_a_search_that_fails_is_told_to_all_each_with_an_error_of_its_own(seek: Any, searches: Searches):
    tasks = [await seek(name, waits=True) for name in ("ada", "bob")]
    await searches.find()

    await searches.fail(Unavailable("the disk is gone"))

    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(error) for error in errors] == ["the disk is gone"] * 2
    assert errors[0] is not errors[1]


async def test_after_a_search_that_failed_there_are_others(seek: Any, searches: Searches, asking: Asking):
    failed = await seek("ada", waits=True)
    await searches.fail(Unavailable("the disk is gone"))
    await asyncio.gather(failed, return_exceptions=True)

    await seek("bob", waits=True)
    await searches.find("a")

    assert asking.jobs == {"bob": "a"}


async def test_so_many_jobs_are_looked_for_as_there_are_seekers_but_not_too_many(seek: Any, searches: Searches):
    for number in range(70):
        await seek(f"worker-{number}", waits=True)
    await searches.find()

    await searches.find()

    assert searches.asked == [1, 64]
