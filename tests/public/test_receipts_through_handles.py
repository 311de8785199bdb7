"""Asking twice is harmless: what a receipt does for each method that writes."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from coordinator import Agent, Claim, Coordinator, JobExists, JobRef, LeaseLapsed, ReceiptConflict
from coordinator.testing import ManualClock
from tests.public.support import Records, claimed, entries, refusals

pytestmark = pytest.mark.both_stores


# A receipt that is repeated

REPEATABLE = {
    "add_job": lambda ada, job, claim: ada.add_job("new", {"a": 1}, paths=["b", "a"], receipt="r"),
    "revise_job": lambda ada, job, claim: ada.revise_job(job, priority=3, receipt="r"),
    "cancel_job": lambda ada, job, claim: ada.cancel_job(job, "why", receipt="r"),
    "revoke": lambda ada, job, claim: ada.revoke(claim.job, "why", receipt="r"),
    "renew": lambda ada, job, claim: claim.renew(receipt="r"),
    "note": lambda ada, job, claim: claim.note({"a": 1}, receipt="r"),
    "reserve": lambda ada, job, claim: claim.reserve(["docs"], receipt="r"),
    "submit": lambda ada, job, claim: claim.submit({"a": 1}, receipt="r"),
    "fail": lambda ada, job, claim: claim.fail("why", receipt="r"),
    "release": lambda ada, job, claim: claim.release("why", receipt="r"),
    "add_job of a claim": lambda ada, job, claim: claim.add_job("new", receipt="r"),
}


@pytest.mark.parametrize("ask", REPEATABLE.values(), ids=REPEATABLE)
async def test_the_same_request_is_applied_once_and_answered_the_same(
    ask, coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada, paths=["src"])
    job = await ada.add_job("other")

    first = await ask(ada, job, claim)
    after = len(await entries(coordinator))
    clock.advance(1)
    again = await ask(coordinator.agent("ada"), job, claim)

    assert again == first
    assert len(await entries(coordinator)) == after


async def test_a_review_that_is_repeated_is_applied_once(coordinator: Coordinator, ada: Agent, bob: Agent):
    submitted = await (await claimed(ada)).submit()

    rejected = [await bob.reject(submitted, "why", receipt="b-1") for _ in range(2)]
    again = await (await ada.claim(rejected[0])).submit()
    accepted = [await bob.accept(again, receipt="b-2") for _ in range(2)]
    reopened = [await bob.reopen_job(accepted[0], receipt="b-3") for _ in range(2)]

    assert rejected[0] == rejected[1]
    assert accepted[0] == accepted[1]
    assert reopened[0] == reopened[1]
    assert [entry.type for entry in await entries(coordinator, "parser")][-3:] == [
        "job.submitted",
        "job.accepted",
        "job.reopened",
    ]


async def test_a_claim_that_is_repeated_is_the_same_claim_with_the_same_token(coordinator: Coordinator, ada: Agent):
    job = await ada.add_job("parser", {"size": 1}, paths=["src"])

    first = await ada.claim(job, lease_s=30, receipt="ada-1")
    again = await coordinator.agent("ada").claim(job, lease_s=30, receipt="ada-1")

    assert again.token == first.token
    assert again.token.reveal() == first.token.reveal()
    assert (again.job, again.attempt, again.fence) == (first.job, first.attempt, first.fence)
    assert (again.lease_until, again.paths) == (first.lease_until, first.paths)
    assert len(await entries(coordinator, None, "job.claimed")) == 1


async def test_the_next_claim_that_is_repeated_is_the_same_claim(coordinator: Coordinator, ada: Agent):
    for id in ["a", "b"]:
        await ada.add_job(id)

    first = await ada.claim_next(receipt="ada-1")
    again = await ada.claim_next(receipt="ada-1")

    assert first is not None
    assert again is not None
    assert (again.job.id, again.token) == (first.job.id, first.token)
    assert [job.id for job in await coordinator.jobs("ready")] == ["b"]


async def test_an_answer_is_the_old_one_also_when_the_world_has_moved_on(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    job = await ada.add_job("parser", receipt="ada-1")
    claim = await ada.claim(job, receipt="ada-2")
    await bob.revoke(claim.job, "why")
    await bob.claim(await coordinator.job("parser"))

    assert await ada.add_job("parser", receipt="ada-1") == job
    assert (await ada.claim(job, receipt="ada-2")).token == claim.token
    assert await refusals(coordinator) == []


async def test_a_claim_that_is_repeated_after_its_lease_ran_out_cannot_be_written_with(ada: Agent, clock: ManualClock):
    job = await ada.add_job("parser")
    await ada.claim(job, lease_s=10, receipt="ada-1")
    clock.advance(10)

    late = await ada.claim(job, lease_s=10, receipt="ada-1")

    with pytest.raises(LeaseLapsed):
        await late.submit()


async def test_a_claim_that_is_repeated_late_is_renewed_at_once(ada: Agent, clock: ManualClock, records: Records):
    """Its lease counts from when it was granted, not from when it was asked for again."""
    job = await ada.add_job("parser")
    first = await ada.claim(job, lease_s=10, receipt="ada-1")
    clock.advance(9)

    late = await ada.claim(job, lease_s=10, receipt="ada-1")

    assert late.lease_until == first.lease_until
    async with late.working():
        await records.until("renew_claim", "ok")
        assert late.lease_until == first.lease_until + timedelta(seconds=9)
        await late.submit()


async def test_equal_requests_are_equal_however_they_are_written(coordinator: Coordinator, ada: Agent):
    a, b = await ada.add_job("a"), await ada.add_job("b")

    await ada.add_job("c", {"x": 1, "y": [1, 2]}, paths=["src", "docs/"[:-1]], depends_on=[a, "b"], receipt="ada-1")
    await ada.add_job(
        "c",
        {"y": (1, 2), "x": 1},
        paths=("docs", "src", "src/x"),
        depends_on=[a, b],
        priority=0,
        max_attempts=5,
        review="other",
        receipt="ada-1",
    )
    await ada.claim(a, lease_s=60, receipt="ada-2")
    await ada.claim(a, lease_s=60.0, receipt="ada-2")
    await ada.claim("a", version=1, receipt="ada-2")

    assert await refusals(coordinator) == []


async def test_a_claim_that_is_repeated_knows_that_it_was_renewed_and_widened(ada: Agent, clock: ManualClock):
    job = await ada.add_job("parser", paths=["src"])
    first = await ada.claim(job, lease_s=10, receipt="ada-1")
    for _ in range(3):
        clock.advance(9)
        await first.renew()
    await first.reserve(["docs"])

    late = await ada.claim(job, lease_s=10, receipt="ada-1")
    recalled = await ada.recall("ada-1")

    assert isinstance(recalled, Claim)
    assert late.lease_until == recalled.lease_until == first.lease_until
    assert late.paths == recalled.paths == ("docs", "src")
    async with late.working():
        await late.submit()


# A receipt that is used again for something else


async def test_the_same_receipt_for_another_request_is_refused_naming_the_first(coordinator: Coordinator, ada: Agent):
    await ada.add_job("a")
    await ada.add_job("b", receipt="ada-1")

    with pytest.raises(ReceiptConflict) as refused:
        await ada.add_job("c", receipt="ada-1")

    assert (refused.value.first, refused.value.receipt) == (2, "ada-1")
    assert "recall the receipt" in str(refused.value)
    assert (await entries(coordinator))[-1].body["code"] == "receipt_conflict"


@pytest.mark.parametrize(
    "other",
    [
        lambda ada, job, claim: claim.note({"a": 2}, receipt="r"),
        lambda ada, job, claim: claim.submit({"a": 1}, receipt="r"),
        lambda ada, job, claim: ada.claim(job, receipt="r"),
        lambda ada, job, claim: ada.claim_next(receipt="r"),
    ],
    ids=["another note", "submit", "claim", "claim_next"],
)
async def test_a_conflict_changes_nothing(other, coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)
    job = await ada.add_job("other")
    await claim.note({"a": 1}, receipt="r")

    with pytest.raises(ReceiptConflict):
        await other(ada, job, claim)

    assert [entry.type for entry in await entries(coordinator)][-2:] == ["job.noted", "command.refused"]


async def test_a_refusal_does_not_use_the_receipt_up(coordinator: Coordinator, ada: Agent):
    with pytest.raises(JobExists):
        await ada.add_job((await ada.add_job("a")).id, receipt="ada-1")

    added = await ada.add_job("b", receipt="ada-1")

    assert added.id == "b"


async def test_finding_nothing_does_not_use_the_receipt_up(ada: Agent):
    assert await ada.claim_next(receipt="ada-1") is None
    await ada.add_job("a")

    claim = await ada.claim_next(receipt="ada-1")

    assert claim is not None


async def test_another_actors_equal_receipt_is_another_receipt(ada: Agent, bob: Agent):
    await ada.add_job("a", receipt="r")

    added = await bob.add_job("b", receipt="r")

    assert added.id == "b"
    assert await bob.recall("r") == added


async def test_context_is_no_part_of_what_was_asked(coordinator: Coordinator, ada: Agent):
    await ada.add_job("a", receipt="r", context="first run")

    await ada.add_job("a", receipt="r", context="second run")

    assert [entry.context for entry in await entries(coordinator)] == ["first run"]


# Recalling


async def test_a_receipt_that_was_never_used_is_recalled_as_none(ada: Agent, bob: Agent):
    await bob.add_job("a", receipt="r")

    assert await ada.recall("r") is None
    assert await ada.recall("other") is None


async def test_recalling_gives_the_original_answer(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    job = await ada.add_job("parser", paths=["src"], receipt="add")
    claim = await ada.claim(job, lease_s=30, receipt="claim")
    until = await claim.renew(receipt="renew")
    position = await claim.note({"a": 1}, receipt="note")
    paths = await claim.reserve(["docs"], receipt="reserve")
    left = await claim.submit(receipt="submit")

    recalled = {
        receipt: await coordinator.agent("ada").recall(receipt)
        for receipt in ["add", "claim", "renew", "note", "reserve", "submit"]
    }

    assert recalled["add"] == job
    assert recalled["renew"] == until
    assert isinstance(until, datetime)
    assert recalled["note"] == position
    assert recalled["reserve"] == paths == ("docs", "src")
    assert recalled["submit"] == left
    assert isinstance(left, JobRef)
    again = recalled["claim"]
    assert isinstance(again, Claim)
    assert again.token == claim.token
    assert (again.job, again.attempt, again.fence, again.lease_s) == (claim.job, 1, claim.fence, 30)
    assert len(await entries(coordinator)) == 6


async def test_a_claim_that_was_recalled_can_be_worked_on(ada: Agent, clock: ManualClock):
    await ada.claim(await ada.add_job("parser"), receipt="r")
    clock.advance(30)

    claim = await ada.recall("r")

    assert isinstance(claim, Claim)
    async with claim.working():
        await claim.submit()


async def test_a_refused_receipt_is_recalled_as_none(ada: Agent):
    await ada.add_job("a")
    with pytest.raises(JobExists):
        await ada.add_job("a", receipt="r")

    assert await ada.recall("r") is None
