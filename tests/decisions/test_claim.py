"""Claiming a job that was seen."""

from __future__ import annotations

import pytest

from coordinator.refusals import PathClash
from events.jobs import JobClaimed, State
from tests.decisions.given import (
    NONCE,
    NOW,
    PARSER,
    UNTIL,
    VERSION,
    Rules,
    accept,
    added,
    cancel,
    claim,
    claimed,
    done,
    failed,
    lapsed,
    reject,
    rejected,
    released,
    reopen,
    reopened,
    revise,
    revised,
    revoke,
    revoked,
    submitted,
)


def test_a_claim_is_granted_with_a_lease_all_paths_and_the_token_that_was_drawn_for_it(rules: Rules) -> None:
    rules.given(added("parser", paths=("doc", "src")))

    events = rules.when(claim("parser", 1, lease_us=30_000_000), by="ada", now=NOW + 5)

    assert events == [
        JobClaimed(
            job="parser",
            version=2,
            worker="ada",
            attempt=1,
            used=1,
            nonce=NONCE.value,
            token_digest=NONCE.token_digest,
            lease_us=30_000_000,
            lease_until=NOW + 5 + 30_000_000,
            paths=("doc", "src"),
            defined=1,
        )
    ]


def test_a_claim_points_to_the_event_that_describes_the_job_as_it_is_now(rules: Rules) -> None:
    rules.given(added("parser"), added("other"), revised("parser", priority=1))

    [event] = rules.when(claim("parser", 2))

    assert isinstance(event, JobClaimed)
    assert event.defined == 3


@pytest.mark.parametrize(
    ("state", "code", "values"),
    [
        ("blocked", "dependencies_unaccepted", {"job": "parser", "dependencies": {"base": "ready"}, "more": 0}),
        ("claimed", "already_claimed", {"job": "parser", "holder": "ada", "until": UNTIL}),
        ("submitted", "already_submitted", {"job": "parser"}),
        ("accepted", "job_closed", {"job": "parser", "state": "accepted"}),
        ("failed", "attempts_exhausted", {"job": "parser", "used": 1, "max_attempts": 1}),
        ("cancelled", "job_closed", {"job": "parser", "state": "cancelled"}),
    ],
)
def test_only_a_ready_job_can_be_claimed(rules: Rules, state: State, code: str, values: dict[str, object]) -> None:
    rules.given(*PARSER[state])

    refusal = rules.refusal(claim("parser", VERSION[state]), by="bob")

    assert (refusal.code, refusal.values) == (code, values)


def test_the_holder_itself_cannot_claim_its_job_again(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"))

    refusal = rules.refusal(claim("parser", 2), by="ada")

    assert refusal.code == "already_claimed"


# What every command about a seen job begins with


VERSIONED = {
    "claim": claim,
    "revise": revise,
    "accept": accept,
    "reject": reject,
    "revoke": revoke,
    "cancel": cancel,
    "reopen": reopen,
}


@pytest.mark.parametrize("state", VERSION)
@pytest.mark.parametrize("command", VERSIONED)
@pytest.mark.parametrize("off", [-1, 1])
def test_a_command_about_another_version_than_the_current_is_refused_whatever_the_state(
    rules: Rules, command: str, state: State, off: int
) -> None:
    rules.given(*PARSER[state])
    current = VERSION[state]

    refusal = rules.refusal(VERSIONED[command]("parser", current + off), by="bob")

    assert refusal.code == "version_changed"
    assert refusal.values == {"job": "parser", "seen": current + off, "current": current}


@pytest.mark.parametrize("command", VERSIONED)
def test_a_command_about_a_job_that_does_not_exist_is_refused(rules: Rules, command: str) -> None:
    rules.given(added("other"))

    refusal = rules.refusal(VERSIONED[command]("parser", 1))

    assert (refusal.code, refusal.values) == ("job_unknown", {"job": "parser"})


# Dependencies


def test_a_claim_is_refused_with_the_name_of_each_dependency_that_is_not_accepted(rules: Rules) -> None:
    rules.given(
        *done("schema"),
        added("lexer"),
        added("docs"),
        claimed("docs"),
        added("parser", state="blocked", depends_on=("lexer", "schema", "docs")),
    )

    refusal = rules.refusal(claim("parser", 1))

    assert refusal.code == "dependencies_unaccepted"
    assert refusal.values["dependencies"] == {"lexer": "ready", "docs": "claimed"}


def test_of_many_unaccepted_dependencies_20_are_named_and_the_rest_counted(rules: Rules) -> None:
    names = tuple(f"job-{number:02}" for number in range(23))
    rules.given(*map(added, names), added("parser", state="blocked", depends_on=names))

    refusal = rules.refusal(claim("parser", 1))

    assert refusal.values["dependencies"] == dict.fromkeys(names[:20], "ready")
    assert refusal.values["more"] == 3
    assert "and 3 more" in str(refusal)


# Attempts


def test_attempts_are_numbered_on_and_on_and_counted_as_used(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), failed("parser", reason="it rained"))

    [event] = rules.when(claim("parser", 3), by="bob")

    assert event == claimed(
        "parser",
        by="bob",
        version=4,
        attempt=2,
        used=2,
        reason="it rained",
        nonce=NONCE.value,
        token_digest=NONCE.token_digest,
    )


def test_a_released_attempt_has_a_number_but_is_not_counted_as_used(rules: Rules) -> None:
    rules.given(added("parser", max_attempts=1), claimed("parser"), released("parser"))

    [event] = rules.when(claim("parser", 3))

    assert isinstance(event, JobClaimed)
    assert (event.attempt, event.used) == (2, 1)


def test_a_reopened_job_counts_its_attempts_from_zero_and_numbers_them_on(rules: Rules) -> None:
    rules.given(*PARSER["failed"], reopened("parser", version=4))

    [event] = rules.when(claim("parser", 4))

    assert isinstance(event, JobClaimed)
    assert (event.attempt, event.used, event.reason) == (2, 1, None)


def test_a_job_without_attempts_left_is_not_claimed_even_if_it_were_ready(rules: Rules) -> None:
    """No rule leaves such a job; the guard stands on its own all the same, and before that of the paths."""
    rules.given(
        added("holder", paths=("src",)),
        claimed("holder", by="bob", paths=("src",)),
        added("parser", max_attempts=1, paths=("src",)),
        claimed("parser"),
        failed("parser", state="ready"),
    )

    refusal = rules.refusal(claim("parser", 3))

    assert (refusal.code, refusal.values) == ("attempts_exhausted", {"job": "parser", "used": 1, "max_attempts": 1})


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ([failed("parser", reason="it rained")], "it rained"),
        ([released("parser", reason="lunch")], "lunch"),
        ([released("parser")], None),
        ([revoked("parser", reason="too slow")], "too slow"),
        ([lapsed("parser")], "attempt 1 of ada lapsed"),
        ([submitted("parser"), rejected("parser")], "incomplete"),
    ],
)
def test_a_claim_tells_how_the_attempt_before_it_ended(rules: Rules, end: list[object], reason: str | None) -> None:
    rules.given(added("parser"), claimed("parser"), *end)  # pyright: ignore[reportArgumentType]

    [event] = rules.when(claim("parser", 2 + len(end)))

    assert isinstance(event, JobClaimed)
    assert event.reason == reason


# Paths


def test_a_claim_is_refused_as_a_whole_if_one_of_its_paths_is_reserved(rules: Rules) -> None:
    rules.given(
        added("index", paths=("src",)),
        claimed("index", by="bob", paths=("src",), lease_until=UNTIL + 7),
        added("parser", paths=("doc", "src", "test")),
    )

    refusal = rules.refusal(claim("parser", 1))

    assert refusal.code == "path_clash"
    assert refusal.values == {
        "job": "parser",
        "clashes": [{"path": "src", "held": "src", "holder": "bob", "job": "index", "until": UNTIL + 7}],
        "more": 0,
    }


def test_a_reservation_that_ended_stands_in_nobodys_way(rules: Rules) -> None:
    rules.given(
        added("index", paths=("src",)),
        claimed("index", by="bob", paths=("src",)),
        submitted("index", by="bob", paths=("src",)),
        added("parser", paths=("src",)),
    )

    [event] = rules.when(claim("parser", 1))

    assert isinstance(event, JobClaimed)
    assert event.paths == ("src",)


def test_of_many_clashes_20_are_named_and_the_rest_counted(rules: Rules) -> None:
    names = tuple(f"src/{number:02}" for number in range(25))
    rules.given(added("index", paths=names), claimed("index", by="bob", paths=names), added("parser", paths=("src",)))

    refusal = rules.refusal(claim("parser", 1))

    assert isinstance(refusal, PathClash)
    assert [clash.held for clash in refusal.clashes] == list(names[:20])
    assert refusal.more == 5
    assert "and 5 more" in str(refusal)


def test_of_very_many_clashes_a_thousand_are_counted(rules: Rules) -> None:
    names = tuple(f"src/{number:04}" for number in range(1_100))
    rules.given(added("index", paths=names), claimed("index", by="bob", paths=names), added("parser", paths=(".",)))

    refusal = rules.refusal(claim("parser", 1))

    assert isinstance(refusal, PathClash)
    assert refusal.more == 980


def test_a_claim_of_a_job_without_paths_clashes_with_nothing(rules: Rules) -> None:
    rules.given(added("all", paths=(".",)), claimed("all", by="bob", paths=(".",)), added("parser"))

    events = rules.when(claim("parser", 1), now=NOW)

    assert events == [claimed("parser", nonce=NONCE.value, token_digest=NONCE.token_digest, defined=3)]
