"""What everybody may read: jobs, reservations, the log; now, and as it was."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from coordinator import Agent, Coordinator, InvalidInput, JobUnknown, Past
from coordinator.testing import ManualClock
from tests.public.support import claimed, entries, story

pytestmark = pytest.mark.both_stores


# Jobs


async def test_jobs_can_be_listed_by_state(coordinator: Coordinator, ada: Agent, bob: Agent):
    await claimed(ada, "held")
    await (await claimed(ada, "submitted")).submit()
    await bob.accept(await (await claimed(ada, "accepted")).submit())
    await ada.cancel_job(await ada.add_job("cancelled"))
    await (await claimed(ada, "failed", max_attempts=1)).fail("no luck")
    await ada.add_job("blocked", depends_on=["held"])
    await ada.add_job("ready")

    async def ids(*states) -> list[str]:
        return [job.id for job in await coordinator.jobs(*states)]

    assert await ids("claimed") == ["held"]
    assert await ids("cancelled", "failed") == ["cancelled", "failed"]
    assert await ids() == ["blocked", "ready", "held", "submitted", "accepted", "failed", "cancelled"]


async def test_ready_jobs_are_listed_in_the_order_in_which_they_would_be_claimed(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    for id, priority in [("second", 0), ("third", 0), ("first", 1)]:
        await ada.add_job(id, priority=priority)
        clock.advance(1)

    assert [job.id for job in await coordinator.jobs("ready")] == ["first", "second", "third"]
    assert [job.id for job in await coordinator.jobs("ready", limit=2)] == ["first", "second"]


async def test_a_lease_that_ran_out_reads_as_lapsed_although_nobody_has_written_since(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    await claimed(ada, paths=["src"], lease_s=10)
    before = len(await entries(coordinator))

    clock.advance(10)

    job = await coordinator.job("parser")
    assert (job.state, job.version, job.lease_until) == ("ready", 3, None)
    assert [job.id for job in await coordinator.jobs("ready")] == ["parser"]
    assert await coordinator.reservations() == []
    assert len(await entries(coordinator)) == before


async def test_what_reads_as_lapsed_can_be_claimed_at_the_version_that_was_read(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    await claimed(ada, lease_s=10)
    clock.advance(10)

    claim = await bob.claim(await coordinator.job("parser"))

    assert claim.attempt == 2
    assert await story(coordinator) == ["job.added", "job.claimed", "job.lapsed", "job.claimed"]


# Reservations


async def test_reservations_tell_who_holds_which_path_for_what_and_until_when(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, paths=["src", "Docs/A.md"])

    found = await coordinator.reservations()

    assert [reservation.path for reservation in found] == ["Docs/A.md", "src"]
    assert {(reservation.job, reservation.worker, reservation.attempt) for reservation in found} == {
        ("parser", "ada", 1)
    }
    assert {reservation.until for reservation in found} == {claim.lease_until}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a", ["src/a"]),
        ("SRC/A", ["src/a"]),
        ("src", ["src/a", "src/b/c"]),
        ("src/b/c/d.py", ["src/b/c"]),
        (".", ["docs", "src/a", "src/b/c"]),
        ("sr", []),
        ("src/a.py", []),
    ],
)
async def test_what_stands_in_the_way_of_a_path_is_itself_its_parents_and_its_children(
    path: str, expected: list[str], coordinator: Coordinator, ada: Agent
):
    await claimed(ada, paths=["src/a", "src/b/c", "docs"])

    found = await coordinator.reservations(path)

    assert [reservation.path for reservation in found] == expected


async def test_renewals_move_the_end_of_a_reservation(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    claim = await claimed(ada, paths=["src"])
    clock.advance(30)

    until = await claim.renew()

    (reservation,) = await coordinator.reservations()
    assert reservation.until == until


# The log


async def test_the_log_keeps_who_asked_for_what_under_which_receipt(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    start = datetime.fromtimestamp(clock.wall() / 1_000_000, UTC)
    await ada.add_job("parser", {"size": 1}, receipt="ada-1", context="run-7")
    clock.advance(1.5)
    await ada.claim(await coordinator.job("parser"))

    added, claim = await entries(coordinator)

    assert (added.position, added.at, added.stream, added.type) == (1, start, "job/parser", "job.added")
    assert (added.actor, added.receipt, added.context, added.command) == ("ada", "ada-1", "run-7", 1)
    assert added.fingerprint is not None
    assert len(added.fingerprint) == len(added.digest) == 64
    assert added.origin is not None
    assert added.body["payload"] == {"size": 1}
    assert (claim.position, claim.type, claim.context) == (2, "job.claimed", None)
    assert claim.at == start + timedelta(seconds=1.5)
    assert claim.receipt is not None
    assert claim.digest != added.digest


async def test_a_command_of_several_events_has_its_receipt_on_the_first(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, review="none")

    await claim.submit(receipt="ada-1")

    submitted, accepted = (await entries(coordinator))[-2:]
    assert (submitted.receipt, accepted.receipt) == ("ada-1", None)
    assert (submitted.command, accepted.command) == (submitted.position, submitted.position)


async def test_a_lapse_has_no_actor_and_no_receipt(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    clock.advance(60)
    await bob.add_job("other")

    (lapsed,) = await entries(coordinator, None, "job.lapsed")

    assert (lapsed.actor, lapsed.receipt, lapsed.fingerprint) == (None, None, None)
    assert lapsed.body["lease_until"] == round(claim.lease_until.timestamp() * 1_000_000)


async def test_the_log_can_be_read_from_a_position_on_and_of_one_job(coordinator: Coordinator, ada: Agent):
    for id in ["a", "b", "a2", "b2"]:
        await ada.add_job(id)
    await ada.claim("a", version=1)

    assert [entry.position async for entry in coordinator.log(after=3)] == [4, 5]
    assert [entry.type async for entry in coordinator.log(job="a")] == ["job.added", "job.claimed"]
    assert [entry.type async for entry in coordinator.log(job="a", after=1)] == ["job.claimed"]
    assert [entry async for entry in coordinator.log(job="ghost")] == []


async def test_a_log_of_many_pages_is_read_to_its_end_and_without_gaps(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)
    await asyncio.gather(*[claim.note({"number": number}) for number in range(1_001)])

    found = [entry.position async for entry in coordinator.log()]

    assert found == list(range(1, 1_004))
    assert [entry.position async for entry in coordinator.log(job="parser")] == found


# The past


async def test_at_a_position_everything_is_as_the_event_there_left_it(coordinator: Coordinator, ada: Agent, bob: Agent):
    claim = await claimed(ada, payload={"size": 1}, paths=["src"])
    submitted = await claim.submit({"lines": 7})
    await bob.accept(submitted)
    await ada.add_job("later")

    async def states(position: int) -> list[tuple[str, str]]:
        return [(job.id, job.state) for job in await coordinator.at(position).jobs()]

    assert await states(0) == []
    assert await states(1) == [("parser", "ready")]
    assert await states(2) == [("parser", "claimed")]
    assert await states(3) == [("parser", "submitted")]
    assert await states(5) == [("later", "ready"), ("parser", "accepted")]
    past = coordinator.at(2)
    job = await past.job("parser")
    assert (job.payload, job.result, job.worker, job.lease_until) == ({"size": 1}, None, "ada", claim.lease_until)
    assert [reservation.path for reservation in await past.reservations("src/a")] == ["src"]
    assert [entry.position async for entry in past.log()] == [1, 2]
    assert [entry.position async for entry in coordinator.at(3).log(job="parser", after=1)] == [2, 3]
    assert (await coordinator.at(3).job("parser")).result == {"lines": 7}


async def test_at_a_time_the_leases_that_had_run_out_by_then_read_as_lapsed(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada, lease_s=10)
    granted = claim.job.since
    clock.advance(60)
    await ada.add_job("later")

    async def state(moment: datetime) -> str:
        return (await coordinator.at(moment).job("parser")).state

    assert await state(granted) == "claimed"
    assert await state(granted + timedelta(seconds=9.9)) == "claimed"
    assert await state(granted + timedelta(seconds=10)) == "ready"
    assert await state(granted + timedelta(seconds=60)) == "ready"
    with pytest.raises(JobUnknown):
        await state(granted - timedelta(seconds=1))
    with pytest.raises(InvalidInput, match="future"):
        await state(granted + timedelta(seconds=61))


async def test_a_time_may_be_given_in_any_time_zone(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    added = await ada.add_job("parser")
    since = (await coordinator.job("parser")).since
    clock.advance(10)
    await ada.claim(added)

    past = coordinator.at(since.astimezone())

    assert isinstance(past, Past)
    assert (await past.job("parser")).state == "ready"


async def test_a_moment_that_was_looked_at_stays_as_it_is(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    await ada.add_job("parser")
    past = coordinator.at(1)
    before = await past.jobs()

    await ada.add_job("later")

    assert await past.jobs() == before


async def test_a_position_that_the_log_has_not_reached_is_no_past(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    with pytest.raises(InvalidInput, match="the log ends at position 1") as refused:
        await coordinator.at(2).jobs()

    assert refused.value.field == "position_or_time"
