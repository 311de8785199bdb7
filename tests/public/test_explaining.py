"""One event explained, and what differs between two moments."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from coordinator import (
    Agent,
    Coordinator,
    Explanation,
    InvalidInput,
    Refused,
    RowChange,
)
from coordinator.testing import ManualClock
from tests.public.support import claimed, entries

pytestmark = pytest.mark.both_stores


async def refused(coordinator: Coordinator, call: Awaitable[Any]) -> Explanation:
    """What is told of the refusal of this call."""
    with pytest.raises(Refused) as refusal:
        await call
    assert refusal.value.position is not None
    return await coordinator.explain(refusal.value.position)


def causes(found: Explanation) -> list[tuple[str, str]]:
    return [(cause.entry.stream, cause.entry.type) for cause in found.causes]


def told(changes: Any) -> dict[tuple[str, str], RowChange]:
    return {(change.view, change.key): change for change in changes}


# What an event changed


async def test_an_event_tells_the_rows_that_it_changed_before_and_after(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, paths=["src"])

    found = await coordinator.explain(claim.fence)

    changes = told(found.changes)
    assert set(changes) == {("jobs", "parser"), ("leases", "job/parser"), ("reservations", "src")}
    assert changes["jobs", "parser"].fields["state"] == ("ready", "claimed")
    assert changes["jobs", "parser"].fields["worker"] == (None, "ada")
    assert changes["reservations", "src"].change == "added"
    assert (found.entry.type, len(found.command), found.causes) == ("job.claimed", 1, ())


async def test_an_event_tells_the_others_of_its_command(coordinator: Coordinator, ada: Agent, bob: Agent):
    schema = await claimed(ada, "schema")
    await ada.add_job("parser", depends_on=["schema"])
    accepted = await bob.accept(await schema.submit())

    found = await coordinator.explain(accepted.position + 1)

    assert [entry.type for entry in found.command] == ["job.accepted", "job.unblocked"]
    assert told(found.changes)["jobs", "parser"].fields["state"] == ("blocked", "ready")


async def test_what_every_event_changed_makes_up_what_differs_in_the_end(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    await (await claimed(ada, "schema", paths=["db"])).fail("no luck")
    await claimed(bob, "lapses", paths=["src"], lease_s=5)
    clock.advance(6)
    await bob.accept(await (await claimed(ada, "parser", paths=["src/a"], depends_on=[])).submit())
    await ada.send("builds", {"n": 1})
    async with bob.reader("builds") as reader:
        await reader.acknowledge(await reader.read())
    last = len(await entries(coordinator))

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for position in range(1, last + 1):
        for place, change in told((await coordinator.explain(position)).changes).items():
            row = rows.setdefault(place, {})
            assert all(row.get(name) == before for name, (before, _) in change.fields.items())
            row.update({name: after for name, (_, after) in change.fields.items()})

    rows = {place: values for place, row in rows.items() if (values := without_none(row))}
    whole = {
        place: without_none({name: after for name, (_, after) in change.fields.items()})
        for place, change in told(await coordinator.diff(0, last)).items()
    }
    assert rows == whole


def without_none(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


async def test_an_event_that_is_not_there_is_refused_with_where_the_log_ends(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    with pytest.raises(InvalidInput, match="the log ends at position 1"):
        await coordinator.explain(2)


# What a refusal goes back to


async def test_a_late_workers_refusal_goes_back_to_its_claim_the_lapse_and_the_claim_that_took_over(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    late = await claimed(ada, lease_s=10)
    clock.advance(11)
    await bob.claim(await coordinator.job("parser"))

    found = await refused(coordinator, late.submit())

    assert causes(found) == [
        ("job/parser", "job.claimed"),
        ("job/parser", "job.lapsed"),
        ("job/parser", "job.claimed"),
    ]
    assert found.causes[0].why == "attempt 1, whose token was shown"
    assert found.causes[2].why == "attempt 2, which took over"
    assert found.changes == ()


async def test_what_came_later_is_no_cause(coordinator: Coordinator, ada: Agent, bob: Agent):
    first = await claimed(ada)
    found = await refused(coordinator, bob.claim(await coordinator.job("parser")))
    await first.release()
    await bob.claim(await coordinator.job("parser"))

    again = await coordinator.explain(found.entry.position)

    assert [cause.entry.position for cause in again.causes] == [first.fence]


async def test_a_refusal_for_a_lapsed_lease_goes_back_to_the_claim_and_its_lapse(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    late = await claimed(ada, lease_s=10)
    clock.advance(11)

    found = await refused(coordinator, late.submit())

    assert [kind for _, kind in causes(found)] == ["job.claimed", "job.lapsed"]


async def test_a_refusal_for_an_ended_claim_goes_back_to_its_end(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)
    await claim.release()

    found = await refused(coordinator, claim.note({}))

    assert [kind for _, kind in causes(found)] == ["job.claimed", "job.released"]


async def test_a_clash_goes_back_to_the_claims_that_hold_the_paths(coordinator: Coordinator, ada: Agent, bob: Agent):
    await claimed(bob, "one", paths=["src/a"])
    await claimed(bob, "two", paths=["src/b"])
    job = await ada.add_job("parser", paths=["src"])

    found = await refused(coordinator, ada.claim(job))

    assert causes(found) == [("job/one", "job.claimed"), ("job/two", "job.claimed")]


async def test_a_version_that_changed_goes_back_to_what_changed_it_since(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    seen = await ada.add_job("parser")
    await (await bob.claim(seen)).release()

    found = await refused(coordinator, ada.claim(seen))

    assert [kind for _, kind in causes(found)] == ["job.claimed", "job.released"]


async def test_a_refusal_because_of_a_holder_goes_back_to_its_claim(coordinator: Coordinator, ada: Agent, bob: Agent):
    claim = await claimed(bob)
    await claim.renew()

    found = await refused(coordinator, ada.claim(await coordinator.job("parser")))

    assert [kind for _, kind in causes(found)] == ["job.claimed", "job.renewed"]


async def test_a_refusal_because_of_dependencies_goes_back_to_what_left_them_as_they_are(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    await (await claimed(bob, "schema")).submit()
    job = await ada.add_job("parser", depends_on=["schema"])

    found = await refused(coordinator, ada.claim(job))

    assert causes(found) == [("job/schema", "job.submitted")]


async def test_a_refusal_because_of_attempts_goes_back_to_those_that_came_to_nothing(
    coordinator: Coordinator, ada: Agent
):
    await (await claimed(ada, max_attempts=2)).fail("no luck")
    await (await ada.claim(await coordinator.job("parser"))).fail("no luck")

    found = await refused(coordinator, ada.claim(await coordinator.job("parser")))

    assert [kind for _, kind in causes(found)] == ["job.failed", "job.failed"]


async def test_a_receipt_that_was_used_before_goes_back_to_its_first_use(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser", receipt="once")

    found = await refused(coordinator, ada.add_job("other", receipt="once"))

    assert [cause.entry.position for cause in found.causes] == [1]


async def test_a_reader_that_was_locked_out_goes_back_to_the_session_that_took_over(
    coordinator: Coordinator, ada: Agent
):
    await ada.send("builds", {})
    async with ada.reader("builds") as old, ada.reader("builds"):
        found = await refused(coordinator, old.read())

    assert [kind for _, kind in causes(found)] == ["reader.opened", "reader.opened"]


# What differs


async def test_what_differs_between_two_moments_is_told_field_by_field(coordinator: Coordinator, ada: Agent):
    job = await ada.add_job("parser", paths=["src"])
    claim = await ada.claim(job)

    changes = told(await coordinator.diff(job.position, claim.fence))
    back = told(await coordinator.diff(claim.fence, job.position))

    assert changes["jobs", "parser"].fields["state"] == ("ready", "claimed")
    assert changes["reservations", "src"].change == "added"
    assert back["jobs", "parser"].fields["state"] == ("claimed", "ready")
    assert back["reservations", "src"].change == "removed"
    assert await coordinator.diff(claim.fence, claim.fence) == []


async def test_at_a_time_the_leases_that_had_run_out_by_then_have_lapsed(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada, lease_s=10)
    clock.advance(60)

    changes = told(await coordinator.diff(claim.fence, claim.lease_until))

    assert changes["jobs", "parser"].fields["state"] == ("claimed", "ready")
