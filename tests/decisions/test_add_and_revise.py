"""Adding a job, and describing it anew."""

from __future__ import annotations

import pytest
from msgspec import Raw

from events.jobs import JobAdded, JobRevised, State
from tests.decisions.given import (
    PARSER,
    UNTIL,
    VERSION,
    Rules,
    add,
    added,
    cancelled,
    claimed,
    done,
    failed,
    lapsed,
    released,
    revise,
    revised,
    shown,
)

# Adding


def test_an_added_job_is_ready_at_version_1_and_keeps_all_that_it_was_given(rules: Rules) -> None:
    command = add("parser", payload=b'{"n":1}', paths=("src",), priority=7, max_attempts=3, review="anyone")

    events = rules.when(command)

    assert events == [
        JobAdded(
            job="parser",
            version=1,
            state="ready",
            payload=Raw(b'{"n":1}'),
            paths=("src",),
            priority=7,
            max_attempts=3,
            review="anyone",
        )
    ]


def test_an_id_is_used_once(rules: Rules) -> None:
    rules.given(added("parser"))

    refusal = rules.refusal(add("parser", payload=b'{"another":true}'))

    assert (refusal.code, refusal.values) == ("job_exists", {"job": "parser"})


def test_the_id_of_a_cancelled_job_stays_used(rules: Rules) -> None:
    rules.given(added("parser"), cancelled("parser"))

    refusal = rules.refusal(add("parser"))

    assert refusal.code == "job_exists"


def test_a_job_whose_dependencies_are_all_accepted_is_ready(rules: Rules) -> None:
    rules.given(*done("schema"), *done("lexer"))

    [event] = rules.when(add("parser", depends_on=("schema", "lexer")))

    assert event == added("parser", state="ready", depends_on=("schema", "lexer"))


@pytest.mark.parametrize("waits_for", [("schema", "lexer"), ("lexer", "schema")])
def test_a_job_is_blocked_while_one_of_its_dependencies_is_not_accepted(
    rules: Rules, waits_for: tuple[str, ...]
) -> None:
    rules.given(*done("schema"), added("lexer"))

    [event] = rules.when(add("parser", depends_on=waits_for))

    assert event == added("parser", state="blocked", depends_on=waits_for)


@pytest.mark.parametrize("state", [state for state in VERSION if state != "accepted"])
def test_only_an_accepted_dependency_counts(rules: Rules, state: State) -> None:
    rules.given(*PARSER[state])

    [event] = rules.when(add("index", depends_on=("parser",)))

    assert isinstance(event, JobAdded)
    assert event.state == "blocked"


def test_a_job_cannot_depend_on_one_that_does_not_exist(rules: Rules) -> None:
    rules.given(added("schema"))

    refusal = rules.refusal(add("parser", depends_on=("schema", "lexer")))

    assert (refusal.code, refusal.values) == ("job_unknown", {"job": "lexer"})


def test_that_the_id_is_taken_is_told_before_what_is_wrong_with_the_dependencies(rules: Rules) -> None:
    rules.given(added("parser"))

    refusal = rules.refusal(add("parser", depends_on=("nothing",)))

    assert refusal.code == "job_exists"


def test_a_job_cannot_depend_on_itself_from_the_start(rules: Rules) -> None:
    refusal = rules.refusal(add("parser", depends_on=("parser",)))

    assert (refusal.code, refusal.values) == ("dependency_cycle", {"job": "parser", "through": ["parser"]})


def test_a_job_that_a_claim_adds_says_under_which_attempt(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"))

    events = rules.when(add("index", shown=shown("parser")))

    assert events == [added("index", under="parser", under_attempt=1)]


def test_a_claim_that_is_over_adds_nothing_not_even_a_job_that_exists(rules: Rules) -> None:
    rules.given(added("index"), added("parser"), claimed("parser"), lapsed("parser"))

    refusal = rules.refusal(add("index", shown=shown("parser")))

    assert refusal.code == "lease_lapsed"


def test_another_actor_cannot_add_with_somebody_elses_claim(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"))

    refusal = rules.refusal(add("index", shown=shown("parser")), by="bob")

    assert refusal.code == "token_unknown"


# Revising: when


@pytest.mark.parametrize(
    ("state", "code", "values"),
    [
        ("claimed", "already_claimed", {"job": "parser", "holder": "ada", "until": UNTIL}),
        ("submitted", "already_submitted", {"job": "parser"}),
        ("accepted", "job_closed", {"job": "parser", "state": "accepted"}),
        ("failed", "job_closed", {"job": "parser", "state": "failed"}),
        ("cancelled", "job_closed", {"job": "parser", "state": "cancelled"}),
    ],
)
def test_a_job_that_somebody_took_or_that_is_closed_is_not_revised(
    rules: Rules, state: State, code: str, values: dict[str, object]
) -> None:
    rules.given(*PARSER[state])

    refusal = rules.refusal(revise("parser", VERSION[state], priority=1))

    assert (refusal.code, refusal.values) == (code, values)


@pytest.mark.parametrize("state", ["blocked", "ready"])
def test_a_job_that_nobody_has_taken_can_be_revised(rules: Rules, state: State) -> None:
    rules.given(*PARSER[state])

    [event] = rules.when(revise("parser", VERSION[state], priority=1))

    assert isinstance(event, JobRevised)
    assert (event.state, event.priority) == (state, 1)


def test_a_revision_on_an_outdated_version_is_refused_before_the_state_is_looked_at(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"))

    refusal = rules.refusal(revise("parser", 1, priority=1))

    assert (refusal.code, refusal.values) == ("version_changed", {"job": "parser", "seen": 1, "current": 2})


def test_that_a_job_is_taken_is_told_before_a_cycle(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"))

    refusal = rules.refusal(revise("parser", 2, depends_on=("parser",)))

    assert refusal.code == "already_claimed"


# Revising: what


def test_a_revision_holds_the_whole_new_description_and_what_was_not_given_stays(rules: Rules) -> None:
    rules.given(*done("schema"), added("parser", paths=("src",), depends_on=("schema",), priority=3, max_attempts=4))

    events = rules.when(revise("parser", 1, review="anyone"))

    assert events == [
        JobRevised(
            job="parser",
            version=2,
            state="ready",
            payload_at=5,
            paths=("src",),
            depends_on=("schema",),
            priority=3,
            max_attempts=4,
            review="anyone",
            attempt=0,
            used=0,
        )
    ]


def test_a_new_payload_stands_in_the_revision_itself(rules: Rules) -> None:
    rules.given(added("parser", payload=b'{"n":1}'))

    [event] = rules.when(revise("parser", 1, payload=Raw(b'{"n":2}')))

    assert event == revised("parser", payload=Raw(b'{"n":2}'), payload_at=None)


def test_a_payload_that_stays_is_looked_up_where_it_was_last_written(rules: Rules) -> None:
    rules.given(added("other"), added("parser"), revised("parser", payload=Raw(b'{"n":2}'), payload_at=None))

    [event] = rules.when(revise("parser", 2, priority=1))

    assert event == revised("parser", version=3, priority=1, payload_at=3)


def test_every_field_can_be_revised_also_to_nothing(rules: Rules) -> None:
    rules.given(*done("schema"), added("parser", paths=("src",), depends_on=("schema",), priority=3))

    [event] = rules.when(
        revise("parser", 1, paths=(), depends_on=(), priority=0, max_attempts=2, review="none", payload=Raw(b"{}"))
    )

    assert event == revised(
        "parser", dropped=("schema",), max_attempts=2, review="none", payload=Raw(b"{}"), payload_at=None
    )


def test_a_revision_keeps_count_of_the_attempts(rules: Rules) -> None:
    rules.given(
        added("parser"),
        claimed("parser"),
        released("parser"),
        claimed("parser", version=4, attempt=2, used=1),
        failed("parser", version=5, attempt=2, used=1),
    )

    [event] = rules.when(revise("parser", 5, priority=1))

    assert event == revised("parser", version=6, priority=1, attempt=2, used=1)


@pytest.mark.parametrize("max_attempts", [1, 2])
def test_a_job_that_has_used_up_its_lowered_number_of_attempts_is_failed(rules: Rules, max_attempts: int) -> None:
    rules.given(
        added("parser"),
        claimed("parser"),
        failed("parser"),
        claimed("parser", version=4, attempt=2),
        failed("parser", version=5, attempt=2, used=2),
    )

    [event] = rules.when(revise("parser", 5, max_attempts=max_attempts))

    assert event == revised("parser", version=6, state="failed", max_attempts=max_attempts, attempt=2, used=2)


def test_a_blocked_job_that_has_used_up_its_lowered_number_of_attempts_is_failed_too(rules: Rules) -> None:
    rules.given(
        added("base"),
        added("parser"),
        claimed("parser"),
        failed("parser"),
        revised("parser", version=4, state="blocked", depends_on=("base",), attempt=1, used=1, payload_at=2),
    )

    [event] = rules.when(revise("parser", 4, max_attempts=1))

    assert isinstance(event, JobRevised)
    assert event.state == "failed"


def test_a_lowered_number_that_leaves_an_attempt_leaves_the_job_ready(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), failed("parser"))

    [event] = rules.when(revise("parser", 3, max_attempts=2))

    assert event == revised("parser", version=4, max_attempts=2, attempt=1, used=1)


# Revising: whom it waits for


def test_a_ready_job_that_must_wait_for_another_one_becomes_blocked(rules: Rules) -> None:
    rules.given(added("base"), added("parser"))

    [event] = rules.when(revise("parser", 1, depends_on=("base",)))

    assert event == revised("parser", state="blocked", depends_on=("base",), payload_at=2)


def test_a_blocked_job_that_need_not_wait_any_more_becomes_ready(rules: Rules) -> None:
    rules.given(*PARSER["blocked"])

    [event] = rules.when(revise("parser", 1, depends_on=()))

    assert event == revised("parser", state="ready", dropped=("base",), payload_at=2)


def test_only_the_dependencies_that_it_lost_are_named_as_dropped(rules: Rules) -> None:
    rules.given(added("a"), added("b"), added("c"), added("parser", state="blocked", depends_on=("a", "b", "c")))

    [event] = rules.when(revise("parser", 1, depends_on=("c", "b")))

    assert event == revised("parser", state="blocked", depends_on=("c", "b"), dropped=("a",), payload_at=4)


def test_a_job_cannot_come_to_wait_for_one_that_does_not_exist(rules: Rules) -> None:
    rules.given(added("parser"))

    refusal = rules.refusal(revise("parser", 1, depends_on=("nothing",)))

    assert (refusal.code, refusal.values) == ("job_unknown", {"job": "nothing"})


def test_a_job_cannot_come_to_wait_for_itself(rules: Rules) -> None:
    rules.given(added("parser"))

    refusal = rules.refusal(revise("parser", 1, depends_on=("parser",)))

    assert (refusal.code, refusal.values) == ("dependency_cycle", {"job": "parser", "through": ["parser"]})


def test_a_cycle_through_other_jobs_is_refused_and_the_way_is_named(rules: Rules) -> None:
    rules.given(
        added("a"),
        added("b", state="blocked", depends_on=("a",)),
        added("c", state="blocked", depends_on=("b",)),
        added("aside", state="blocked", depends_on=("a",)),
    )

    refusal = rules.refusal(revise("a", 1, depends_on=("c",)))

    assert (refusal.code, refusal.values) == ("dependency_cycle", {"job": "a", "through": ["a", "c", "b"]})
    assert str(refusal).startswith("job 'a' would wait for itself: a → c → b → a (")


def test_two_ways_to_the_same_job_are_no_cycle(rules: Rules) -> None:
    rules.given(
        added("top"),
        added("left", state="blocked", depends_on=("top",)),
        added("right", state="blocked", depends_on=("top",)),
        added("parser"),
    )

    [event] = rules.when(revise("parser", 1, depends_on=("left", "right")))

    assert event == revised("parser", state="blocked", depends_on=("left", "right"), payload_at=4)


def test_a_dependency_that_was_revised_away_makes_no_cycle_any_more(rules: Rules) -> None:
    rules.given(added("a"), added("b", state="blocked", depends_on=("a",)), revised("b", dropped=("a",), payload_at=2))

    [event] = rules.when(revise("a", 1, depends_on=("b",)))

    assert event == revised("a", state="blocked", depends_on=("b",))
