"""Accepting and rejecting what was submitted."""

from __future__ import annotations

import pytest

from coordinator.commands import AcceptJob, RejectJob
from events.jobs import JobAccepted, JobRejected, JobUnblocked, State
from tests.decisions.given import (
    PARSER,
    VERSION,
    Rules,
    accept,
    accepted,
    added,
    cancelled,
    claimed,
    done,
    failed,
    reject,
    reopened,
    revised,
    submitted,
)

both = pytest.mark.parametrize("review", [accept, reject])


@both
@pytest.mark.parametrize("state", [state for state in VERSION if state != "submitted"])
def test_only_what_was_submitted_can_be_reviewed(rules: Rules, review: type, state: State) -> None:
    rules.given(*PARSER[state])

    refusal = rules.refusal(review("parser", VERSION[state]), by="bob")

    assert (refusal.code, refusal.values) == ("not_submitted", {"job": "parser", "state": state})


@both
def test_the_worker_that_submitted_does_not_review_its_own_work(rules: Rules, review: type) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"), submitted("parser", by="ada"))

    refusal = rules.refusal(review("parser", 3), by="ada")

    assert (refusal.code, refusal.values) == ("self_review", {"job": "parser", "worker": "ada"})


@both
def test_a_job_may_be_added_so_that_anyone_reviews_it_also_its_worker(rules: Rules, review: type) -> None:
    rules.given(added("parser", review="anyone"), claimed("parser", by="ada"), submitted("parser", by="ada"))

    [event] = rules.when(review("parser", 3), by="ada")

    assert isinstance(event, JobAccepted | JobRejected)


@both
def test_a_worker_of_an_earlier_attempt_may_review_the_one_that_was_submitted(rules: Rules, review: type) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"), failed("parser"))
    rules.given(claimed("parser", by="bob", version=4, attempt=2), submitted("parser", by="bob", version=5, attempt=2))

    [event] = rules.when(review("parser", 5), by="ada")

    assert isinstance(event, JobAccepted | JobRejected)


@both
def test_that_nothing_was_submitted_is_told_before_who_would_review_it(rules: Rules, review: type) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"))

    refusal = rules.refusal(review("parser", 2), by="ada")

    assert refusal.code == "not_submitted"


def test_an_accepted_job_names_the_attempt_that_was_good(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), failed("parser"))
    rules.given(claimed("parser", version=4, attempt=2), submitted("parser", version=5, attempt=2, used=2))

    events = rules.when(accept("parser", 5), by="bob")

    assert events == [JobAccepted(job="parser", version=6, state="accepted", attempt=2)]


@pytest.mark.parametrize(("max_attempts", "state"), [(2, "ready"), (1, "failed")])
def test_a_rejected_attempt_is_used_up(rules: Rules, max_attempts: int, state: State) -> None:
    rules.given(added("parser", max_attempts=max_attempts), claimed("parser"), submitted("parser"))

    events = rules.when(RejectJob(job="parser", version=3, reason="no tests"), by="bob")

    assert events == [JobRejected(job="parser", version=4, state=state, attempt=1, reason="no tests")]


# Whom an acceptance unblocks


def test_an_acceptance_unblocks_each_job_whose_last_open_dependency_it_was(rules: Rules) -> None:
    rules.given(*done("schema"), added("parser"), claimed("parser"), submitted("parser"))
    rules.given(
        added("index", state="blocked", depends_on=("parser", "schema")),
        added("docs", state="blocked", depends_on=("parser",)),
    )

    events = rules.when(accept("parser", 3), by="bob")

    assert events == [
        accepted("parser"),
        JobUnblocked(job="docs", by="parser"),
        JobUnblocked(job="index", by="parser"),
    ]


def test_a_job_that_waits_for_others_too_stays_blocked(rules: Rules) -> None:
    rules.given(added("schema"), added("parser"), claimed("parser"), submitted("parser"))
    rules.given(added("index", state="blocked", depends_on=("parser", "schema")))

    events = rules.when(accept("parser", 3), by="bob")

    assert events == [accepted("parser")]


def test_a_job_that_does_not_wait_for_it_any_more_is_left_alone(rules: Rules) -> None:
    rules.given(added("schema"), added("parser"), claimed("parser"), submitted("parser"))
    rules.given(
        added("index", state="blocked", depends_on=("parser",)),
        revised("index", state="blocked", depends_on=("schema",), dropped=("parser",), payload_at=5),
    )

    events = rules.when(accept("parser", 3), by="bob")

    assert events == [accepted("parser")]


def test_a_job_with_a_similar_name_is_left_alone(rules: Rules) -> None:
    rules.given(added("parser2"), added("parser/x"), added("parser"), claimed("parser"), submitted("parser"))
    rules.given(
        added("index", state="blocked", depends_on=("parser2",)),
        added("docs", state="blocked", depends_on=("parser/x",)),
    )

    events = rules.when(accept("parser", 3), by="bob")

    assert events == [accepted("parser")]


def test_a_dependent_that_was_cancelled_meanwhile_stays_cancelled(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), submitted("parser"))
    rules.given(added("index", state="blocked", depends_on=("parser",)), cancelled("index"))

    events = rules.when(AcceptJob(job="parser", version=3), by="bob")

    assert events == [accepted("parser")]


def test_an_unblocked_job_is_ready_in_the_version_that_its_planner_saw(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), submitted("parser"))
    rules.given(added("index", state="blocked", depends_on=("parser",)))

    rules.given(*rules.when(accept("parser", 3), by="bob"))

    row = rules.views.jobs.get("index")
    assert row is not None
    assert (row.state, row.version) == ("ready", 1)


def test_a_job_that_was_accepted_again_unblocks_again(rules: Rules) -> None:
    rules.given(*done("parser"), reopened("parser", version=5))
    rules.given(claimed("parser", version=6, attempt=2, used=1), submitted("parser", version=7, attempt=2))
    rules.given(added("index", state="blocked", depends_on=("parser",)))

    events = rules.when(accept("parser", 7), by="bob")

    assert events == [accepted("parser", version=8, attempt=2), JobUnblocked(job="index", by="parser")]
