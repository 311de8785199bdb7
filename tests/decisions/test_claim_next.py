"""Claiming the best job there is."""

from __future__ import annotations

import pytest

from coordinator.decisions.claims import CANDIDATES, LookDeeper
from coordinator.views import Table
from events.jobs import JobClaimed, JobSubmitted, JobUnblocked, State
from events.union import AnyEvent
from tests.decisions.given import (
    NONCE,
    NOW,
    PARSER,
    Rules,
    accepted,
    added,
    claim_next,
    claimed,
    failed,
    lapsed,
    rejected,
    released,
    reopened,
    revised,
    submitted,
)


def chosen(rules: Rules, *, candidate: str | None = None) -> str | None:
    events = rules.when(claim_next(), by="bob", candidate=candidate)
    assert all(isinstance(event, JobClaimed) for event in events)
    return events[0].job if events and isinstance(events[0], JobClaimed) else None


def held_by_ada(*paths: str) -> list[AnyEvent]:
    return [added("held", paths=paths), claimed("held", by="ada", paths=paths)]


def test_the_claim_is_the_same_as_if_the_job_had_been_named(rules: Rules) -> None:
    rules.given(added("parser", paths=("src",)))

    events = rules.when(claim_next(lease_us=5_000_000), by="bob", now=NOW)

    assert events == [
        claimed(
            "parser",
            by="bob",
            lease_us=5_000_000,
            lease_until=NOW + 5_000_000,
            paths=("src",),
            nonce=NONCE.value,
            token_digest=NONCE.token_digest,
        )
    ]


def test_where_there_is_no_job_nothing_happens(rules: Rules) -> None:
    events = rules.when(claim_next())

    assert events == []


@pytest.mark.parametrize("state", ["blocked", "claimed", "submitted", "accepted", "failed", "cancelled"])
def test_only_ready_jobs_are_looked_at(rules: Rules, state: State) -> None:
    rules.given(*[event for event in PARSER[state] if event.stream == "job/parser"])

    events = rules.when(claim_next())

    assert events == []


# Order


def test_the_higher_priority_comes_first(rules: Rules) -> None:
    rules.given(added("low", priority=-1), added("plain"), added("high", priority=1), added("late", priority=0))

    assert chosen(rules) == "high"


def test_the_highest_and_the_lowest_priority_keep_their_order(rules: Rules) -> None:
    priorities = {"lowest": -32_767, "lower": -32_766, "plain": 0, "higher": 32_766, "highest": 32_767}
    rules.given(*[added(job, priority=priority) for job, priority in priorities.items()])

    order: list[str] = []
    while (job := chosen(rules)) is not None:
        order.append(job)
        rules.given(claimed(job))

    assert order == ["highest", "higher", "plain", "lower", "lowest"]


def test_of_equal_priority_the_one_comes_first_that_has_been_ready_for_longer(rules: Rules) -> None:
    rules.given(added("z-first"), added("a-second"))

    assert chosen(rules) == "z-first"


@pytest.mark.parametrize(
    "back",
    [
        [claimed("first"), failed("first")],
        [claimed("first"), released("first")],
        [claimed("first"), lapsed("first")],
        [claimed("first"), submitted("first"), rejected("first")],
        [claimed("first"), submitted("first"), accepted("first"), reopened("first", version=5)],
    ],
    ids=["failed", "released", "lapsed", "rejected", "reopened"],
)
def test_a_job_that_became_ready_again_stands_at_the_end_of_the_queue(rules: Rules, back: list[AnyEvent]) -> None:
    rules.given(added("first"), added("second"), *back)

    assert chosen(rules) == "second"


def test_a_job_that_was_unblocked_stands_at_the_end_of_the_queue(rules: Rules) -> None:
    rules.given(added("base"), added("first", state="blocked", depends_on=("base",)), claimed("base"))
    rules.given(added("second"), submitted("base"), accepted("base"), JobUnblocked(job="first", by="base"))

    assert chosen(rules) == "second"


def test_a_revised_job_keeps_its_place_in_the_queue(rules: Rules) -> None:
    rules.given(added("first"), added("second"), revised("first", paths=("src",)))

    assert chosen(rules) == "first"


def test_a_revised_priority_counts_at_once(rules: Rules) -> None:
    rules.given(added("first"), added("second"), revised("second", priority=1, payload_at=2))

    assert chosen(rules) == "second"


# Clashes


def test_a_job_whose_paths_clash_with_a_claim_is_passed_over(rules: Rules) -> None:
    rules.given(*held_by_ada("src"), added("first", paths=("src/x",)), added("second", paths=("doc",)))

    assert chosen(rules) == "second"


def test_where_every_job_clashes_nothing_happens(rules: Rules) -> None:
    rules.given(*held_by_ada("src"), added("first", paths=("src/x",)), added("second", paths=(".",)))

    assert chosen(rules) is None


@pytest.mark.parametrize(
    ("urgent", "small"),
    [
        pytest.param(("src", "doc"), ("doc",), id="itself"),
        pytest.param(("src", "doc"), ("doc/page",), id="a child of what the urgent one wants"),
        pytest.param(("src", "doc/page"), ("doc",), id="the parent of what the urgent one wants"),
        pytest.param(("src", "doc/page/deep"), ("doc",), id="a grandparent of what the urgent one wants"),
        pytest.param(("src", "doc"), ("DOC",), id="another case"),
        pytest.param((".",), ("doc",), id="the urgent one wants everything"),
        pytest.param(("src", "doc"), (".",), id="the small one wants everything"),
    ],
)
def test_a_job_that_is_passed_over_keeps_its_paths_from_jobs_of_lower_priority(
    rules: Rules, urgent: tuple[str, ...], small: tuple[str, ...]
) -> None:
    rules.given(
        *held_by_ada("src/x"),
        added("urgent", priority=1, paths=urgent),
        added("small", paths=small),
        added("elsewhere", priority=-1, paths=("test",)),
    )

    chooses = chosen(rules)

    # Where the urgent job wants everything, nothing is left for those below it.
    assert chooses == (None if urgent == (".",) or small == (".",) else "elsewhere")


def test_a_job_that_is_passed_over_does_not_stand_in_the_way_of_its_equals(rules: Rules) -> None:
    rules.given(*held_by_ada("src"), added("first", paths=("doc", "src")), added("second", paths=("doc",)))

    assert chosen(rules) == "second"


def test_a_job_that_is_passed_over_for_another_ones_sake_keeps_its_own_paths_too(rules: Rules) -> None:
    rules.given(
        *held_by_ada("src"),
        added("urgent", priority=2, paths=("doc", "src")),
        added("middle", priority=1, paths=("doc", "test")),
        added("small", priority=0, paths=("test",)),
    )

    assert chosen(rules) is None


def test_of_those_passed_over_the_highest_priority_counts_for_a_path(rules: Rules) -> None:
    rules.given(
        *held_by_ada("src"),
        added("urgent", priority=2, paths=("doc", "src")),
        added("middle", priority=1, paths=("doc/a", "src")),
        added("same", priority=1, paths=("doc/a",)),
    )

    assert chosen(rules) is None


def test_a_job_without_paths_is_never_passed_over(rules: Rules) -> None:
    rules.given(*held_by_ada("."), added("urgent", priority=1, paths=(".",)), added("no paths"))

    assert chosen(rules) == "no paths"


# How far it looks


def test_the_last_of_256_candidates_is_still_found(rules: Rules) -> None:
    clashing = [added(f"job-{number:03}", paths=("src",)) for number in range(CANDIDATES - 1)]
    rules.given(*held_by_ada("src"), *clashing, added("last", paths=("doc",)))

    assert (CANDIDATES, chosen(rules)) == (256, "last")


def test_after_256_candidates_in_vain_the_search_must_go_on_elsewhere(rules: Rules) -> None:
    clashing = [added(f"job-{number:03}", paths=("src",)) for number in range(CANDIDATES)]
    rules.given(*held_by_ada("src"), *clashing, added("beyond", paths=("doc",)))

    with pytest.raises(LookDeeper):
        rules.when(claim_next())


def test_candidates_that_all_clash_are_not_looked_at_again_before_something_has_changed(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_vain(rules)
    rules.given(added("beyond", paths=("doc",)))
    scans: list[str] = []
    scan = Table.scan
    monkeypatch.setattr(Table, "scan", lambda table, bucket: scans.append(bucket) or scan(table, bucket))

    for candidate in (None, "nothing", None):
        with pytest.raises(LookDeeper):
            rules.when(claim_next(), candidate=candidate)
    claimed_then = chosen(rules, candidate="beyond")

    assert (scans, claimed_then) == (["ready"], "beyond")


def test_where_there_is_no_job_nobody_looks_again_before_something_has_changed(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[str] = []
    scan = Table.scan
    monkeypatch.setattr(Table, "scan", lambda table, bucket: scans.append(bucket) or scan(table, bucket))

    before = [chosen(rules), chosen(rules)]
    rules.given(added("parser"))

    assert (before, chosen(rules), scans) == ([None, None], "parser", ["ready", "ready"])


@pytest.mark.parametrize("change", [added("parser"), submitted("held", paths=("src",))], ids=["added", "freed"])
def test_candidates_that_all_clash_are_looked_at_again_when_something_has_changed(
    rules: Rules, change: AnyEvent
) -> None:
    rules.given(*held_by_ada("src"), added("lexer", paths=("src",)))
    before = chosen(rules)

    rules.given(change)

    assert (before, chosen(rules)) == (None, "lexer" if isinstance(change, JobSubmitted) else "parser")


def in_vain(rules: Rules) -> None:
    """As many clashing candidates as are looked at inside a transaction."""
    rules.given(*held_by_ada("src"), *[added(f"job-{number:03}", paths=("src",)) for number in range(CANDIDATES)])


def test_what_the_search_found_is_claimed_although_others_come_before_it(rules: Rules) -> None:
    in_vain(rules)
    rules.given(added("beyond"), added("found", paths=("doc",)))

    assert chosen(rules, candidate="found") == "found"


def test_what_has_become_free_nearer_by_is_claimed_rather_than_what_the_search_found(rules: Rules) -> None:
    rules.given(added("first"), added("found", paths=("doc",)))

    assert chosen(rules, candidate="found") == "first"


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param([claimed("found", by="ada")], id="somebody claimed it"),
        pytest.param([added("other", paths=("doc/a",)), claimed("other", paths=("doc/a",))], id="its paths were taken"),
        pytest.param(
            [added("urgent", priority=1, paths=("src", "doc/a"))], id="a job of higher priority waits for its paths"
        ),
    ],
)
def test_what_the_search_found_is_not_claimed_if_it_cannot_be_had_any_more(
    rules: Rules, meanwhile: list[AnyEvent]
) -> None:
    in_vain(rules)
    rules.given(added("found", paths=("doc",)), *meanwhile)

    with pytest.raises(LookDeeper):
        rules.when(claim_next(), candidate="found")


def test_a_candidate_that_never_was_leads_to_another_search(rules: Rules) -> None:
    in_vain(rules)

    with pytest.raises(LookDeeper):
        rules.when(claim_next(), candidate="nothing")
