"""A claim under `working()` is renewed in time, whatever the body and the store are doing, and lost in time if not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator import Agent, Busy, ClaimEnded, Coordinator, LeaseLapsed, TokenUnknown
from coordinator.answers import LeaseRenewed
from coordinator.refusals import ClaimLost
from coordinator.renewals import Renewal
from coordinator.request import Outcome, Request
from coordinator.testing import ManualClock
from coordinator.timers import Timer, Timers
from coordinator.writer import Writer
from tests.public.support import (
    PATIENCE_S,
    Records,
    at_work,
    claimed,
    entries,
    forever,
    story,
    timers_are_done,
    turn_held,
)

SECOND = 1_000_000


async def renewals(coordinator: Coordinator) -> list[timedelta]:
    """When the job was renewed, counted from when it was claimed."""
    claim, *renewed = await entries(coordinator, "parser", "job.claimed", "job.renewed")
    return [entry.at - claim.at for entry in renewed]


# When


@pytest.mark.both_stores
async def test_a_claim_is_renewed_when_about_a_third_of_its_lease_is_gone(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock, records: Records
):
    claim = await claimed(ada, lease_s=60)

    async with claim.working():
        clock.advance(17.9)
        await timers_are_done(coordinator)
        await bob.add_job("other")  # behind a renewal, if there is one
        assert await renewals(coordinator) == []

        clock.advance(4.2)
        await records.until("renew_claim", "ok")
        await claim.submit()

    assert await renewals(coordinator) == [timedelta(seconds=22.1)]


@pytest.mark.both_stores
async def test_each_renewal_is_followed_by_the_next_so_that_the_lease_never_runs_out(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, records: Records
):
    claim = await claimed(ada, lease_s=60)

    async with claim.working():
        for count in range(1, 11):
            clock.advance(22)
            await records.until("renew_claim", "ok", count=count)
            assert claim.lease_until - claim.job.since == timedelta(seconds=22 * count + 60)
        await claim.submit()

    assert await renewals(coordinator) == [timedelta(seconds=22 * count) for count in range(1, 11)]


@pytest.mark.both_stores
async def test_renewals_end_with_the_block(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    claim = await claimed(ada, lease_s=60)
    await at_work(claim, claim.submit)

    clock.advance(40)
    await timers_are_done(coordinator)

    await ada.add_job("other")  # behind a renewal, if there is one
    assert await story(coordinator, "parser") == ["job.added", "job.claimed", "job.submitted"]


@pytest.mark.both_stores
async def test_a_lease_that_the_worker_made_shorter_is_renewed_by_its_new_length(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, records: Records
):
    claim = await claimed(ada, lease_s=600)

    async with claim.working():
        await claim.renew(6)
        for count in range(2, 5):
            clock.advance(2.5)
            await records.until("renew_claim", "ok", count=count)
        await claim.submit()

    assert claim.lease_s == 6


@pytest.mark.both_stores
async def test_a_lease_that_the_worker_made_longer_is_lost_only_when_it_is_over(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, records: Records
):
    claim = await claimed(ada, lease_s=6)

    async with claim.working():
        await claim.renew(600)
        clock.advance(100)
        await timers_are_done(coordinator)
        await claim.submit()


@pytest.mark.both_stores
async def test_a_claim_that_was_resumed_is_renewed_by_what_is_left_of_its_lease(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, records: Records
):
    first = await claimed(ada, lease_s=60)
    clock.advance(59)

    resumed = await ada.resume(first.token.reveal())

    async with resumed.working():
        await records.until("renew_claim", "ok")
        await resumed.submit()
    assert await renewals(coordinator) == [timedelta(seconds=59)]


# While the body blocks the event loop


@pytest.mark.parametrize("place", ["memory", "sqlite"])
async def test_renewals_go_on_while_the_body_blocks_the_event_loop(place: str, database: Path):
    async with Coordinator.open(database if place == "sqlite" else "memory:") as coordinator:
        claim = await claimed(coordinator.agent("ada"), lease_s=1)

        async with claim.working():
            time.sleep(1.7)  # noqa: ASYNC251  # this is the work
            await claim.submit()

        assert len(await renewals(coordinator)) >= 2
        assert "job.lapsed" not in await story(coordinator)


# While the store is busy


@pytest.mark.parametrize("coordinator", ["sqlite"], indirect=True)
async def test_when_the_lease_passes_while_the_store_is_busy_the_block_is_cancelled(
    coordinator: Coordinator, ada: Agent, database: Path, clock: ManualClock
):
    claim = await claimed(ada, lease_s=60)

    async def lose() -> None:
        await asyncio.sleep(0)  # the block has begun
        with turn_held(database):
            clock.advance(60)
            with pytest.raises(LeaseLapsed) as lost:
                await working
            assert lost.value.lease_until == claim.lease_until

    working = asyncio.ensure_future(at_work(claim, forever))
    async with asyncio.timeout(PATIENCE_S):
        await lose()

    assert (await coordinator.wait_for_job("parser", "ready")).used == 1


@pytest.mark.parametrize("coordinator", ["sqlite"], indirect=True)
async def test_a_renewal_that_had_to_wait_for_its_turn_still_keeps_the_claim(
    coordinator: Coordinator, ada: Agent, database: Path, clock: ManualClock, records: Records
):
    claim = await claimed(ada, lease_s=60)

    async with claim.working():
        with turn_held(database):
            clock.advance(59)
        await records.until("renew_claim", "ok")
        clock.advance(20)
        await claim.submit()

    assert "job.lapsed" not in await story(coordinator)


@pytest.mark.parametrize("busy_timeout_s", [0.01])
async def test_a_renewal_that_was_answered_with_busy_is_tried_again(
    busy_timeout_s: float, database: Path, clock: ManualClock, records: Records
):
    async with Coordinator.open(database, clock=clock, observe=records, busy_timeout_s=busy_timeout_s) as coordinator:
        claim = await claimed(coordinator.agent("ada"), lease_s=60)

        async with claim.working():
            with turn_held(database):
                clock.advance(25)
                await records.until("renew_claim", "busy")
            clock.advance(4)
            await records.until("renew_claim", "ok")
            await claim.submit()

        assert await renewals(coordinator) == [timedelta(seconds=29)]


# By itself: what it asks for when, and what it makes of each answer


@dataclass
class Bench:
    """A renewal between a writer and timers that do nothing until told to."""

    clock: ManualClock
    posted: list[Callable[[Outcome], None]] = field(default_factory=list)
    due: list[tuple[int, Callable[[], None], Timer]] = field(default_factory=list)
    renewed: list[tuple[int, int, int]] = field(default_factory=list)
    lost: list[ClaimLost] = field(default_factory=list)

    def start(self) -> Renewal:
        return Renewal(
            cast("Writer", self),
            cast("Timers", self),
            self.clock,
            request=lambda: cast("Request", object()),
            lease_us=60 * SECOND,
            sent_at=self.clock.boot(),
            renewed=lambda *told: self.renewed.append(told),
            lost=self.lost.append,
            lapsed=lambda: LeaseLapsed("job/parser", attempt=1, lease_until=0),
        )

    def post(self, request: Request, done: Callable[[Outcome], None]) -> None:
        self.posted.append(done)

    def at(self, due: int, function: Callable[[], None]) -> Timer:
        timer = Timer(function)
        self.due.append((due, function, timer))
        return timer

    def waiting(self) -> list[float]:
        """Seconds until each timer that is set."""
        return sorted((due - self.clock.boot()) / SECOND for due, _, timer in self.due if not timer.cancelled)

    def pass_time(self, seconds: float) -> None:
        """Move the clock, and call what is due."""
        self.clock.advance(seconds)
        for entry in sorted(self.due, key=lambda entry: entry[0]):
            due, function, timer = entry
            if due <= self.clock.boot() and not timer.cancelled:
                self.due.remove(entry)
                function()


@pytest.fixture
def bench(clock: ManualClock) -> Bench:
    return Bench(clock)


def test_the_lease_counts_from_when_a_renewal_was_sent_not_from_when_it_was_answered(bench: Bench):
    bench.start()
    bench.pass_time(22)
    sent_at = bench.clock.boot()
    bench.pass_time(30)

    bench.posted[0](Outcome(LeaseRenewed(60 * SECOND, 7)))

    assert bench.renewed == [(60 * SECOND, 7, sent_at)]
    renew_in, lost_in = bench.waiting()
    assert -12 <= renew_in <= -8
    assert lost_in == 30


def test_a_claim_is_lost_when_its_lease_has_passed_since_the_last_renewal_was_sent(bench: Bench):
    bench.start()
    bench.pass_time(22)

    bench.pass_time(37)
    assert bench.lost == []
    bench.pass_time(1)

    (lost,) = bench.lost
    assert type(lost) is LeaseLapsed
    assert bench.waiting() == []


def test_renewals_are_spread_by_a_tenth_so_that_workers_do_not_all_come_at_once(clock: ManualClock):
    first: set[float] = set()
    for _ in range(200):
        bench = Bench(clock)
        bench.start()
        first.add(bench.waiting()[0])

    assert min(first) >= 18
    assert max(first) <= 22
    assert len(first) > 100


@pytest.mark.parametrize("error", [Busy("not now"), RuntimeError("unexpected")], ids=["busy", "unexpected"])
def test_a_store_that_does_not_answer_is_asked_again_soon(error: Exception, bench: Bench):
    bench.start()
    bench.pass_time(22)

    bench.posted[0](Outcome(error=error))

    assert bench.waiting() == [3, 38]
    bench.pass_time(3)
    assert len(bench.posted) == 2
    assert bench.lost == []


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ClaimEnded("job/parser", attempt=1, how="revoked"), ClaimEnded),
        (TokenUnknown("job/parser"), LeaseLapsed),
    ],
    ids=["claim lost", "another refusal"],
)
def test_a_refused_renewal_means_that_the_claim_is_lost(refusal: Exception, told: type[ClaimLost], bench: Bench):
    bench.start()
    bench.pass_time(22)

    bench.posted[0](Outcome(error=refusal))

    assert [type(lost) for lost in bench.lost] == [told]
    assert bench.waiting() == []


def test_the_loss_is_told_once(bench: Bench):
    bench.start()
    bench.pass_time(22)
    bench.pass_time(38)

    bench.posted[0](Outcome(error=ClaimEnded("job/parser", attempt=1, how="revoked")))

    assert len(bench.lost) == 1


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(LeaseRenewed(60 * SECOND, 7)),
        Outcome(error=ClaimEnded("job/parser", attempt=1, how="submitted")),
        Outcome(error=Busy("not now")),
    ],
    ids=["renewed", "refused", "busy"],
)
def test_after_it_was_stopped_nothing_is_renewed_and_nothing_is_told(outcome: Any, bench: Bench):
    renewal = bench.start()
    bench.pass_time(22)

    renewal.stop()
    bench.posted[0](outcome)

    assert bench.waiting() == []
    assert (bench.renewed, bench.lost) == ([], [])
