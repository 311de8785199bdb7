"""Why a job cannot be claimed, and who holds a path."""

from __future__ import annotations

import pytest

from coordinator import Agent, BadPath, Coordinator, JobUnknown, PathClash, Refused, Why
from coordinator.testing import ManualClock
from tests.public.support import claimed

pytestmark = pytest.mark.both_stores


def codes(why: Why) -> list[tuple[str, str]]:
    return [(reason.code, reason.job) for reason in why.reasons]


async def test_a_job_that_nothing_stands_in_the_way_of_can_be_claimed(coordinator: Coordinator, ada: Agent):
    job = await ada.add_job("parser", paths=["src"])

    why = await coordinator.why("parser")

    assert (why.claimable, why.passed_over, why.reasons, why.state, why.version) == (True, False, (), "ready", 1)
    assert str(why).startswith("`parser` can be claimed; it is ready since ")
    assert (await ada.claim(job)).attempt == 1


async def test_a_claimed_job_tells_who_holds_it_and_until_when(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, paths=["src"])

    why = await coordinator.why("parser")

    (reason,) = why.reasons  # its own paths are no reason of their own
    assert (reason.code, reason.worker, reason.until) == ("claimed", "ada", claim.lease_until)
    assert not why.claimable
    assert "held by ada until " in str(why)
    assert "revoke the claim" in reason.remedy


async def test_a_claim_whose_lease_ran_out_stands_in_nobodys_way(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    await claimed(ada, lease_s=10)

    clock.advance(11)

    assert (await coordinator.why("parser")).claimable


async def test_a_submitted_job_waits_for_a_review_by_somebody_else(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    await (await claimed(ada)).submit()
    clock.advance(2 * 3_600)

    (reason,) = (await coordinator.why("parser")).reasons

    assert (reason.code, reason.worker) == ("submitted", "ada")
    assert reason.remedy == "somebody other than ada accepts or rejects `parser`"
    assert "submitted 2 h ago by ada, waiting for a review" in str(await coordinator.why("parser"))


async def test_all_reasons_are_told_at_once_and_each_dependency_with_its_own(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    await (await claimed(ada, "schema", paths=["db"])).submit()
    await ada.add_job("tables", depends_on=["schema"])
    await bob.cancel_job(await ada.add_job("old"), "not wanted")
    await claimed(bob, "index", paths=["src/index"])
    await ada.add_job("urgent", paths=["src"], priority=1)
    await ada.add_job("parser", depends_on=["tables", "old"], paths=["src/index/a.py"])

    why = await coordinator.why("parser")

    assert codes(why) == [
        ("dependency", "tables"),
        ("dependency", "old"),
        ("path_held", "index"),
        ("path_wanted", "urgent"),
    ]
    tables, old, held, wanted = why.reasons
    assert [(reason.code, reason.job, reason.state) for reason in tables.because] == [
        ("dependency", "schema", "submitted")
    ]
    assert (old.by, old.reason, old.remedy) == ("bob", "not wanted", "reopen `old` if it is wanted again")
    assert (held.path, held.held, held.worker) == ("src/index/a.py", "src/index", "bob")
    assert (wanted.held, wanted.priority) == ("src", 1)
    assert "    - blocked by `schema`, submitted" in str(why)


async def test_paths_that_are_held_are_the_reasons_for_which_a_claim_is_refused(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    await claimed(bob, "index", paths=["src/a", "src/b", "docs"])
    job = await ada.add_job("parser", paths=["src"])

    why = await coordinator.why("parser")

    with pytest.raises(PathClash) as refused:
        await ada.claim(job)
    assert [(reason.held, reason.until) for reason in why.reasons] == [
        (clash.held, clash.until) for clash in refused.value.clashes
    ]


async def test_a_job_that_waits_behind_one_of_higher_priority_can_be_claimed_by_its_id_alone(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    await claimed(bob, "index", paths=["src/index"])
    await ada.add_job("urgent", paths=["src"], priority=1)
    await ada.add_job("equal", paths=["src/z"])
    job = await ada.add_job("late", paths=["src/z"])

    why = await coordinator.why("late")

    assert codes(why) == [("path_wanted", "urgent")]
    assert (why.claimable, why.passed_over) == (True, True)
    assert await ada.claim_next() is None
    assert (await ada.claim(job)).attempt == 1


async def test_a_job_whose_attempts_are_used_up_tells_so_and_what_the_last_came_to(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    await (await claimed(ada, max_attempts=1)).fail("no luck")

    (reason,) = (await coordinator.why("parser")).reasons

    assert (reason.code, reason.used, reason.max_attempts) == ("attempts_exhausted", 1, 1)
    assert (reason.by, reason.reason) == ("ada", "no luck")


async def test_a_closed_job_tells_how_that_came_and_what_reopening_needs(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    job = await bob.accept(await (await claimed(ada, "schema")).submit())
    await claimed(ada, "parser", depends_on=["schema"])
    await ada.add_job("docs", depends_on=["schema"])

    (reason,) = (await coordinator.why("schema")).reasons

    assert (reason.code, reason.by) == ("accepted", "bob")
    assert [(one.code, one.job) for one in reason.because] == [("dependent_started", "parser")]
    with pytest.raises(Refused):
        await ada.reopen_job(job)


async def test_why_is_told_of_the_past_too(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)
    await claim.submit()

    why = await coordinator.at(claim.fence).why("parser")

    assert (why.state, codes(why)) == ("claimed", [("claimed", "parser")])


async def test_a_job_that_does_not_exist_is_unknown(coordinator: Coordinator):
    with pytest.raises(JobUnknown):
        await coordinator.why("parser")


# Who


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a", [("src/a", "itself")]),
        ("SRC/A", [("src/a", "itself")]),
        ("src/a/b.py", [("src/a", "above")]),
        ("src", [("src/a", "below"), ("src/c", "below")]),
        ("lib", []),
    ],
)
async def test_who_tells_of_the_path_itself_and_of_what_lies_above_and_below(
    path: str, expected: list[tuple[str, str]], coordinator: Coordinator, ada: Agent
):
    claim = await claimed(ada, paths=["src/a", "src/c"])

    found = await coordinator.who(path)

    assert [(holder.path, holder.place) for holder in found] == expected
    assert {(holder.worker, holder.job, holder.until) for holder in found} <= {("ada", "parser", claim.lease_until)}


async def test_who_is_asked_with_a_path(coordinator: Coordinator):
    with pytest.raises(BadPath):
        await coordinator.who("/src")
