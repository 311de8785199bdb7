"""What the holder of a claim can do, and who else cannot; how a claim is found, resumed, and ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from coordinator import (
    Agent,
    AlreadyClaimed,
    AlreadySubmitted,
    Claim,
    ClaimEnded,
    Coordinator,
    JobClosed,
    JobUnknown,
    LeaseLapsed,
    PathClash,
    Token,
    TokenSuperseded,
    TokenUnknown,
    VersionChanged,
)
from coordinator.testing import ManualClock
from tests.public.support import claimed, entries, refusals, story

pytestmark = pytest.mark.both_stores


# Claiming


async def test_a_claim_tells_all_that_its_holder_needs(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    job = await ada.add_job("parser", {"size": 1}, paths=["src", "docs/a.md"])

    claim = await ada.claim(job, lease_s=30)

    assert claim.job == await coordinator.job("parser")
    assert (claim.job.state, claim.job.worker, claim.job.payload) == ("claimed", "ada", {"size": 1})
    assert (claim.attempt, claim.job.attempt, claim.job.used) == (1, 1, 1)
    assert claim.fence == (await entries(coordinator, "parser", "job.claimed"))[0].position
    assert claim.lease_s == 30
    assert claim.lease_until.timestamp() * 1_000_000 == clock.wall() + 30_000_000
    assert claim.lease_until == claim.job.lease_until
    assert claim.paths == ("docs/a.md", "src")
    assert isinstance(claim.token, Token)


async def test_a_claim_lasts_a_minute_unless_told_otherwise(ada: Agent):
    job = await ada.add_job("parser")

    claim = await ada.claim(job)

    assert claim.lease_s == 60


async def test_a_job_has_one_holder(coordinator: Coordinator, ada: Agent, bob: Agent):
    job = await ada.add_job("parser")
    await ada.claim(job)

    with pytest.raises(VersionChanged):
        await bob.claim(job)
    with pytest.raises(AlreadyClaimed):
        await bob.claim(await coordinator.job("parser"))


async def test_each_claim_of_a_job_has_a_new_attempt_a_higher_fence_and_another_token(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    first = await claimed(ada)

    second = await bob.claim(await first.fail("no luck"))

    assert (first.attempt, second.attempt) == (1, 2)
    assert second.fence > first.fence
    assert second.token != first.token
    assert second.job.reason == "no luck"


async def test_a_job_that_waits_for_review_or_is_closed_cannot_be_claimed(ada: Agent, bob: Agent):
    submitted = await (await claimed(ada)).submit()

    with pytest.raises(AlreadySubmitted):
        await bob.claim(submitted)
    with pytest.raises(JobClosed):
        await ada.claim(await bob.accept(submitted))


async def test_a_claim_reserves_all_paths_or_none(coordinator: Coordinator, ada: Agent, bob: Agent):
    await claimed(ada, "parser", paths=["src/parser"])
    docs = await bob.add_job("docs", paths=["docs", "src"])

    with pytest.raises(PathClash) as refused:
        await bob.claim(docs)

    (clash,) = refused.value.clashes
    assert (clash.path, clash.held, clash.holder, clash.job) == ("src", "src/parser", "ada", "parser")
    assert [reservation.path for reservation in await coordinator.reservations()] == ["src/parser"]


# Claiming the next


async def test_the_next_job_is_that_of_the_highest_priority_and_then_the_oldest(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    for id, priority in [("late", 0), ("urgent", 5), ("low", -1), ("later", 0)]:
        await ada.add_job(id, priority=priority)
        clock.advance(1)

    claims = [await ada.claim_next() for _ in range(5)]

    assert [claim and claim.job.id for claim in claims] == ["urgent", "late", "later", "low", None]


async def test_the_next_job_is_one_whose_paths_are_free(ada: Agent, bob: Agent):
    await claimed(ada, "parser", paths=["src"])
    await ada.add_job("lexer", paths=["src/lexer"], priority=9)
    await ada.add_job("docs", paths=["docs"])

    claim = await bob.claim_next(lease_s=5)

    assert claim is not None
    assert (claim.job.id, claim.lease_s) == ("docs", 5)


async def test_the_next_job_is_found_also_behind_hundreds_that_clash(coordinator: Coordinator, ada: Agent, bob: Agent):
    await claimed(ada, "parser", paths=["src"])
    await asyncio.gather(*[ada.add_job(f"clash-{n}", paths=[f"src/{n}"], priority=1) for n in range(260)])
    await ada.add_job("docs", paths=["docs"])

    claim = await bob.claim_next(receipt="bob-1")
    again = await bob.claim_next(receipt="bob-1")
    nothing = await bob.claim_next()

    assert claim is not None
    assert again is not None
    assert claim.job.id == "docs"
    assert again.token == claim.token
    assert nothing is None


async def test_when_there_is_no_job_nothing_is_claimed_and_nothing_is_written(coordinator: Coordinator, ada: Agent):
    assert await ada.claim_next(receipt="ada-1") is None

    assert await entries(coordinator) == []


# Renewing


async def test_renewing_lets_the_lease_count_anew(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    claim = await claimed(ada, lease_s=60)
    until = claim.lease_until

    clock.advance(59)
    renewed = await claim.renew()

    assert renewed == claim.lease_until == until + timedelta(seconds=59)
    assert (await coordinator.job("parser")).lease_until == renewed
    clock.advance(59)
    await claim.note({"still": "there"})


async def test_a_renewal_may_change_the_length_of_the_lease(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    claim = await claimed(ada, lease_s=60)

    await claim.renew(5)

    assert claim.lease_s == 5
    assert (await coordinator.job("parser")).lease_until == claim.lease_until
    clock.advance(4)
    assert (await claim.renew()) == claim.lease_until
    assert claim.lease_s == 5
    clock.advance(5)
    with pytest.raises(LeaseLapsed):
        await claim.renew()


# Notes


async def test_readers_see_the_last_note(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    first = await claim.note({"progress": 0.5})
    second = await claim.note({"progress": 0.9})

    job = await coordinator.job("parser")
    assert job.note == {"progress": 0.9}
    assert job.version == claim.job.version
    assert [entry.position for entry in await entries(coordinator, None, "job.noted")] == [first, second]


# Reserving more


async def test_more_paths_can_be_reserved_and_a_folder_absorbs_what_lies_in_it(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, paths=["src/a.py"])

    reserved = await claim.reserve(["src", "docs"])

    assert reserved == claim.paths == ("docs", "src")
    assert [reservation.path for reservation in await coordinator.reservations()] == ["docs", "src"]


async def test_of_more_paths_all_are_reserved_or_none(coordinator: Coordinator, ada: Agent, bob: Agent):
    claim = await claimed(ada, "parser", paths=["src"])
    await claimed(bob, "docs", paths=["docs/a.md"])

    with pytest.raises(PathClash):
        await claim.reserve(["lib", "docs"])

    assert claim.paths == ("src",)
    assert [reservation.path for reservation in await coordinator.reservations()] == ["docs/a.md", "src"]


async def test_reserving_what_is_held_already_writes_nothing(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, paths=["src"])
    before = len(await entries(coordinator))

    reserved = await claim.reserve(["SRC", "src/a.py"])

    assert reserved == claim.paths == ("src",)
    assert len(await entries(coordinator)) == before


async def test_a_reservation_whose_answer_was_lost_is_known_when_it_is_asked_for_again(ada: Agent):
    claim = await claimed(ada, paths=["src"])
    other = await ada.resume(claim.token)
    await other.reserve(["docs"], receipt="more")

    reserved = await claim.reserve(["docs"], receipt="more")

    assert reserved == claim.paths == ("docs", "src")


# Ending


async def test_submitting_ends_the_claim_and_frees_its_paths(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, paths=["src"])

    left = await claim.submit({"lines": 7})

    job = await coordinator.job("parser")
    assert (left.id, left.state, left.version) == ("parser", "submitted", job.version)
    assert (job.result, job.worker, job.lease_until) == ({"lines": 7}, "ada", None)
    assert await coordinator.reservations() == []


async def test_failing_uses_the_attempt_up(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, max_attempts=2, paths=["src"])

    left = await claim.fail("out of\nideas")

    job = await coordinator.job("parser")
    assert (left.state, job.used, job.reason) == ("ready", 1, "out of\nideas")
    assert await coordinator.reservations() == []


async def test_releasing_does_not_use_the_attempt_up(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, max_attempts=1, paths=["src"])

    left = await claim.release("lunch")

    job = await coordinator.job("parser")
    assert (left.state, job.used, job.attempt, job.reason) == ("ready", 0, 1, "lunch")
    assert await coordinator.reservations() == []


WRITES = {
    "renew": lambda claim: claim.renew(),
    "note": lambda claim: claim.note({}),
    "reserve": lambda claim: claim.reserve(["docs"]),
    "submit": lambda claim: claim.submit(),
    "fail": lambda claim: claim.fail("no luck"),
    "release": lambda claim: claim.release(),
    "add_job": lambda claim: claim.add_job("next"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_claim_that_has_ended_writes_nothing(write, coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)
    await claim.release()
    before = await story(coordinator)

    with pytest.raises(ClaimEnded) as refused:
        await write(claim)

    assert (refused.value.attempt, refused.value.how) == (1, "released")
    assert await story(coordinator) == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_claim_whose_lease_ran_out_writes_nothing(
    write, coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    clock.advance(60)

    with pytest.raises(LeaseLapsed) as refused:
        await write(claim)

    assert refused.value.lease_until == claim.lease_until
    assert await story(coordinator) == ["job.added", "job.claimed", "job.lapsed"]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_worker_that_was_replaced_writes_nothing_even_though_it_knows_the_version(
    write, coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    late = await claimed(ada)
    clock.advance(60)
    await bob.claim(await coordinator.job("parser"))
    before = await story(coordinator)

    with pytest.raises(TokenSuperseded) as refused:
        await write(late)

    assert (refused.value.attempt, refused.value.current, refused.value.holder) == (1, 2, "bob")
    assert await story(coordinator) == before
    assert (await refusals(coordinator))[-1][2] == "token_superseded"


async def test_a_job_can_be_added_in_the_name_of_a_claim(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    added = await claim.add_job(
        "lexer",
        {"size": 2},
        paths=["src"],
        depends_on=[claim.job],
        priority=1,
        max_attempts=2,
        review="none",
        receipt="ada-2",
        context="run-7",
    )

    job = await coordinator.job("lexer")
    entry = (await entries(coordinator, "lexer"))[0]
    assert (added.state, job.payload, job.paths, job.depends_on) == ("blocked", {"size": 2}, ("src",), ("parser",))
    assert (job.priority, job.max_attempts, job.review) == (1, 2, "none")
    assert (entry.actor, entry.receipt, entry.context) == ("ada", "ada-2", "run-7")


# Resuming


async def test_a_worker_that_kept_its_token_can_resume(ada: Agent, coordinator: Coordinator, clock: ManualClock):
    claim = await claimed(ada, paths=["src"], lease_s=30)
    await claim.reserve(["docs"])
    clock.advance(20)
    await claim.renew(40)

    resumed = await coordinator.agent("ada").resume(claim.token.reveal())

    assert (resumed.job.id, resumed.attempt, resumed.fence) == ("parser", claim.attempt, claim.fence)
    assert (resumed.lease_s, resumed.lease_until, resumed.paths) == (40, claim.lease_until, ("docs", "src"))
    assert resumed.token == claim.token
    assert (await resumed.submit()).state == "submitted"


async def test_a_token_is_worth_nothing_in_another_actors_hand(ada: Agent, bob: Agent, coordinator: Coordinator):
    claim = await claimed(ada)

    with pytest.raises(TokenUnknown) as refused:
        await bob.resume(claim.token)

    assert "parser" not in str(refused.value)
    assert (await coordinator.job("parser")).worker == "ada"


@pytest.mark.parametrize("fence", [1, 2, 999])
async def test_a_token_that_nobody_was_given_opens_nothing(fence: int, ada: Agent):
    await claimed(ada)

    with pytest.raises(TokenUnknown):
        await ada.resume(f"{fence}-{'ab' * 32}")


async def test_what_is_over_cannot_be_resumed(ada: Agent, bob: Agent, coordinator: Coordinator, clock: ManualClock):
    released = await claimed(ada, "released")
    await released.release()
    lapsed = await claimed(ada, "lapsed")
    superseded = await claimed(ada, "superseded")
    clock.advance(60)
    await bob.claim(await coordinator.job("superseded"))

    with pytest.raises(ClaimEnded):
        await ada.resume(released.token)
    with pytest.raises(LeaseLapsed):
        await ada.resume(lapsed.token)
    with pytest.raises(TokenSuperseded):
        await ada.resume(superseded.token)


# Texts


async def test_a_claim_says_which_attempt_at_which_job_by_whom_it_is(ada: Agent):
    claim = await claimed(ada)

    assert repr(claim) == "<Claim 'parser' attempt 1 of 'ada'>"
    assert isinstance(claim, Claim)


async def test_a_claim_on_a_job_that_is_gone_is_impossible(ada: Agent):
    with pytest.raises(JobUnknown):
        await ada.claim("ghost", version=1)
