"""For each rule of jobs: a log that breaks it, and it alone, and the audit that says so."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from events.base import Event
from events.jobs import (
    JobAccepted,
    JobAdded,
    JobBlocked,
    JobCancelled,
    JobClaimed,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobRejected,
    JobReleased,
    JobReopened,
    JobReserved,
    JobRevised,
    JobRevoked,
    JobSubmitted,
    JobUnblocked,
)
from events.messages import MessageSent
from tests.audit.story import LEASE_US, Tampered

NOTHING = Raw(b"{}")


def added(job: str = "new", **fields: Any) -> JobAdded:
    given: dict[str, Any] = {"version": 1, "state": "ready", "max_attempts": 5, "review": "other", **fields}
    return JobAdded(job=job, payload=NOTHING, **given)


def revised(job: str, **fields: Any) -> JobRevised:
    given: dict[str, Any] = {"version": 2, "state": "ready", "max_attempts": 5, "review": "other", **fields}
    return JobRevised(**{"job": job, "attempt": 0, "used": 0, **given})


def claimed(log: Tampered, job: str, **fields: Any) -> JobClaimed:
    secret: dict[str, Any] = {"nonce": "n", "token_digest": job, "lease_us": LEASE_US}
    lease = {"lease_until": log.now + LEASE_US, "defined": 1}
    return JobClaimed(
        **{"job": job, "version": 2, "worker": "bob", "attempt": 1, "used": 1, **secret, **lease, **fields}
    )


def noted(job: str = "live", attempt: int = 1) -> JobNoted:
    return JobNoted(job=job, attempt=attempt, note=NOTHING)


def submitted(**fields: Any) -> JobSubmitted:
    of_live: dict[str, Any] = {"job": "live", "version": 3, "state": "submitted", "attempt": 1, "used": 1}
    return JobSubmitted(**{**of_live, "paths": ("src",), "worker": "bob", "result": NOTHING, **fields})


def ended(type_: type[Any], **fields: Any) -> Event:
    """The claim of `live`, which ended in some way."""
    of_live: dict[str, Any] = {"job": "live", "version": 3, "state": "ready", "attempt": 1, "used": 1}
    return type_(**{**of_live, "paths": ("src",), "reason": "so", **fields})


APPENDED: dict[str, tuple[str, str | None, Event]] = {
    "added twice": ("job", "ada", added("top")),
    "never added": ("job", "ada", JobCancelled(job="ghost", version=2, state="cancelled")),
    "added as another version": ("version", "ada", added(version=2)),
    "a version left out": ("version", "ada", JobCancelled(job="top", version=3, state="cancelled")),
    "added as waiting for nothing": ("state", "ada", added(state="blocked")),
    "added as ready before its dependency": ("state", "ada", added(depends_on=("live",))),
    "waiting for a job that is not there": ("dependency", "ada", added(state="blocked", depends_on=("ghost",))),
    "written after the end": ("guard", "bob", noted("done")),
    "written by somebody else": ("guard", "eve", noted()),
    "written by an attempt before": ("guard", "bob", noted(attempt=2)),
    "reserved by somebody else": ("guard", "eve", JobReserved(job="live", attempt=1, added=("x",), paths=("src", "x"))),
    "failed by somebody else": ("guard", "eve", ended(JobFailed)),
    "released by somebody else": ("guard", "eve", ended(JobReleased, used=0)),
    "added under an ended claim": ("guard", "bob", added(under="done", under_attempt=1)),
    "sent under an ended claim": (
        "guard",
        "bob",
        MessageSent(topic="news", number=4, body=NOTHING, under="done", under_attempt=1),
    ),
    "submitted for another": ("claim", "bob", submitted(worker="eve")),
    "submitted as accepted": ("state", "bob", submitted(state="accepted")),
    "released as failed": ("state", "bob", ended(JobReleased, used=0, state="failed")),
    "failed with attempts left": ("state", "bob", ended(JobFailed, state="failed")),
    "revoked with attempts left": ("state", "ada", ended(JobRevoked, state="failed")),
    "a release that uses the attempt up": ("attempts", "bob", ended(JobReleased)),
    "a failure that does not": ("attempts", "bob", ended(JobFailed, used=0)),
    "a revocation of another attempt": ("attempt", "ada", ended(JobRevoked, attempt=2)),
    "a cancellation of another attempt": (
        "attempt",
        "ada",
        JobCancelled(job="live", version=3, state="cancelled", attempt=2, paths=("src",)),
    ),
    "cancelled twice over": ("state", "ada", JobCancelled(job="done", version=5, state="cancelled")),
    "reviewed before it was submitted": (
        "review",
        "ada",
        JobRejected(job="top", version=2, state="ready", attempt=0, reason="no"),
    ),
    "reviewed by its worker": ("review", "bob", JobAccepted(job="handed", version=4, state="accepted", attempt=1)),
    "rejected by its worker": (
        "review",
        "bob",
        JobRejected(job="handed", version=4, state="ready", attempt=1, reason="no"),
    ),
    "another attempt reviewed": ("attempt", "ada", JobAccepted(job="handed", version=4, state="accepted", attempt=2)),
    "rejected as failed": (
        "state",
        "ada",
        JobRejected(job="handed", version=4, state="failed", attempt=1, reason="no"),
    ),
    "revised after the end": ("state", "ada", revised("handed", version=4, attempt=1, used=1)),
    "revised with other attempts": ("attempts", "ada", revised("top", used=1)),
    "reopened while open": ("state", "ada", JobReopened(job="top", version=2, state="ready")),
    "unblocked by nothing": ("dependency", "ada", JobUnblocked(job="waits", by="live")),
    "blocked by nothing": ("dependency", "ada", JobBlocked(job="top", by="done")),
    "the end names too few paths": ("paths", "bob", submitted(paths=())),
    "a reservation names others": (
        "paths",
        "bob",
        JobReserved(job="live", attempt=1, added=("x",), paths=("x",)),
    ),
}


@pytest.mark.parametrize("name", APPENDED)
def test_an_event_that_cannot_have_come_about_is_reported_by_its_rule_alone(name: str, log: Tampered) -> None:
    rule, actor, event = APPENDED[name]

    position = log.append(actor, event)

    assert log.found() == [(rule, position)]


CLAIMED: dict[str, tuple[str, dict[str, Any]]] = {
    "a blocked job": ("dependency", {"job": "waits"}),
    "a closed job": ("state", {"job": "done", "version": 5, "attempt": 2, "used": 2}),
    "another attempt than the next": ("attempt", {"job": "top", "attempt": 2}),
    "more attempts than used": ("attempts", {"job": "top", "used": 2}),
    "for somebody else": ("claim", {"job": "top", "worker": "eve"}),
    "for another time than it says": ("lease", {"job": "top", "lease_until": 1}),
    "below a held path": ("paths", {"job": "top", "paths": ("SRC/x",)}),
    "above a held path": ("paths", {"job": "top", "paths": (".",)}),
    "a held path": ("paths", {"job": "top", "paths": ("src",)}),
    "while it is held": ("one claim", {"job": "live", "version": 3, "attempt": 2, "used": 2}),
}


@pytest.mark.parametrize("name", CLAIMED)
def test_a_claim_that_cannot_have_been_given_is_reported(name: str, log: Tampered) -> None:
    rule, fields = CLAIMED[name]

    position = log.append("bob", claimed(log, **fields))

    assert (rule, position) in (found := log.found())
    assert {place for _, place in found} == {position}
    assert {said for said, _ in found} <= {rule, "state"}  # a job whose dependency is open is not ready, either


def test_a_claim_beyond_the_attempts_is_reported(log: Tampered) -> None:
    log.change(log.at("job.added", "job/live"), max_attempts=0)

    assert log.found() == [("attempts", log.at("job.claimed", "job/live"))]


def test_a_write_after_the_lease_is_reported(log: Tampered) -> None:
    position = log.append("bob", noted(), after_us=LEASE_US)

    assert log.found() == [("guard", position)]


def test_a_write_a_moment_before_the_end_of_the_lease_is_none(log: Tampered) -> None:
    log.append("bob", noted(), after_us=LEASE_US - 1)

    assert log.found() == []


def test_a_renewal_that_was_not_counted_from_its_time_is_reported(log: Tampered) -> None:
    renewed = log.at("job.renewed")

    log.change(renewed, lease_until=log.now + LEASE_US)

    assert log.found() == [("lease", renewed)]


@pytest.mark.parametrize(
    ("after_us", "fields"),
    [(LEASE_US - 1, {}), (LEASE_US, {"attempt": 2}), (LEASE_US, {"until": 1}), (0, {"job": "top", "paths": ()})],
    ids=["too early", "another attempt", "another lease", "nobody held it"],
)
def test_a_lapse_of_no_lease_that_ran_out_is_reported(after_us: int, fields: dict[str, Any], log: Tampered) -> None:
    given = {"job": "live", "attempt": 1, "until": log.now + LEASE_US, "paths": ("src",), **fields}
    until, is_top = given.pop("until"), given["job"] == "top"
    version, used = (2, 0) if is_top else (3, 1)

    position = log.append(
        None, JobLapsed(version=version, state="ready", used=used, lease_until=until, **given), after_us=after_us
    )

    assert log.found() == [("lapse", position)]


def test_a_dependent_that_was_not_unblocked_is_reported(log: Tampered) -> None:
    submit = log.append("bob", submitted())

    accept = log.append("ada", JobAccepted(job="live", version=4, state="accepted", attempt=1))

    assert accept == submit + 1
    assert log.found() == [("dependency", accept)]


def test_a_dependent_that_was_unblocked_with_another_command_is_reported(log: Tampered) -> None:
    log.append("bob", submitted())
    accept = log.append("ada", JobAccepted(job="live", version=4, state="accepted", attempt=1))

    unblocked = log.append("ada", JobUnblocked(job="waits", by="live"))

    assert log.found() == [("dependency", accept), ("dependency", unblocked)]


def test_a_dependent_that_was_unblocked_with_the_same_command_is_none(log: Tampered) -> None:
    log.append("bob", submitted())
    accept = log.append("ada", JobAccepted(job="live", version=4, state="accepted", attempt=1))

    log.append("ada", JobUnblocked(job="waits", by="live"), command=accept)

    assert log.found() == []


def test_a_ready_dependent_that_was_not_blocked_again_is_reported(log: Tampered) -> None:
    position = log.append("ada", JobReopened(job="done", version=5, state="ready"))

    assert log.found() == [("dependency", position)]


def test_a_job_that_was_reopened_under_a_started_dependent_is_reported(log: Tampered) -> None:
    log.append("bob", claimed(log, "top"))

    position = log.append("ada", JobReopened(job="done", version=5, state="ready"))

    assert log.found() == [("dependency", position)]
