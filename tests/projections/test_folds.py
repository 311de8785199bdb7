"""What each event does to the rows of each projection. Nothing is stored, nothing is decided."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from events.commands import CommandRefused
from events.envelope import Envelope
from events.jobs import JobBlocked, JobNoted, JobRenewed, JobUnblocked
from events.union import AnyEvent
from projections.dependents import DependentRow, dependents_range
from projections.jobs import JOBS, JobRow
from projections.leases import LEASES, LeaseRow
from projections.registry import FOLDS, PROJECTIONS
from projections.replay import Rows, replay
from projections.reservations import ReservationRow
from tests.decisions.given import (
    LEASE,
    NOW,
    UNTIL,
    accepted,
    added,
    cancelled,
    claimed,
    done,
    failed,
    lapsed,
    rejected,
    released,
    reopened,
    reserved,
    revised,
    revoked,
    submitted,
    token,
)


def rows_after(*events: AnyEvent, by: str = "ada") -> Rows:
    """The rows after these events; the event at position n happened n µs after `NOW`."""
    return replay(
        Envelope(position, NOW + position, by, None, None, None, None, position, event)
        for position, event in enumerate(events, start=1)
    )


def job_after(*events: AnyEvent) -> JobRow:
    return rows_after(*events)["jobs"]["parser"]


def lease_after(*events: AnyEvent) -> LeaseRow:
    return rows_after(*events)["leases"]["job/parser"]


# Jobs


def test_an_added_job_has_a_row_that_says_where_its_description_stands() -> None:
    row = job_after(
        added("other"),
        added("parser", paths=("src",), depends_on=("other",), state="blocked", priority=3, max_attempts=2),
    )

    assert row == JobRow(
        id="parser",
        state="blocked",
        version=1,
        priority=3,
        max_attempts=2,
        review="other",
        paths=("src",),
        depends_on=("other",),
        since=NOW + 2,
        position=2,
        ready_at=2,
        defined=2,
        payload_at=2,
    )


def test_a_revision_replaces_the_description_and_keeps_the_rest() -> None:
    before = job_after(added("parser", paths=("src",), priority=3))

    row = job_after(
        added("parser", paths=("src",), priority=3),
        revised("parser", paths=("doc",), depends_on=("a",), priority=1, max_attempts=9, review="none"),
    )

    assert row == replace(
        before,
        version=2,
        paths=("doc",),
        depends_on=("a",),
        priority=1,
        max_attempts=9,
        review="none",
        position=2,
        defined=2,
    )


def test_a_revision_with_a_payload_says_that_it_stands_there() -> None:
    row = job_after(added("parser"), revised("parser", payload=Raw(b"{}"), payload_at=None))

    assert (row.payload_at, row.defined) == (2, 2)


@pytest.mark.parametrize(
    ("before", "after", "since", "ready_at"),
    [
        ("ready", "ready", 1, 1),
        ("blocked", "blocked", 1, 1),
        ("ready", "blocked", 2, 1),
        ("blocked", "ready", 2, 2),
        ("ready", "failed", 2, 1),
    ],
)
def test_a_revision_that_changes_the_state_says_since_when(before: Any, after: Any, since: int, ready_at: int) -> None:
    row = job_after(added("parser", state=before), revised("parser", state=after))

    assert (row.state, row.since, row.ready_at) == (after, NOW + since, ready_at)


def test_a_claim_names_the_worker_and_counts_the_attempt() -> None:
    before = job_after(added("parser"))

    row = job_after(added("parser"), claimed("parser", by="bob", attempt=3, used=2))

    assert row == replace(
        before, state="claimed", version=2, attempt=3, used=2, worker="bob", since=NOW + 2, position=2
    )


def test_a_new_claim_forgets_what_the_last_one_noted_and_submitted() -> None:
    row = job_after(
        added("parser"),
        claimed("parser"),
        JobNoted(job="parser", attempt=1, note=Raw(b"{}")),
        submitted("parser"),
        rejected("parser"),
        claimed("parser", version=5, attempt=2),
    )

    assert (row.noted, row.submitted, row.reason) == (None, None, "incomplete")


def test_a_note_says_where_it_stands_and_changes_no_version() -> None:
    before = job_after(added("parser"), claimed("parser"))

    row = job_after(added("parser"), claimed("parser"), JobNoted(job="parser", attempt=1, note=Raw(b"{}")))

    assert row == replace(before, noted=3)


def test_a_submission_says_where_the_result_stands_and_forgets_the_earlier_failure() -> None:
    events = [added("parser"), claimed("parser"), failed("parser"), claimed("parser", version=4, attempt=2)]
    before = job_after(*events)

    row = job_after(*events, submitted("parser", version=5, attempt=2, used=2))

    assert before.reason == "no luck"
    assert row == replace(before, state="submitted", version=5, reason=None, since=NOW + 5, position=5, submitted=5)


@pytest.mark.parametrize(
    ("end", "reason", "used"),
    [
        (failed("parser", reason="it rained"), "it rained", 1),
        (released("parser", reason="lunch"), "lunch", 0),
        (released("parser"), None, 0),
        (revoked("parser"), "too slow", 1),
        (lapsed("parser"), "attempt 1 of bob lapsed", 1),
    ],
)
def test_a_job_that_was_given_back_waits_at_the_end_of_the_queue_and_says_why(
    end: AnyEvent, reason: str | None, used: int
) -> None:
    before = job_after(added("parser"), claimed("parser", by="bob"))

    row = job_after(added("parser"), claimed("parser", by="bob"), end)

    assert row == replace(
        before,
        state="ready",
        version=3,
        used=used,
        worker=None,
        reason=reason,
        since=NOW + 3,
        position=3,
        ready_at=3,
    )


def test_a_rejected_job_waits_at_the_end_of_the_queue_and_its_attempt_stays_used() -> None:
    before = job_after(added("parser"), claimed("parser"), submitted("parser"))

    row = job_after(added("parser"), claimed("parser"), submitted("parser"), rejected("parser"))

    assert row == replace(
        before,
        state="ready",
        version=4,
        worker=None,
        reason="incomplete",
        since=NOW + 4,
        position=4,
        ready_at=4,
    )


def test_an_accepted_job_keeps_its_worker_and_its_result() -> None:
    row = job_after(*done("parser", by="bob"))

    assert (row.state, row.version, row.worker, row.submitted) == ("accepted", 4, "bob", 3)


def test_a_cancelled_job_has_no_worker_and_says_why() -> None:
    row = job_after(added("parser"), claimed("parser"), cancelled("parser", version=3, attempt=1, reason="not needed"))

    assert (row.state, row.version, row.worker, row.reason, row.used) == ("cancelled", 3, None, "not needed", 1)


def test_a_reopened_job_starts_anew_but_numbers_its_attempts_on() -> None:
    row = job_after(*done("parser"), reopened("parser", version=5))

    assert (row.state, row.version, row.attempt, row.used) == ("ready", 5, 1, 0)
    assert (row.worker, row.reason, row.submitted, row.ready_at) == (None, None, None, 5)


@pytest.mark.parametrize(
    ("before", "event", "state", "ready_at"),
    [
        ("blocked", JobUnblocked(job="parser", by="a"), "ready", 2),
        ("ready", JobBlocked(job="parser", by="a"), "blocked", 1),
    ],
)
def test_what_happens_to_its_dependencies_changes_a_jobs_state_but_not_its_version(
    before: Any, event: AnyEvent, state: Any, ready_at: int
) -> None:
    was = job_after(added("parser", state=before))

    row = job_after(added("parser", state=before), event)

    assert row == replace(was, state=state, since=NOW + 2, ready_at=ready_at)


def test_jobs_are_scanned_by_state_then_priority_then_since_when_they_are_ready() -> None:
    rows = rows_after(
        added("a"), added("b", priority=1), added("c"), added("d", state="blocked"), added("e", priority=1)
    )

    places = {id: JOBS.place(row) for id, row in rows["jobs"].items()}

    assert {bucket for bucket, _ in places.values()} == {"ready", "blocked"}
    assert sorted((rank, id) for id, (bucket, rank) in places.items() if bucket == "ready") == sorted(
        (places[id][1], id) for id in ("b", "e", "a", "c")
    )
    assert places["b"] < places["e"] < places["a"] < places["c"]


@pytest.mark.parametrize("priority", [-32_767, 32_767])
def test_the_rank_of_every_priority_fits_into_64_bits_and_never_meets_the_next_one(priority: int) -> None:
    row = job_after(added("parser", priority=priority))
    last = replace(row, ready_at=2**47 - 1)

    ranks = [JOBS.place(replace(row, ready_at=0))[1], JOBS.place(last)[1]]

    assert all(-(2**63) <= rank < 2**63 for rank in ranks)
    assert ranks[1] < JOBS.place(replace(row, ready_at=0, priority=priority - 1))[1]


# Leases


def test_a_claim_is_a_live_lease_whose_fence_is_its_position() -> None:
    row = lease_after(added("parser"), claimed("parser", by="bob", paths=("src",)))

    assert row == LeaseRow(
        subject="job/parser",
        actor="bob",
        attempt=1,
        fence=2,
        token_digest=token("parser", 1),
        lease_us=LEASE,
        lease_until=UNTIL,
        paths=("src",),
    )
    assert LEASES.place(row) == ("live", UNTIL)


def test_a_renewal_moves_the_end_of_the_lease_and_nothing_else() -> None:
    before = lease_after(added("parser"), claimed("parser"))

    row = lease_after(
        added("parser"), claimed("parser"), JobRenewed(job="parser", attempt=1, lease_us=5, lease_until=UNTIL + 7)
    )

    assert row == replace(before, lease_us=5, lease_until=UNTIL + 7)
    assert LEASES.place(row) == ("live", UNTIL + 7)


def test_a_reservation_widens_the_paths_of_the_lease() -> None:
    row = lease_after(
        added("parser"), claimed("parser", paths=("src",)), reserved("parser", "doc", paths=("doc", "src"))
    )

    assert row.paths == ("doc", "src")


@pytest.mark.parametrize(
    ("end", "how"),
    [
        (submitted("parser"), "submitted"),
        (failed("parser"), "failed"),
        (released("parser"), "released"),
        (lapsed("parser"), "lapsed"),
        (revoked("parser"), "revoked"),
        (cancelled("parser", version=3, attempt=1), "cancelled"),
    ],
)
def test_the_row_of_a_lease_stays_and_says_how_it_ended(end: AnyEvent, how: Any) -> None:
    before = lease_after(added("parser"), claimed("parser", paths=("src",)))

    row = lease_after(added("parser"), claimed("parser", paths=("src",)), end)

    assert row == replace(before, ended=how, paths=())
    assert LEASES.place(row) == ("", 0)


def test_the_next_claim_takes_the_place_of_the_lease_before() -> None:
    row = lease_after(added("parser"), claimed("parser"), lapsed("parser"), claimed("parser", "bob", attempt=2))

    assert (row.actor, row.attempt, row.fence, row.ended) == ("bob", 2, 4, None)


def test_a_job_that_is_cancelled_unclaimed_does_not_touch_the_lease_that_ended_before() -> None:
    row = lease_after(added("parser"), claimed("parser"), failed("parser"), cancelled("parser", version=4))

    assert row.ended == "failed"


def test_a_job_that_is_cancelled_before_anybody_claimed_it_has_no_lease() -> None:
    rows = rows_after(added("parser"), cancelled("parser"))

    assert rows["leases"] == {}


# Tokens


def test_every_token_ever_granted_is_recognised_also_long_after() -> None:
    rows = rows_after(
        added("parser"),
        claimed("parser"),
        failed("parser"),
        claimed("parser", "bob", version=4, attempt=2),
        submitted("parser", "bob", version=5, attempt=2),
        accepted("parser", version=6, attempt=2),
    )

    latest, earlier = rows["leases"]["job/parser"], rows["leases"][token("parser", 1)]
    assert (latest.actor, latest.attempt, latest.token_digest) == ("bob", 2, token("parser", 2))
    assert (earlier.actor, earlier.attempt, earlier.token_digest) == ("ada", 1, token("parser", 1))
    assert (earlier.subject, earlier.ended) == ("job/parser", "failed")


# Reservations


def test_a_claim_reserves_each_of_its_paths_under_the_key_by_which_paths_are_compared() -> None:
    rows = rows_after(added("parser"), claimed("parser", by="bob", paths=("Doc", "SRC/Äpfel")))

    assert rows["reservations"] == {
        "doc": ReservationRow(path="Doc", job="parser", worker="bob", attempt=1),
        "src/a\u0308pfel": ReservationRow(path="SRC/Äpfel", job="parser", worker="bob", attempt=1),
    }


def test_a_folder_that_is_reserved_later_takes_the_place_of_what_it_absorbs() -> None:
    events = [added("parser"), claimed("parser", paths=("Src/a", "src/b", "x"))]

    rows = rows_after(*events, reserved("parser", "src", absorbed=("Src/a", "src/b"), paths=("src", "x")))

    assert rows["reservations"] == {
        "src": ReservationRow(path="src", job="parser", worker="ada", attempt=1),
        "x": ReservationRow(path="x", job="parser", worker="ada", attempt=1),
    }


@pytest.mark.parametrize(
    "end",
    [
        submitted("parser", paths=("Doc", "src")),
        failed("parser", paths=("Doc", "src")),
        released("parser", paths=("Doc", "src")),
        lapsed("parser", paths=("Doc", "src")),
        revoked("parser", paths=("Doc", "src")),
        cancelled("parser", version=3, attempt=1, paths=("Doc", "src")),
    ],
    ids=["submitted", "failed", "released", "lapsed", "revoked", "cancelled"],
)
def test_whatever_ends_a_claim_frees_its_paths_and_no_others(end: AnyEvent) -> None:
    rows = rows_after(
        added("index"),
        claimed("index", "bob", paths=("test",)),
        added("parser"),
        claimed("parser", paths=("Doc", "src")),
        end,
    )

    assert list(rows["reservations"]) == ["test"]


# Dependents


def test_each_dependency_of_a_job_has_a_row() -> None:
    rows = rows_after(added("a"), added("b"), added("parser", state="blocked", depends_on=("a", "b")))

    assert list(rows["dependents"].values()) == [
        DependentRow(dependency="a", job="parser"),
        DependentRow(dependency="b", job="parser"),
    ]


def test_a_revision_removes_the_rows_of_dropped_dependencies_and_adds_the_new_ones() -> None:
    rows = rows_after(
        added("a"),
        added("b"),
        added("parser", state="blocked", depends_on=("a", "b")),
        revised("parser", state="blocked", depends_on=("b", "c"), dropped=("a",)),
    )

    assert [row.dependency for row in rows["dependents"].values()] == ["b", "c"]


def test_the_dependents_of_a_job_are_found_by_a_range_and_those_of_similar_names_are_not() -> None:
    similar = ["parser", "parse", "parser2", "parser ", "parser/x", "parser-x", "Parser", "parsers"]
    rows = rows_after(*[added(f"after {name}", depends_on=(name,)) for name in similar])

    low, high = dependents_range("parser")

    assert [row.job for key, row in rows["dependents"].items() if low <= key < high] == ["after parser"]


# All of them


def test_a_refusal_changes_no_row() -> None:
    refusal = CommandRefused(command="add_job", code="x", subject="job/parser", values=Raw(b"{}"), receipt_digest="")

    rows = rows_after(refusal)

    assert rows == {projection.name: {} for projection in PROJECTIONS}


def test_every_type_of_event_is_known_to_the_folds_and_every_fold_is_of_a_known_type() -> None:
    known = set(FOLDS)

    assert known == set(AnyEvent.__args__)  # pyright: ignore[reportAttributeAccessIssue]
    assert all(set(projection.folds) <= known for projection in PROJECTIONS)
    assert [event.__name__ for event, folds in FOLDS.items() if not folds] == ["CommandRefused"]
