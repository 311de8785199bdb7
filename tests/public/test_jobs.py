"""What an agent does with jobs: adds, revises, cancels, reopens, revokes, accepts, rejects."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coordinator import (
    Agent,
    AlreadyClaimed,
    AlreadySubmitted,
    AttemptsExhausted,
    ClaimEnded,
    Coordinator,
    DependenciesUnaccepted,
    DependencyCycle,
    DependentsStarted,
    InvalidInput,
    JobClosed,
    JobExists,
    JobOpen,
    JobRef,
    JobUnknown,
    NotClaimed,
    NothingToReview,
    SelfReview,
    VersionChanged,
)
from coordinator.testing import ManualClock
from tests.public.support import claimed, entries, refusals, story

pytestmark = pytest.mark.both_stores


# Adding


async def test_a_new_job_is_as_it_was_described(coordinator: Coordinator, ada: Agent, clock: ManualClock):
    schema = await ada.add_job("schema")

    added = await ada.add_job(
        "index",
        {"tables": 12},
        paths=["src/index/", "src/index/a.py", "docs"][1:],
        depends_on=[schema],
        priority=5,
        max_attempts=3,
        review="anyone",
    )

    job = await coordinator.job("index")
    assert added == JobRef(id="index", state="blocked", version=1, position=2)
    assert (job.id, job.state, job.version, job.position) == ("index", "blocked", 1, 2)
    assert job.payload == {"tables": 12}
    assert job.paths == ("docs", "src/index/a.py")
    assert job.depends_on == ("schema",)
    assert (job.priority, job.max_attempts, job.review) == (5, 3, "anyone")
    assert (job.attempt, job.used, job.worker, job.lease_until, job.reason) == (0, 0, None, None, None)
    assert (job.result, job.note) == (None, None)
    assert job.since.timestamp() * 1_000_000 == clock.wall()


async def test_a_job_needs_no_more_than_an_id(coordinator: Coordinator, ada: Agent):
    added = await ada.add_job("parser")

    job = await coordinator.job("parser")
    assert (added.state, job.payload, job.paths, job.depends_on) == ("ready", {}, (), ())
    assert (job.priority, job.max_attempts, job.review) == (0, 5, "other")


async def test_a_job_that_exists_cannot_be_added_again(coordinator: Coordinator, ada: Agent, bob: Agent):
    await ada.add_job("parser", {"by": "ada"})

    with pytest.raises(JobExists):
        await bob.add_job("parser", {"by": "bob"})

    assert (await coordinator.job("parser")).payload == {"by": "ada"}


async def test_a_job_can_depend_only_on_jobs_that_exist(coordinator: Coordinator, ada: Agent):
    with pytest.raises(JobUnknown) as refused:
        await ada.add_job("index", depends_on=["schema"])

    assert refused.value.values == {"job": "schema"}
    with pytest.raises(JobUnknown):
        await coordinator.job("index")


async def test_dependencies_may_be_any_collection_of_ids_and_jobs(coordinator: Coordinator, ada: Agent):
    a, b = await ada.add_job("a"), await ada.add_job("b")

    await ada.add_job("list", depends_on=[a, "b", "a"])
    await ada.add_job("set", depends_on={"b", "a"})
    await ada.add_job("set of jobs", depends_on={b, a})
    await ada.add_job("generator", depends_on=(job for job in (b, "a")))

    assert (await coordinator.job("list")).depends_on == ("a", "b")
    assert (await coordinator.job("set")).depends_on == ("a", "b")
    assert (await coordinator.job("set of jobs")).depends_on == ("a", "b")
    assert (await coordinator.job("generator")).depends_on == ("b", "a")


# Revising


async def test_revising_changes_what_is_named_and_keeps_the_rest(coordinator: Coordinator, ada: Agent):
    added = await ada.add_job("parser", {"size": 1}, paths=["src"], priority=1, max_attempts=2, review="none")

    revised = await ada.revise_job(added, priority=9)

    job = await coordinator.job("parser")
    assert (revised.state, revised.version) == ("ready", 2)
    assert (job.payload, job.paths, job.priority, job.max_attempts, job.review) == ({"size": 1}, ("src",), 9, 2, "none")


async def test_every_part_of_a_job_can_be_revised(coordinator: Coordinator, ada: Agent):
    await ada.add_job("schema")
    added = await ada.add_job("parser", {"size": 1}, paths=["src"])

    revised = await ada.revise_job(
        added, payload={"size": 2}, paths=["lib"], depends_on=["schema"], priority=-1, max_attempts=9, review="anyone"
    )

    job = await coordinator.job("parser")
    assert (revised.state, job.payload, job.paths, job.depends_on) == ("blocked", {"size": 2}, ("lib",), ("schema",))
    assert (job.priority, job.max_attempts, job.review) == (-1, 9, "anyone")


async def test_a_payload_can_be_revised_to_nothing(coordinator: Coordinator, ada: Agent):
    added = await ada.add_job("parser", {"size": 1})

    await ada.revise_job(added, payload=None)

    assert (await coordinator.job("parser")).payload == {}


async def test_a_job_can_be_named_by_its_id_and_the_version_that_was_seen(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    await ada.revise_job("parser", version=1, priority=1)

    with pytest.raises(VersionChanged) as refused:
        await ada.revise_job("parser", version=1, priority=2)
    assert (refused.value.seen, refused.value.current) == (1, 2)
    assert (await coordinator.job("parser")).priority == 1


async def test_a_job_that_is_held_submitted_or_closed_cannot_be_revised(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, review="anyone")

    with pytest.raises(AlreadyClaimed):
        await ada.revise_job(await coordinator.job("parser"), priority=1)
    submitted = await claim.submit()
    with pytest.raises(AlreadySubmitted):
        await ada.revise_job(submitted, priority=1)
    with pytest.raises(JobClosed):
        await ada.revise_job(await ada.accept(submitted), priority=1)


async def test_a_job_cannot_be_revised_to_wait_for_itself(coordinator: Coordinator, ada: Agent):
    schema = await ada.add_job("schema")
    await ada.add_job("index", depends_on=["schema"])

    with pytest.raises(DependencyCycle) as refused:
        await ada.revise_job(schema, depends_on=["index"])

    assert refused.value.values["through"] == ["schema", "index"]


# Cancelling and reopening


async def test_cancelling_a_claimed_job_ends_the_claim_and_frees_its_paths(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada, paths=["src"])

    cancelled = await bob.cancel_job(await coordinator.job("parser"), "not wanted any more")

    assert cancelled.state == "cancelled"
    assert (await coordinator.job("parser")).reason == "not wanted any more"
    assert await coordinator.reservations() == []
    with pytest.raises(ClaimEnded) as refused:
        await claim.submit()
    assert refused.value.how == "cancelled"


async def test_what_is_cancelled_already_cannot_be_cancelled(ada: Agent):
    cancelled = await ada.cancel_job(await ada.add_job("parser"))

    with pytest.raises(JobClosed):
        await ada.cancel_job(cancelled)


async def test_a_closed_job_can_be_reopened_and_its_attempts_count_from_zero(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, max_attempts=1)
    failed = await claim.fail("no luck")
    assert failed.state == "failed"

    reopened = await ada.reopen_job(failed)

    job = await coordinator.job("parser")
    assert (reopened.state, job.used, job.attempt) == ("ready", 0, 1)
    assert (await ada.claim(job)).attempt == 2


async def test_only_a_closed_job_can_be_reopened(ada: Agent):
    added = await ada.add_job("parser")

    with pytest.raises(JobOpen) as refused:
        await ada.reopen_job(added)

    assert refused.value.state == "ready"


async def test_a_job_on_which_others_build_cannot_be_reopened(coordinator: Coordinator, ada: Agent, bob: Agent):
    accepted = await bob.accept(await (await claimed(ada, "schema")).submit())
    await ada.claim(await ada.add_job("index", depends_on=["schema"]))

    with pytest.raises(DependentsStarted) as refused:
        await ada.reopen_job(accepted)

    assert refused.value.values["dependents"] == {"index": "claimed"}


async def test_reopening_a_job_blocks_those_that_only_waited_to_be_claimed(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    accepted = await bob.accept(await (await claimed(ada, "schema")).submit())
    await ada.add_job("index", depends_on=["schema"])

    await ada.reopen_job(accepted)

    assert (await coordinator.job("index")).state == "blocked"
    assert (await story(coordinator, "index")) == ["job.added", "job.blocked"]


# Revoking


async def test_a_claim_can_be_revoked_by_anybody_and_the_attempt_counts(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada)

    revoked = await bob.revoke(claim.job, "ada went home")

    job = await coordinator.job("parser")
    assert (revoked.state, job.used, job.reason, job.worker) == ("ready", 1, "ada went home", None)
    with pytest.raises(ClaimEnded) as refused:
        await claim.note({})
    assert refused.value.how == "revoked"


async def test_what_nobody_holds_cannot_be_revoked(ada: Agent, bob: Agent):
    added = await ada.add_job("parser")

    with pytest.raises(NotClaimed):
        await bob.revoke(added, "just so")


# Reviewing


async def test_accepting_a_result_unblocks_the_jobs_that_waited_for_it(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada, "schema")
    index = await ada.add_job("index", depends_on=["schema"])
    with pytest.raises(DependenciesUnaccepted) as refused:
        await bob.claim(index)
    assert refused.value.dependencies == {"schema": "claimed"}

    accepted = await bob.accept(await claim.submit({"tables": 12}))

    assert accepted.state == "accepted"
    assert (await coordinator.job("schema")).result == {"tables": 12}
    unblocked = await coordinator.job("index")
    assert (unblocked.state, unblocked.version) == ("ready", index.version)
    assert (await bob.claim(index)).job.id == "index"


async def test_a_worker_may_not_review_its_own_work(coordinator: Coordinator, ada: Agent):
    submitted = await (await claimed(ada)).submit()

    with pytest.raises(SelfReview):
        await ada.accept(submitted)
    with pytest.raises(SelfReview):
        await ada.reject(submitted, "not good")

    assert (await coordinator.job("parser")).state == "submitted"


async def test_a_worker_may_review_its_own_work_where_the_job_says_so(ada: Agent):
    submitted = await (await claimed(ada, review="anyone")).submit()

    assert (await ada.accept(submitted)).state == "accepted"


async def test_a_job_that_wants_no_review_is_accepted_by_submitting(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, review="none")

    left = await claim.submit({"lines": 7})

    assert left.state == "accepted"
    assert (await story(coordinator))[-2:] == ["job.submitted", "job.accepted"]


async def test_a_rejected_job_is_ready_again_until_its_attempts_are_used_up(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada, max_attempts=2)

    first = await bob.reject(await claim.submit({"lines": 1}), "too few lines")
    second = await bob.reject(await (await ada.claim(first)).submit(), "none at all")

    assert (first.state, second.state) == ("ready", "failed")
    job = await coordinator.job("parser")
    assert (job.reason, job.used) == ("none at all", 2)
    with pytest.raises(AttemptsExhausted):
        await ada.claim(job)


async def test_only_what_was_submitted_can_be_reviewed(coordinator: Coordinator, ada: Agent, bob: Agent):
    claim = await claimed(ada)

    with pytest.raises(NothingToReview) as refused:
        await bob.accept(claim.job)
    with pytest.raises(NothingToReview):
        await bob.reject(claim.job, "no")

    assert refused.value.state == "claimed"


# All of them


async def test_a_job_that_nobody_added_is_unknown_to_every_method(coordinator: Coordinator, ada: Agent):
    asked = [
        ada.revise_job("ghost", version=1, priority=1),
        ada.cancel_job("ghost", version=1),
        ada.reopen_job("ghost", version=1),
        ada.revoke("ghost", "why not", version=1),
        ada.accept("ghost", version=1),
        ada.reject("ghost", "why not", version=1),
        ada.claim("ghost", version=1),
    ]

    for asking in asked:
        with pytest.raises(JobUnknown):
            await asking

    with pytest.raises(JobUnknown):
        await coordinator.job("ghost")
    with pytest.raises(JobUnknown):
        await coordinator.wait_for_job("ghost")
    assert {code for _, _, code in await refusals(coordinator)} == {"job_unknown"}
    assert await story(coordinator) == []


async def test_a_job_that_was_read_already_carries_its_version(ada: Agent):
    added = await ada.add_job("parser")

    with pytest.raises(InvalidInput) as refused:
        await ada.claim(added, version=added.version)

    assert refused.value.field == "version"


async def test_a_refusal_is_a_fact_in_the_log_with_its_values(coordinator: Coordinator, ada: Agent, bob: Agent):
    claim = await claimed(ada)

    with pytest.raises(AlreadyClaimed) as refused:
        await bob.claim(claim.job, receipt="bob-1", context="run-7")

    record = (await entries(coordinator))[-1]
    assert refused.value.position == record.position
    assert refused.value.receipt == "bob-1"
    assert refused.value.holder == "ada"
    assert refused.value.until == claim.lease_until
    assert (record.type, record.actor, record.stream, record.context) == (
        "command.refused",
        "bob",
        "job/parser",
        "run-7",
    )
    assert record.receipt is None
    assert record.body["code"] == "already_claimed"
    assert record.body["values"] == refused.value.values


async def test_the_hint_of_a_refusal_is_part_of_what_it_says(ada: Agent, bob: Agent):
    claim = await claimed(ada)

    with pytest.raises(AlreadyClaimed, match=r"held by 'ada' until .*\(wait for it, .*\)"):
        await bob.claim(claim.job)


async def test_a_job_left_alone_keeps_the_time_since_when_it_is_in_its_state(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    await ada.add_job("parser")
    before = (await coordinator.job("parser")).since

    clock.advance(10)
    await ada.claim(await coordinator.job("parser"))

    assert (await coordinator.job("parser")).since - before == timedelta(seconds=10)
