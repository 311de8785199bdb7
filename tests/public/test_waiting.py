"""Waiting for a job to come into a state, and for work to come: woken by what happens, not by a clock that ticks."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

import coordinator.writer as writing
from coordinator import Agent, Busy, Claim, Claims, Closed, Coordinator, Job, OutcomeUnknown, Unavailable
from coordinator.search import Search
from coordinator.session import Session
from coordinator.testing import ManualClock, memory_coordinator
from coordinator.writer import Writer
from tests.public.support import PATIENCE_S, Looks, Polls, Records, claimed, story, turn_held

both_stores = pytest.mark.both_stores


async def waiting_for(coordinator: Coordinator, job: str, *states) -> asyncio.Task[Job]:
    """A task that has looked at least once and goes on waiting."""
    task = asyncio.create_task(coordinator.wait_for_job(job, *states))
    for _ in range(3):  # it runs, and reads are answered in order
        await asyncio.sleep(0)
        await coordinator.job(job)
    assert not task.done()
    return task


async def waiting_for_work(claims: Claims, records: Records) -> asyncio.Task[Claim]:
    """A task that found nothing to claim and goes on waiting."""
    before = len(records.of("claim_next", "nothing"))
    task = asyncio.create_task(anext(claims))
    await records.until("claim_next", "nothing", count=before + 1)
    return task


async def end_of(task: asyncio.Task):
    async with asyncio.timeout(PATIENCE_S):
        return await task


# For a job


@both_stores
async def test_a_state_that_is_there_already_is_returned_at_once(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    job = await coordinator.wait_for_job("parser", "ready", "claimed")

    assert job == await coordinator.job("parser")


@pytest.mark.parametrize(
    ("state", "steps"),
    [
        ("claimed", ["claim"]),
        ("submitted", ["claim", "submit"]),
        ("accepted", ["claim", "submit", "accept"]),
        ("failed", ["claim", "fail"]),
        ("cancelled", ["claim", "cancel"]),
    ],
)
@both_stores
async def test_who_waits_is_woken_when_the_job_comes_into_the_state(
    state, steps: list[str], coordinator: Coordinator, ada: Agent, bob: Agent
):
    job = await ada.add_job("parser", max_attempts=1)
    task = await waiting_for(coordinator, "parser", state)

    claim = await ada.claim(job)
    if "submit" in steps:
        job = await claim.submit()
    if "accept" in steps:
        await bob.accept(job)
    if "fail" in steps:
        await claim.fail("no luck")
    if "cancel" in steps:
        await bob.cancel_job(claim.job)

    assert (await end_of(task)).state == state


@both_stores
async def test_without_a_state_it_is_waited_until_the_job_is_closed(coordinator: Coordinator, ada: Agent, bob: Agent):
    job = await ada.add_job("parser")
    task = await waiting_for(coordinator, "parser")

    submitted = await (await ada.claim(job)).submit()
    await coordinator.wait_for_job("parser", "submitted")
    assert not task.done()
    await bob.accept(submitted)

    assert (await end_of(task)).state == "accepted"


@both_stores
async def test_who_waits_is_woken_by_a_lease_that_runs_out_with_nobody_else_there(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    await claimed(ada, lease_s=30)
    task = await waiting_for(coordinator, "parser", "ready")

    clock.advance(30)

    assert (await end_of(task)).state == "ready"


@both_stores
async def test_a_lapse_that_somebody_waited_for_is_recorded(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    await claimed(ada, "parser", lease_s=30)
    await claimed(ada, "other", lease_s=50)
    task = await waiting_for(coordinator, "parser")

    clock.advance(30)
    last = await waiting_for(coordinator, "other", "ready")
    clock.advance(20)
    await end_of(last)

    await ada.add_job("later")
    assert await story(coordinator, "parser") == ["job.added", "job.claimed", "job.lapsed"]
    task.cancel()


@pytest.mark.parametrize(
    ("wanted", "closes"),
    [("claimed", "accept"), ("ready", "cancel"), ("accepted", "cancel"), ("failed", "accept"), ("cancelled", "accept")],
)
@both_stores
async def test_who_waits_is_told_when_the_job_can_no_longer_get_there(
    wanted, closes: str, coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada)
    if wanted == "claimed":
        job = await claim.submit()
        task = await waiting_for(coordinator, "parser", "claimed")
    else:
        job = claim.job
        task = await waiting_for(coordinator, "parser", wanted)

    if closes == "cancel":
        await bob.cancel_job(job)
    else:
        await bob.accept(job if wanted == "claimed" else await claim.submit())

    assert (await end_of(task)).state == {"accept": "accepted", "cancel": "cancelled"}[closes]


@both_stores
async def test_who_waits_for_a_blocked_job_is_told_when_what_it_depends_on_comes_to_nothing(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    schema = await ada.add_job("schema")
    await ada.add_job("index", depends_on=[schema])
    await ada.add_job("search", depends_on=["index"])
    task = await waiting_for(coordinator, "search", "ready")

    await bob.cancel_job(schema)

    assert (await end_of(task)).state == "blocked"
    assert (await coordinator.wait_for_job("search")).state == "blocked"


@both_stores
async def test_a_job_that_others_do_not_depend_on_yet_cannot_become_blocked_by_itself(
    coordinator: Coordinator, ada: Agent
):
    await ada.add_job("parser")

    async with asyncio.timeout(PATIENCE_S):
        job = await coordinator.wait_for_job("parser", "blocked")

    assert job.state == "ready"


@both_stores
async def test_waiting_has_no_timeout_of_its_own_but_can_be_given_one(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await coordinator.wait_for_job("parser")
    with anyio.move_on_after(0.01) as scope:
        await coordinator.wait_for_job("parser")

    assert scope.cancelled_caught


@both_stores
async def test_many_can_wait_for_one_job(coordinator: Coordinator, ada: Agent):
    job = await ada.add_job("parser")
    tasks = [await waiting_for(coordinator, "parser", "claimed") for _ in range(20)]

    await ada.claim(job)

    assert {(await end_of(task)).state for task in tasks} == {"claimed"}


@both_stores
async def test_who_waits_is_told_when_the_coordinator_is_closed(coordinator: Coordinator, ada: Agent, records: Records):
    await ada.add_job("parser", depends_on=[await ada.add_job("schema", paths=["src"])])
    await ada.claim_next()
    job = await waiting_for(coordinator, "parser")
    work = await waiting_for_work(ada.claims(), records)

    await coordinator.close()

    with pytest.raises(Closed):
        await end_of(job)
    with pytest.raises(Closed):
        await end_of(work)


# For work


@both_stores
async def test_claims_come_one_after_another_while_there_is_work(ada: Agent):
    for id, priority in [("a", 1), ("b", 3), ("c", 2)]:
        await ada.add_job(id, priority=priority, review="none")

    ids: list[str] = []
    async for claim in ada.claims(until_settled=True, lease_s=30):
        assert claim.lease_s == 30
        ids.append(claim.job.id)
        await claim.submit()

    assert ids == ["b", "c", "a"]


@both_stores
async def test_claims_wait_for_work_that_comes_later(ada: Agent, bob: Agent, records: Records):
    task = await waiting_for_work(bob.claims(), records)

    await ada.add_job("parser")

    assert (await end_of(task)).job.id == "parser"


@both_stores
async def test_claims_wait_for_a_dependency_to_be_accepted(
    coordinator: Coordinator, ada: Agent, bob: Agent, records: Records
):
    claim = await claimed(ada, "schema", review="none")
    await ada.add_job("index", depends_on=["schema"])
    task = await waiting_for_work(bob.claims(until_settled=True), records)

    await claim.submit()

    assert (await end_of(task)).job.id == "index"


@both_stores
async def test_claims_wait_for_paths_to_be_free(ada: Agent, bob: Agent, records: Records):
    claim = await claimed(ada, "parser", paths=["src"])
    await ada.add_job("lexer", paths=["src/lexer"])
    task = await waiting_for_work(bob.claims(), records)

    await claim.submit()

    assert (await end_of(task)).job.id == "lexer"


@both_stores
async def test_claims_wait_for_a_lease_that_runs_out(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock, records: Records
):
    await claimed(ada, lease_s=30)
    task = await waiting_for_work(bob.claims(until_settled=True), records)

    clock.advance(30)

    claim = await end_of(task)
    assert (claim.job.id, claim.attempt) == ("parser", 2)


@both_stores
async def test_claims_until_settled_end_when_everything_is_closed(ada: Agent, bob: Agent, records: Records):
    claim = await claimed(ada)
    task = await waiting_for_work(bob.claims(until_settled=True), records)

    await bob.accept(await claim.submit())

    with pytest.raises(StopAsyncIteration):
        await end_of(task)


@both_stores
async def test_claims_until_settled_wait_for_a_review_which_may_bring_the_job_back(
    ada: Agent, bob: Agent, records: Records
):
    submitted = await (await claimed(ada)).submit()
    task = await waiting_for_work(bob.claims(until_settled=True), records)

    await bob.reject(submitted, "not good")

    assert (await end_of(task)).attempt == 2


@both_stores
async def test_claims_until_settled_do_not_wait_for_a_job_that_is_blocked_for_ever(ada: Agent, bob: Agent):
    schema = await ada.add_job("schema")
    await ada.add_job("index", depends_on=[schema])
    await ada.cancel_job(schema)

    found = [claim.job.id async for claim in bob.claims(until_settled=True)]

    assert found == []


@both_stores
async def test_claims_for_ever_do_not_end_when_everything_is_closed(ada: Agent, bob: Agent, records: Records):
    await ada.cancel_job(await ada.add_job("parser"))

    task = await waiting_for_work(bob.claims(), records)
    await ada.add_job("lexer")

    assert (await end_of(task)).job.id == "lexer"


@both_stores
async def test_claims_that_ended_can_be_asked_again(ada: Agent):
    claims = ada.claims(until_settled=True)
    assert await anext(claims, None) is None

    await ada.add_job("parser")

    assert (await anext(claims)).job.id == "parser"


@both_stores
async def test_five_workers_share_the_work_and_end_together(coordinator: Coordinator):
    planner = coordinator.agent("planner")
    for number in range(25):
        await planner.add_job(f"job-{number}", paths=[f"src/{number}"], review="none")
    done: list[str] = []

    async def worker(agent: Agent) -> None:
        async for claim in agent.claims(until_settled=True):
            async with claim.working():
                await claim.submit({"by": agent.name})
                done.append(claim.job.id)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(worker(coordinator.agent(f"worker-{number}")))

    assert sorted(done) == sorted(f"job-{number}" for number in range(25))
    assert {job.state for job in await coordinator.jobs()} == {"accepted"}


@both_stores
async def test_who_waits_is_not_woken_by_those_who_find_nothing(
    coordinator: Coordinator, ada: Agent, bob: Agent, records: Records, monkeypatch: pytest.MonkeyPatch
):
    tasks = [await waiting_for_work(ada.claims(), records), asyncio.create_task(anext(bob.claims()))]
    seekers = coordinator._open().seekers  # pyright: ignore[reportPrivateUsage]
    while len(seekers._seeking) < 2:  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0)
    searches: list[int] = []
    step = Search.step

    def note(search: Search, snapshot: Any, count: int) -> Any:
        searches.append(count)
        return step(search, snapshot, count)

    monkeypatch.setattr(Search, "step", note)

    for _ in range(50):
        await coordinator.agent("carol").claim_next()

    assert len(searches) <= 4
    assert len([record for record in records.of("claim_next") if record.actor != "carol"]) == 1
    for task in tasks:
        task.cancel()


# When the clock or the turn are not as expected


async def test_a_lapse_is_noticed_although_the_turn_was_taken_when_it_fell_due(
    database: Path, clock: ManualClock, polls: Polls
):
    async with Coordinator.open(database, clock=clock, busy_timeout_s=0.05) as opened:
        ada = opened.agent("ada")
        await claimed(ada, "first", lease_s=30)
        await claimed(ada, "second", lease_s=60)
        first = await waiting_for(opened, "first", "ready")
        second = await waiting_for(opened, "second", "ready")
        await polls.have_seen(opened)  # nothing but the lapse wakes them now

        with turn_held(database):
            clock.advance(30)
            assert (await end_of(first)).state == "ready"
        clock.advance(30)

        assert (await end_of(second)).state == "ready"
        await ada.add_job("later")
        assert (await story(opened, "first"))[-1] == "job.lapsed"


async def test_who_waits_while_the_turn_is_held_for_long_does_not_try_without_end(
    database: Path, clock: ManualClock, polls: Polls, looks: Looks, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("coordinator.waiting._PAUSE_S", 3_600)
    async with Coordinator.open(database, clock=clock, busy_timeout_s=0) as opened:
        ada = opened.agent("ada")
        await claimed(ada, lease_s=30)
        task = await waiting_for(opened, "parser", "accepted")
        await polls.have_seen(opened)
        before = looks.taken

        with turn_held(database):
            clock.advance(30)
            for _ in range(20):
                await polls.have_seen(opened)
            assert looks.taken == before + 1
        await ada.add_job("later")

        assert (await story(opened, "parser"))[-1] == "job.lapsed"
        task.cancel()


async def test_a_lapse_is_noticed_although_the_clock_was_set_back_while_somebody_waited(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    """The waiter has itself called when the lease would be over; by then it is not, and it must wait once more."""
    asked = threading.Event()
    tick = Writer.tick

    def tick_and_tell(self: Writer) -> None:
        tick(self)
        asked.set()

    monkeypatch.setattr(Writer, "tick", tick_and_tell)
    async with memory_coordinator(clock) as opened:
        ada = opened.agent("ada")
        await claimed(ada, lease_s=30)
        clock.jump_wall(5)
        task = await waiting_for(opened, "parser", "ready")
        clock.jump_wall(-5)

        clock.advance(25)
        assert await asyncio.to_thread(asked.wait, PATIENCE_S)
        await ada.claim_next()  # behind the call in the queue
        assert not task.done()
        clock.advance(5)

        assert (await end_of(task)).state == "ready"


@both_stores
async def test_a_lapse_is_noticed_although_time_passed_while_the_waiter_looked(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    see, looks = Session.see, 0

    async def see_slowly(self: Session, look: Any) -> Any:
        nonlocal looks
        found = await see(self, look)
        if looks == 0:
            clock.advance(30)
        looks += 1
        return found

    await claimed(ada, lease_s=30)
    monkeypatch.setattr(Session, "see", see_slowly)

    async with asyncio.timeout(PATIENCE_S):
        job = await coordinator.wait_for_job("parser", "ready")

    assert job.state == "ready"
    assert looks > 1


async def test_who_waits_for_work_waits_for_the_turn_too(database: Path, clock: ManualClock, records: Records):
    async with Coordinator.open(database, clock=clock, observe=records, busy_timeout_s=0.05) as opened:
        ada, bob = opened.agent("ada"), opened.agent("bob")
        await ada.add_job("parser")

        with turn_held(database):
            task = asyncio.create_task(anext(bob.claims()))
            await records.until("claim_next", "busy", count=2)

        assert (await end_of(task)).job.id == "parser"


async def test_who_waits_for_work_waits_for_the_turn_too_when_a_lease_runs_out(
    database: Path, clock: ManualClock, records: Records
):
    async with Coordinator.open(database, clock=clock, observe=records, busy_timeout_s=0.05) as opened:
        ada, bob = opened.agent("ada"), opened.agent("bob")
        claim = await claimed(ada, lease_s=30)
        task = await waiting_for_work(bob.claims(), records)

        with turn_held(database):
            clock.advance(30)
            with pytest.raises(Busy):
                await claim.note({})

        assert (await end_of(task)).attempt == 2


# When the writer fails


class Death(BaseException):
    pass


@both_stores
async def test_when_the_writer_dies_everybody_who_waits_is_told_and_nobody_hangs(
    coordinator: Coordinator, ada: Agent, records: Records, monkeypatch: pytest.MonkeyPatch
):
    await ada.add_job("parser", paths=["src"])
    await ada.claim_next()
    work = await waiting_for_work(ada.claims(), records)
    job = await waiting_for(coordinator, "parser", "accepted")

    def die(*arguments: object, **more: object) -> None:
        raise Death("the disk is on fire")

    monkeypatch.setattr(writing, "commit", die)
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)

    outcomes = await asyncio.gather(*[ada.add_job(f"job-{n}") for n in range(3)], return_exceptions=True)

    assert {type(outcome) for outcome in outcomes} <= {Unavailable, OutcomeUnknown}
    for task in (work, job):
        with pytest.raises(Unavailable, match="the disk is on fire"):
            await end_of(task)
    with pytest.raises(Unavailable):
        await ada.add_job("late")
    await coordinator.close()  # by then the thread has ended


async def test_who_waits_for_work_does_not_mind_that_others_cannot_write_for_a_while(
    database: Path, records: Records, monkeypatch: pytest.MonkeyPatch
):
    def broken(*arguments: object, **more: object) -> None:
        raise RuntimeError("the disk is on fire")

    async with Coordinator.open(database, observe=records, busy_timeout_s=0.05) as opened:
        ada = opened.agent("ada")
        work = await waiting_for_work(ada.claims(), records)

        with monkeypatch.context() as patch:
            patch.setattr(writing, "commit", broken)
            outcomes = await asyncio.gather(*[ada.add_job(f"job-{n}") for n in range(3)], return_exceptions=True)
        await ada.add_job("parser")

        assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
        assert (await end_of(work)).job.id == "parser"
        assert [job.id for job in await opened.jobs()] == ["parser"]
