"""What the holder of a claim can do with it, and the guard that every such write passes first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import Raw

from coordinator.commands import AnyCommand
from coordinator.decisions.attempts import due, lapse
from events.jobs import (
    JobAccepted,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobReleased,
    JobRenewed,
    JobSubmitted,
    JobUnblocked,
    State,
)
from events.union import AnyEvent
from tests.decisions.given import (
    LEASE,
    NOW,
    UNTIL,
    Rules,
    accepted,
    add,
    added,
    cancelled,
    claimed,
    done,
    fail,
    failed,
    lapsed,
    note,
    release,
    released,
    renew,
    reopened,
    reserve,
    reserved,
    revoked,
    shown,
    submit,
    submitted,
    token,
)

WRITES: dict[str, Callable[[str, int], AnyCommand]] = {
    "renew": renew,
    "note": note,
    "reserve": lambda job, attempt: reserve(job, "doc", attempt=attempt),
    "submit": submit,
    "fail": fail,
    "release": release,
    "add": lambda job, attempt: add("another", shown=shown(job, attempt)),
}

every_write = pytest.mark.parametrize("write", WRITES)


# The guard


@every_write
def test_the_holder_of_the_latest_claim_may_write(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser"), failed("parser"), claimed("parser", version=4, attempt=2))

    events = rules.when(WRITES[write]("parser", 2), by="ada")

    assert len(events) == 1


@every_write
def test_a_token_that_was_never_granted_is_unknown(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser"))

    refusal = rules.refusal(WRITES[write]("parser", 2))

    assert (refusal.code, refusal.values) == ("token_unknown", {"subject": "job/parser"})


@every_write
def test_a_token_is_valid_only_from_the_actor_that_claimed(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"))

    refusal = rules.refusal(WRITES[write]("parser", 1), by="bob")

    assert (refusal.code, refusal.values) == ("token_unknown", {"subject": "job/parser"})


@every_write
def test_a_token_is_valid_only_for_the_job_that_it_was_granted_for(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser"), added("index"))
    rules.given(claimed("index", token_digest=token("parser", 2)))

    refusal = rules.refusal(WRITES[write]("parser", 2))

    assert (refusal.code, refusal.values) == ("token_unknown", {"subject": "job/parser"})


@every_write
def test_an_old_token_is_unknown_to_another_job_and_to_another_actor(rules: Rules, write: str) -> None:
    rules.given(added("index"), claimed("index", token_digest=token("parser", 7)), lapsed("index"))
    rules.given(claimed("index", version=4, attempt=2), added("parser"), claimed("parser"), lapsed("parser"))
    rules.given(claimed("parser", version=4, attempt=2))

    other_job = rules.refusal(WRITES[write]("parser", 7))
    other_actor = rules.refusal(WRITES[write]("parser", 1), by="bob")

    assert (other_job.code, other_job.values) == ("token_unknown", {"subject": "job/parser"})
    assert (other_actor.code, other_actor.values) == ("token_unknown", {"subject": "job/parser"})


@every_write
def test_a_token_for_a_job_that_does_not_exist_is_unknown(rules: Rules, write: str) -> None:
    refusal = rules.refusal(WRITES[write]("parser", 1))

    assert refusal.code == "token_unknown"


@every_write
def test_a_worker_whose_job_was_claimed_anew_is_told_by_whom(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"), lapsed("parser"))
    rules.given(claimed("parser", by="bob", version=4, attempt=2))

    refusal = rules.refusal(WRITES[write]("parser", 1), by="ada")

    assert refusal.code == "token_superseded"
    assert refusal.values == {"subject": "job/parser", "attempt": 1, "current": 2, "holder": "bob"}


@every_write
def test_a_worker_that_claimed_its_own_job_anew_cannot_use_its_old_token(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser"), lapsed("parser"), claimed("parser", version=4, attempt=2))

    refusal = rules.refusal(WRITES[write]("parser", 1), by="ada")

    assert refusal.code == "token_superseded"


@every_write
@pytest.mark.parametrize("then", ["lapsed", "submitted"])
def test_a_token_stays_superseded_when_the_claim_after_it_is_over_too(rules: Rules, write: str, then: str) -> None:
    rules.given(added("parser"), claimed("parser"), lapsed("parser"), claimed("parser", "bob", version=4, attempt=2))
    if then == "lapsed":
        rules.given(lapsed("parser", version=5, attempt=2, used=2))
    else:
        rules.given(submitted("parser", "bob", version=5, attempt=2, used=2))

    refusal = rules.refusal(WRITES[write]("parser", 1), by="ada")

    assert refusal.code == "token_superseded"


@every_write
def test_a_worker_whose_lease_ran_out_is_told_when(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser"), lapsed("parser", lease_until=UNTIL))

    refusal = rules.refusal(WRITES[write]("parser", 1))

    assert refusal.code == "lease_lapsed"
    assert refusal.values == {"subject": "job/parser", "attempt": 1, "lease_until": UNTIL}


@every_write
@pytest.mark.parametrize(
    ("end", "how"),
    [
        (submitted("parser"), "submitted"),
        (failed("parser"), "failed"),
        (released("parser"), "released"),
        (revoked("parser"), "revoked"),
        (cancelled("parser", version=3, attempt=1), "cancelled"),
    ],
)
def test_a_claim_that_ended_is_over_and_the_worker_is_told_how(
    rules: Rules, write: str, end: AnyEvent, how: str
) -> None:
    rules.given(added("parser"), claimed("parser"), end)

    refusal = rules.refusal(WRITES[write]("parser", 1))

    assert refusal.code == "claim_ended"
    assert refusal.values == {"subject": "job/parser", "attempt": 1, "how": how}


@every_write
def test_how_a_claim_ended_is_remembered_when_the_job_went_on_without_one(rules: Rules, write: str) -> None:
    rules.given(*done("parser"), reopened("parser", version=5), cancelled("parser", version=6))

    refusal = rules.refusal(WRITES[write]("parser", 1))

    assert (refusal.code, refusal.values["how"]) == ("claim_ended", "submitted")


@every_write
@pytest.mark.parametrize("end", [lapsed("parser"), submitted("parser")], ids=["lapsed", "submitted"])
def test_others_learn_nothing_about_a_claim_that_is_over(rules: Rules, write: str, end: AnyEvent) -> None:
    rules.given(added("parser"), claimed("parser", by="ada"), end)

    refusal = rules.refusal(WRITES[write]("parser", 1), by="bob")

    assert refusal.code == "token_unknown"


def test_a_lost_claim_is_told_before_a_clash_of_paths(rules: Rules) -> None:
    rules.given(added("index"), claimed("index", by="bob", paths=("doc",)), added("parser"))
    rules.given(claimed("parser"), lapsed("parser"))

    refusal = rules.refusal(reserve("parser", "doc"))

    assert refusal.code == "lease_lapsed"


# Renew, note


def test_a_renewal_counts_from_now_and_is_as_long_as_the_lease_was(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser", lease_us=30_000_000))

    events = rules.when(renew("parser"), now=NOW + 7)

    assert events == [JobRenewed(job="parser", attempt=1, lease_us=30_000_000, lease_until=NOW + 7 + 30_000_000)]


def test_a_renewal_can_name_another_length_which_then_holds(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"))
    rules.given(JobRenewed(job="parser", attempt=1, lease_us=9_000_000, lease_until=NOW + 9_000_000))

    shorter = rules.when(renew("parser", lease_us=5_000_000), now=NOW + 1)
    as_before = rules.when(renew("parser"), now=NOW + 1)

    assert shorter == [JobRenewed(job="parser", attempt=1, lease_us=5_000_000, lease_until=NOW + 5_000_001)]
    assert as_before == [JobRenewed(job="parser", attempt=1, lease_us=9_000_000, lease_until=NOW + 9_000_001)]


def test_a_note_is_kept_as_it_is(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"))

    events = rules.when(note("parser"))

    assert events == [JobNoted(job="parser", attempt=1, note=Raw(b'{"progress":0.5}'))]


@pytest.mark.parametrize("write", ["renew", "note", "reserve"])
def test_what_does_not_end_the_claim_does_not_change_the_version(rules: Rules, write: str) -> None:
    rules.given(added("parser"), claimed("parser"))

    rules.given(*rules.when(WRITES[write]("parser", 1)))

    row = rules.views.jobs.get("parser")
    assert row is not None
    assert (row.version, row.state) == (2, "claimed")


# Submit, fail, release


def test_submitting_ends_the_claim_frees_its_paths_and_uses_nothing_up(rules: Rules) -> None:
    rules.given(added("parser", paths=("src",)), claimed("parser", paths=("src",)))
    rules.given(reserved("parser", "doc", paths=("doc", "src")))

    events = rules.when(submit("parser"))

    assert events == [
        JobSubmitted(
            job="parser",
            version=3,
            state="submitted",
            attempt=1,
            used=1,
            paths=("doc", "src"),
            worker="ada",
            result=Raw(b'{"lines":7}'),
        )
    ]


@pytest.mark.parametrize("review", ["other", "anyone"])
def test_a_submitted_job_waits_for_its_review(rules: Rules, review: str) -> None:
    rules.given(added("parser", review=review), claimed("parser"))

    [event] = rules.when(submit("parser"))

    assert isinstance(event, JobSubmitted)
    assert event.state == "submitted"


def test_a_job_that_needs_no_review_is_accepted_with_its_submission(rules: Rules) -> None:
    rules.given(added("parser", review="none"), claimed("parser"))

    events = rules.when(submit("parser"))

    assert events == [
        submitted("parser", result=b'{"lines":7}'),
        JobAccepted(job="parser", version=4, state="accepted", attempt=1),
    ]


def test_a_job_that_needs_no_review_unblocks_those_that_wait_for_it(rules: Rules) -> None:
    rules.given(added("parser", review="none"), added("index", state="blocked", depends_on=("parser",)))
    rules.given(claimed("parser"))

    events = rules.when(submit("parser"))

    assert events[2:] == [JobUnblocked(job="index", by="parser")]


@pytest.mark.parametrize(("max_attempts", "state"), [(2, "ready"), (1, "failed")])
def test_a_failed_attempt_leaves_the_job_ready_while_attempts_are_left(
    rules: Rules, max_attempts: int, state: State
) -> None:
    rules.given(added("parser", max_attempts=max_attempts), claimed("parser", paths=("src",)))

    events = rules.when(fail("parser"))

    assert events == [
        JobFailed(job="parser", version=3, state=state, attempt=1, used=1, paths=("src",), reason="no luck")
    ]


@pytest.mark.parametrize("max_attempts", [1, 2])
def test_a_released_attempt_is_not_used_up_and_leaves_the_job_ready(rules: Rules, max_attempts: int) -> None:
    rules.given(added("parser", max_attempts=max_attempts), claimed("parser", paths=("src",)))

    events = rules.when(release("parser", reason="lunch"))

    assert events == [
        JobReleased(job="parser", version=3, state="ready", attempt=1, used=0, paths=("src",), reason="lunch")
    ]


def test_a_release_gives_back_only_its_own_attempt(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), failed("parser"), claimed("parser", version=4, attempt=2))

    [event] = rules.when(release("parser", 2))

    assert isinstance(event, JobReleased)
    assert (event.attempt, event.used) == (2, 1)


# Lapses


def test_a_lease_is_due_at_its_end_and_not_before(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser", lease_until=UNTIL))

    before, at, after = (due(rules.views, UNTIL + off) for off in (-1, 0, 1))

    assert before == []
    assert [lease.subject for lease in at] == ["job/parser"]
    assert at == after


def test_a_renewed_lease_is_due_at_its_new_end(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser", lease_until=UNTIL))
    rules.given(JobRenewed(job="parser", attempt=1, lease_us=LEASE, lease_until=UNTIL + 5))

    assert due(rules.views, UNTIL + 4) == []
    assert len(due(rules.views, UNTIL + 5)) == 1


def test_leases_are_due_in_the_order_in_which_they_ran_out(rules: Rules) -> None:
    rules.given(added("late"), claimed("late", lease_until=UNTIL + 2), added("early"))
    rules.given(claimed("early", lease_until=UNTIL + 1), added("not yet"), claimed("not yet", lease_until=UNTIL + 9))

    found = due(rules.views, UNTIL + 3)

    assert [lease.subject for lease in found] == ["job/early", "job/late"]


@pytest.mark.parametrize(
    "end", [submitted("parser"), failed("parser"), released("parser"), lapsed("parser"), revoked("parser")]
)
def test_a_claim_that_ended_is_never_due(rules: Rules, end: AnyEvent) -> None:
    rules.given(added("parser"), claimed("parser", lease_until=UNTIL), end)

    assert due(rules.views, UNTIL + LEASE) == []


@pytest.mark.parametrize(("max_attempts", "state"), [(2, "ready"), (1, "failed")])
def test_a_lapse_uses_the_attempt_frees_the_paths_and_names_the_end_that_was_missed(
    rules: Rules, max_attempts: int, state: State
) -> None:
    rules.given(added("parser", max_attempts=max_attempts), claimed("parser", paths=("src",), lease_until=UNTIL))
    rules.given(reserved("parser", "doc", paths=("doc", "src")))
    [lease] = due(rules.views, UNTIL + LEASE)

    event = lapse(lease, rules.views)

    assert event == JobLapsed(
        job="parser", version=3, state=state, attempt=1, used=1, paths=("doc", "src"), lease_until=UNTIL
    )


def test_a_submitted_job_never_lapses_into_ready(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"), submitted("parser"), accepted("parser"))

    assert due(rules.views, UNTIL * 2) == []
