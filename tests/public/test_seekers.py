"""Many who look for a job: one search for all of them, and to each a job of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coordinator import Agent, Claim, Coordinator, Unavailable
from coordinator.decisions.claims import CANDIDATES
from coordinator.search import Search
from tests.public.support import PATIENCE_S, Records, claimed

both_stores = pytest.mark.both_stores

MANY = 50


class Steps:
    """Counts the steps that searches take; can make them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        self.error: Exception | None = None
        step = Search.step

        def count(search: Search, *arguments: Any) -> Any:
            self.taken += 1
            if self.error is not None:
                raise self.error
            return step(search, *arguments)

        monkeypatch.setattr(Search, "step", count)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


async def in_vain(agent: Agent, number: int = CANDIDATES) -> Claim:
    """So many ready jobs that all clash with one claim."""
    held = await claimed(agent, "held", paths=["src"])
    await asyncio.gather(*[agent.add_job(f"clash-{n}", paths=[f"src/{n}"], priority=1) for n in range(number)])
    return held


async def waiting(coordinator: Coordinator, number: int) -> list[asyncio.Task[Claim]]:
    """So many agents that wait for work, in the order in which they came."""
    seekers = coordinator._open().seekers
    tasks: list[asyncio.Task[Claim]] = []
    for n in range(number):
        tasks.append(asyncio.create_task(anext(coordinator.agent(f"worker-{n}").claims())))
        while len(seekers._seeking) < len(tasks):
            await asyncio.sleep(0)
    return tasks


async def end_of(task: asyncio.Task[Claim]) -> Claim:
    async with asyncio.timeout(PATIENCE_S):
        return await task


async def has_searched(coordinator: Coordinator, steps: Steps) -> int:
    """The steps taken, once nobody searches any more."""
    before = -1
    while before != steps.taken:
        before = steps.taken
        for _ in range(20):  # the searcher runs, and reads are answered in order
            await asyncio.sleep(0)
            await coordinator.jobs(limit=1)
    return steps.taken


async def stop(tasks: list[asyncio.Task[Claim]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@both_stores
async def test_however_many_wait_a_commit_costs_one_search_and_no_commands(
    coordinator: Coordinator, ada: Agent, records: Records, steps: Steps
):
    held = await in_vain(ada, 5)
    tasks = await waiting(coordinator, MANY)
    before = await has_searched(coordinator, steps)
    asked = len(records.of("claim_next"))

    await held.note({"progress": 0.5})
    after = await has_searched(coordinator, steps)

    assert 1 <= after - before <= 2
    assert len(records.of("claim_next")) == asked == 1  # who finds others waiting does not ask before them
    await stop(tasks)


@both_stores
async def test_a_job_goes_to_the_one_who_waits_for_longest_and_the_others_do_not_ask(
    coordinator: Coordinator, ada: Agent, records: Records
):
    tasks = await waiting(coordinator, 5)
    asked = len(records.of("claim_next"))

    for n in range(5):
        await ada.add_job(f"job-{n}")
        assert (await end_of(tasks[n])).job.id == f"job-{n}"

    assert len(records.of("claim_next")) == asked + 5


@both_stores
async def test_who_has_just_finished_a_job_does_not_overtake_those_who_wait(coordinator: Coordinator, ada: Agent):
    held = await claimed(ada, "held", paths=["src"])
    await ada.add_job("next", paths=["src"])
    [waits] = await waiting(coordinator, 1)

    await held.submit()
    again = asyncio.create_task(anext(ada.claims()))

    assert (await end_of(waits)).job.id == "next"
    assert not again.done()
    await stop([again])


@both_stores
async def test_jobs_that_come_together_are_claimed_together_by_as_many(
    coordinator: Coordinator, ada: Agent, records: Records
):
    held = await in_vain(ada, 3)
    tasks = await waiting(coordinator, 5)

    await held.submit()
    claims = [await end_of(task) for task in tasks[:3]]

    assert sorted(claim.job.id for claim in claims) == ["clash-0", "clash-1", "clash-2"]
    assert not any(task.done() for task in tasks[3:])
    await stop(tasks)


@both_stores
async def test_jobs_that_clash_with_each_other_are_claimed_one_after_another(coordinator: Coordinator, ada: Agent):
    held = await claimed(ada, "held", paths=["src"])
    for n in range(3):
        await ada.add_job(f"job-{n}", paths=["src/x"])
    tasks = await waiting(coordinator, 3)

    await held.submit()

    for n, task in enumerate(tasks):
        claim = await end_of(task)
        assert claim.job.id == f"job-{n}"
        await claim.submit()


@both_stores
async def test_a_job_behind_hundreds_that_clash_is_claimed_by_one_who_waits(coordinator: Coordinator, ada: Agent):
    await in_vain(ada)
    (task,) = await waiting(coordinator, 1)

    await ada.add_job("docs", paths=["docs"])

    assert (await end_of(task)).job.id == "docs"


@both_stores
async def test_many_that_look_at_once_behind_hundreds_that_clash_get_what_there_is_and_the_others_nothing(
    coordinator: Coordinator, ada: Agent
):
    await in_vain(ada)
    for n in range(5):
        await ada.add_job(f"docs-{n}", paths=[f"docs/{n}"])

    async with asyncio.timeout(PATIENCE_S):
        claims = await asyncio.gather(*[coordinator.agent(f"worker-{n}").claim_next() for n in range(20)])

    assert sorted(claim.job.id for claim in claims if claim is not None) == [f"docs-{n}" for n in range(5)]


@both_stores
async def test_who_does_not_wait_is_told_of_what_was_added_before_it_asked(coordinator: Coordinator, ada: Agent):
    """Also while others have a search going that began before."""
    await in_vain(ada)
    tasks = await waiting(coordinator, 3)

    for n in range(20):
        await ada.add_job(f"docs-{n}", paths=[f"docs/{n}"])
        claim = await ada.claim_next()
        assert claim is not None or (await coordinator.job(f"docs-{n}")).state == "claimed"

    await stop(tasks)


async def test_nothing_goes_on_when_nobody_looks_any_more(coordinator: Coordinator, ada: Agent, steps: Steps):
    before = asyncio.all_tasks()
    await stop(await waiting(coordinator, 3))
    taken = await has_searched(coordinator, steps)

    await ada.add_job("parser")

    assert await has_searched(coordinator, steps) == taken
    assert asyncio.all_tasks() == before


@both_stores
async def test_when_the_store_cannot_be_read_all_hear_of_it_and_can_try_again(
    coordinator: Coordinator, ada: Agent, steps: Steps
):
    tasks = await waiting(coordinator, 3)
    await has_searched(coordinator, steps)

    steps.error = Unavailable("the disk is gone")
    await ada.add_job("parser")
    async with asyncio.timeout(PATIENCE_S):
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    steps.error = None

    assert [str(outcome) for outcome in outcomes] == ["the disk is gone"] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert (await anext(ada.claims())).job.id == "parser"
    (task,) = await waiting(coordinator, 1)
    await ada.add_job("lexer")
    assert (await end_of(task)).job.id == "lexer"


@both_stores
async def test_other_reads_come_between_the_steps_of_a_long_search(
    coordinator: Coordinator, ada: Agent, steps: Steps, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("coordinator.search._PAGE", 8)
    await in_vain(ada)
    looking = asyncio.create_task(ada.claim_next())
    while steps.taken < 3:
        await asyncio.sleep(0)

    read = await coordinator.job("held")
    taken = steps.taken

    assert read.state == "claimed"
    assert await looking is None
    assert taken < 20 < CANDIDATES / 8 < steps.taken
