"""Taking a claim away, not wanting a job any more, and wanting it again."""

from __future__ import annotations

import pytest

from events.jobs import JobBlocked, JobCancelled, JobReopened, JobRevoked, State
from events.union import AnyEvent
from tests.decisions.given import (
    PARSER,
    VERSION,
    Rules,
    accepted,
    added,
    cancel,
    cancelled,
    claimed,
    done,
    failed,
    lapsed,
    reopen,
    reopened,
    reserved,
    revoke,
    submitted,
)

# Revoke


@pytest.mark.parametrize("state", [state for state in VERSION if state != "claimed"])
def test_only_a_claim_can_be_revoked(rules: Rules, state: State) -> None:
    rules.given(*PARSER[state])

    refusal = rules.refusal(revoke("parser", VERSION[state]))

    assert (refusal.code, refusal.values) == ("not_claimed", {"job": "parser", "state": state})


@pytest.mark.parametrize("by", ["ada", "bob", "planner"])
def test_anybody_may_revoke_a_claim(rules: Rules, by: str) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"))

    [event] = rules.when(revoke("parser", 2), by=by)

    assert isinstance(event, JobRevoked)


@pytest.mark.parametrize(("max_attempts", "state"), [(2, "ready"), (1, "failed")])
def test_a_revoked_attempt_is_used_up_and_its_paths_are_free(rules: Rules, max_attempts: int, state: State) -> None:
    rules.given(added("parser", max_attempts=max_attempts, paths=("src",)), claimed("parser", paths=("src",)))
    rules.given(reserved("parser", "doc", paths=("doc", "src")))

    events = rules.when(revoke("parser", 2), by="bob")

    assert events == [
        JobRevoked(job="parser", version=3, state=state, attempt=1, used=1, paths=("doc", "src"), reason="too slow")
    ]


# Cancel


@pytest.mark.parametrize("state", ["blocked", "ready", "submitted", "failed"])
def test_a_job_that_nobody_holds_is_cancelled_without_a_claim_that_ends(rules: Rules, state: State) -> None:
    rules.given(*PARSER[state])
    version = VERSION[state]

    events = rules.when(cancel("parser", version, "not needed"))

    assert events == [JobCancelled(job="parser", version=version + 1, state="cancelled", reason="not needed")]


def test_a_claim_on_a_cancelled_job_ends_and_its_paths_are_free(rules: Rules) -> None:
    rules.given(added("parser", paths=("src",)), claimed("parser", paths=("src",)))
    rules.given(reserved("parser", "doc", paths=("doc", "src")))

    events = rules.when(cancel("parser", 2), by="bob")

    assert events == [JobCancelled(job="parser", version=3, state="cancelled", attempt=1, paths=("doc", "src"))]


@pytest.mark.parametrize("state", ["accepted", "cancelled"])
def test_what_is_accepted_or_cancelled_is_not_cancelled(rules: Rules, state: State) -> None:
    rules.given(*PARSER[state])

    refusal = rules.refusal(cancel("parser", VERSION[state]))

    assert (refusal.code, refusal.values) == ("job_closed", {"job": "parser", "state": state})


def test_how_an_earlier_claim_ended_is_not_forgotten_when_the_job_is_cancelled_later(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), lapsed("parser"))

    rules.given(*rules.when(cancel("parser", 3)))

    lease = rules.views.leases.get("job/parser")
    assert lease is not None
    assert lease.ended == "lapsed"


# Reopen


@pytest.mark.parametrize("state", ["blocked", "ready", "claimed", "submitted"])
def test_only_a_closed_job_can_be_reopened(rules: Rules, state: State) -> None:
    rules.given(*PARSER[state])

    refusal = rules.refusal(reopen("parser", VERSION[state]))

    assert (refusal.code, refusal.values) == ("job_open", {"job": "parser", "state": state})


@pytest.mark.parametrize("state", ["accepted", "failed", "cancelled"])
def test_a_reopened_job_is_ready_and_has_used_no_attempt(rules: Rules, state: State) -> None:
    rules.given(*PARSER[state])
    version = VERSION[state]

    events = rules.when(reopen("parser", version))
    rules.given(*events)

    assert events == [JobReopened(job="parser", version=version + 1, state="ready")]
    row = rules.views.jobs.get("parser")
    assert row is not None
    assert (row.used, row.worker, row.reason, row.submitted) == (0, None, None, None)


@pytest.mark.parametrize(
    ("base", "state"), [(done("base"), "ready"), ([added("base")], "blocked")], ids=["accepted", "not accepted"]
)
def test_a_reopened_job_is_blocked_if_what_it_depends_on_is_not_accepted(
    rules: Rules, base: list[AnyEvent], state: State
) -> None:
    rules.given(*base, added("parser", state="blocked", depends_on=("base",)), cancelled("parser"))

    events = rules.when(reopen("parser", 2))

    assert events == [JobReopened(job="parser", version=3, state=state)]


def started(state: State) -> list[AnyEvent]:
    """The job `index`, which depends on `parser` and has come so far."""
    events = [added("index", depends_on=("parser",)), claimed("index"), submitted("index"), accepted("index")]
    return events[: {"claimed": 2, "submitted": 3, "accepted": 4}[state]]


@pytest.mark.parametrize("state", ["claimed", "submitted", "accepted"])
def test_a_job_is_not_reopened_under_those_that_have_started_to_build_on_it(rules: Rules, state: State) -> None:
    rules.given(*done("parser"), *started(state))

    refusal = rules.refusal(reopen("parser", 4))

    assert (refusal.code, refusal.values) == ("dependents_started", {"job": "parser", "dependents": {"index": state}})


def test_of_many_started_dependents_20_are_named(rules: Rules) -> None:
    names = [f"job-{number:02}" for number in range(25)]
    rules.given(*done("parser"))
    for name in names:
        rules.given(added(name, depends_on=("parser",)), claimed(name))

    refusal = rules.refusal(reopen("parser", 4))

    assert refusal.values["dependents"] == dict.fromkeys(names[:20], "claimed")


def test_that_a_job_is_open_is_told_before_its_dependents(rules: Rules) -> None:
    rules.given(*PARSER["ready"], *started("claimed"))

    refusal = rules.refusal(reopen("parser", 1))

    assert refusal.code == "job_open"


def test_dependents_that_were_ready_are_blocked_again(rules: Rules) -> None:
    rules.given(*done("parser"), added("index", depends_on=("parser",)), added("docs", depends_on=("parser",)))

    events = rules.when(reopen("parser", 4))
    rules.given(*events)

    assert events == [
        JobReopened(job="parser", version=5, state="ready"),
        JobBlocked(job="docs", by="parser"),
        JobBlocked(job="index", by="parser"),
    ]
    row = rules.views.jobs.get("index")
    assert row is not None
    assert (row.state, row.version) == ("blocked", 1)


@pytest.mark.parametrize(
    "closed",
    [
        [cancelled("index")],
        [claimed("index"), failed("index", state="failed")],
    ],
    ids=["cancelled", "failed"],
)
def test_dependents_that_are_closed_without_a_result_do_not_stand_in_the_way(
    rules: Rules, closed: list[AnyEvent]
) -> None:
    rules.given(*done("parser"), added("index", depends_on=("parser",)), *closed)

    events = rules.when(reopen("parser", 4))

    assert events == [JobReopened(job="parser", version=5, state="ready")]


def test_dependents_that_are_blocked_anyway_get_no_event(rules: Rules) -> None:
    rules.given(*done("parser"), added("base"), added("index", state="blocked", depends_on=("base", "parser")))

    events = rules.when(reopen("parser", 4))

    assert events == [JobReopened(job="parser", version=5, state="ready")]


def test_only_those_that_depend_on_it_directly_are_looked_at(rules: Rules) -> None:
    rules.given(*done("parser"), added("index", depends_on=("parser",)), cancelled("index"))
    rules.given(added("docs", state="blocked", depends_on=("index",)))

    events = rules.when(reopen("parser", 4))

    assert events == [JobReopened(job="parser", version=5, state="ready")]


def test_a_job_can_be_reopened_again_and_again(rules: Rules) -> None:
    rules.given(added("parser"), cancelled("parser"), reopened("parser", version=3), cancelled("parser", version=4))

    events = rules.when(reopen("parser", 4))

    assert events == [JobReopened(job="parser", version=5, state="ready")]
