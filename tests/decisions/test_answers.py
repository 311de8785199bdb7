"""What a caller is told: pure over the events of its command, so that a retry hears the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from msgspec import Raw

from coordinator.answers import (
    Answer,
    AttemptQueued,
    ClaimGranted,
    LeaseRenewed,
    NoteTaken,
    OperationLeft,
    PathsReserved,
    answer,
)
from coordinator.clock import to_datetime
from coordinator.errors import Unavailable
from coordinator.jobs import JobRef
from coordinator.messages import Message, message_of
from coordinator.tokens import draw
from events.envelope import Envelope
from events.jobs import JobAccepted, JobBlocked, JobNoted, JobRenewed, JobReserved, JobUnblocked
from events.messages import MessageSent
from events.union import AnyEvent
from tests.decisions.given import (
    LEASE,
    NOW,
    UNTIL,
    accepted,
    added,
    cancelled,
    claimed,
    failed,
    lapsed,
    rejected,
    released,
    reopened,
    revised,
    revoked,
    submitted,
)
from tests.decisions.given_operations import (
    ORDER,
    cancel_asked,
    progressed,
    queued,
    reconciled,
    renewed,
    started,
    stopped,
    succeeded,
)
from tests.decisions.given_operations import failed as operation_failed
from tests.support import secret_of

KEY = b"k" * 32
NONCE = draw(KEY, b"r" * 16)


def answered(*events: AnyEvent, log: Sequence[AnyEvent] = (), key: bytes = KEY) -> Answer:
    """The answer to the command that caused these events right behind the log."""
    first = len(log) + 1
    envelopes = [
        Envelope(first + index, NOW, "ada", None, None, None, None, first, event) for index, event in enumerate(events)
    ]
    return answer(envelopes, key=key, log=Told([*log, *events]))


class Told:
    """A log of these events, all by ada."""

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        self._events = events

    def event_at(self, position: int) -> AnyEvent:
        return self._events[position - 1]

    def messages(self, topic: str, first: int, last: int) -> tuple[Message, ...]:
        return tuple(
            message_of(event, position, NOW, "ada")
            for position, event in enumerate(self._events, start=1)
            if isinstance(event, MessageSent) and event.topic == topic and first <= event.number <= last
        )


@pytest.mark.parametrize(
    ("event", "state", "version"),
    [
        (added("parser"), "ready", 1),
        (added("parser", state="blocked", depends_on=("a",)), "blocked", 1),
        (revised("parser", version=2, state="failed"), "failed", 2),
        (submitted("parser"), "submitted", 3),
        (failed("parser", state="failed"), "failed", 3),
        (failed("parser"), "ready", 3),
        (released("parser"), "ready", 3),
        (revoked("parser"), "ready", 3),
        (cancelled("parser"), "cancelled", 2),
        (accepted("parser"), "accepted", 4),
        (rejected("parser"), "ready", 4),
        (reopened("parser", version=5), "ready", 5),
    ],
)
def test_a_change_to_a_job_answers_with_the_state_and_version_that_it_left(
    event: AnyEvent, state: str, version: int
) -> None:
    told = answered(event, log=[added("other")])

    assert told == JobRef(id="parser", state=state, version=version, position=2)  # pyright: ignore[reportArgumentType]


def test_what_a_command_did_to_other_jobs_is_not_in_its_answer() -> None:
    told = answered(reopened("parser", version=5), JobBlocked(job="index", by="parser"))

    assert told == JobRef(id="parser", state="ready", version=5, position=1)


def test_a_submission_that_needs_no_review_answers_with_the_acceptance() -> None:
    told = answered(
        submitted("parser"),
        JobAccepted(job="parser", version=4, state="accepted", attempt=1),
        JobUnblocked(job="index", by="parser"),
    )

    assert told == JobRef(id="parser", state="accepted", version=4, position=2)


def test_a_claim_answers_with_its_terms_its_token_and_the_job_as_it_left_it() -> None:
    log = [added("other"), added("parser", payload=b'{"n":1}', paths=("src",), priority=3, depends_on=("other",))]
    event = claimed(
        "parser", paths=("src",), defined=2, nonce=NONCE.value, token_digest=NONCE.token_digest, reason="it rained"
    )

    told = answered(event, log=log)

    assert isinstance(told, ClaimGranted)
    assert (told.attempt, told.fence, told.lease_us, told.lease_until, told.paths) == (1, 3, LEASE, UNTIL, ("src",))
    assert told.token.digest == NONCE.token_digest
    job = told.job
    assert (job.id, job.state, job.version, job.position) == ("parser", "claimed", 2, 3)
    assert (job.worker, job.attempt, job.used, job.lease_until) == ("ada", 1, 1, to_datetime(UNTIL))
    assert (job.priority, job.depends_on, job.paths, job.reason) == (3, ("other",), ("src",), "it rained")
    assert (job.payload, job.result, job.note) == ({"n": 1}, None, None)


def test_a_claim_shows_the_payload_also_where_a_later_revision_describes_the_job() -> None:
    log = [added("parser", payload=b'{"n":1}'), revised("parser", payload_at=1, priority=9, max_attempts=2)]

    told = answered(
        claimed("parser", version=3, defined=2, nonce=NONCE.value, token_digest=NONCE.token_digest), log=log
    )

    assert isinstance(told, ClaimGranted)
    assert (told.job.payload, told.job.priority, told.job.max_attempts) == ({"n": 1}, 9, 2)


def test_a_claim_shows_the_payload_that_a_revision_brought() -> None:
    log = [added("parser", payload=b'{"n":1}'), revised("parser", payload=Raw(b'{"n":2}'), payload_at=None)]

    told = answered(
        claimed("parser", version=3, defined=2, nonce=NONCE.value, token_digest=NONCE.token_digest), log=log
    )

    assert isinstance(told, ClaimGranted)
    assert told.job.payload == {"n": 2}


def test_a_token_is_not_made_with_another_workspaces_key() -> None:
    event = claimed("parser", nonce=NONCE.value, token_digest=NONCE.token_digest)

    with pytest.raises(Unavailable, match="key does not fit"):
        answered(event, log=[added("parser")], key=b"x" * 32)


def test_no_answer_shows_the_token_unless_asked() -> None:
    event = claimed("parser", nonce=NONCE.value, token_digest=NONCE.token_digest)

    told = answered(event, log=[added("parser")])

    assert isinstance(told, ClaimGranted)
    assert secret_of(told.token) not in repr(told)
    assert secret_of(told.token) not in f"{told}"
    with pytest.raises(TypeError):
        msgspec.json.encode(told.token)


def test_a_renewal_answers_with_the_new_end_of_the_lease() -> None:
    told = answered(JobRenewed(job="parser", attempt=1, lease_us=5, lease_until=NOW + 5))

    assert told == LeaseRenewed(lease_us=5, lease_until=NOW + 5)


def test_a_note_answers_with_its_position() -> None:
    told = answered(JobNoted(job="parser", attempt=1, note=Raw(b"{}")), log=[added("parser")])

    assert told == NoteTaken(position=2)


def test_a_reservation_answers_with_all_paths_that_the_claim_holds_then() -> None:
    told = answered(JobReserved(job="parser", attempt=1, added=("doc",), paths=("doc", "src")))

    assert told == PathsReserved(paths=("doc", "src"))


def test_events_that_no_command_causes_have_no_answer() -> None:
    with pytest.raises(LookupError):
        answered(JobUnblocked(job="index", by="parser"))


def test_the_end_of_a_lease_that_the_store_found_out_leaves_the_job_like_any_other_end() -> None:
    assert answered(lapsed("parser")) == JobRef(id="parser", state="ready", version=3, position=1)


# Operations


def test_a_queued_attempt_answers_with_what_its_runner_needs_its_token_derived_again() -> None:
    arguments = Raw(b'{"weeks":4}')
    event = queued(attempt=2, arguments=arguments, nonce=NONCE.value, token_digest=NONCE.token_digest)

    told = answered(event, log=[*ORDER["failed"]])

    assert isinstance(told, AttemptQueued)
    assert (told.operation, told.kind, told.arguments, told.attempt) == ("order", "reorder", arguments, 2)
    assert (told.fence, told.lease_us, told.lease_until) == (4, LEASE, UNTIL)
    assert (told.token.digest, told.token.fence) == (NONCE.token_digest, 4)


def test_no_attempt_is_handed_a_token_of_another_workspaces_key() -> None:
    event = queued(nonce=NONCE.value, token_digest=NONCE.token_digest)

    with pytest.raises(Unavailable, match="key does not fit"):
        answered(event, key=b"x" * 32)


def test_a_renewed_attempt_answers_with_the_new_end_of_the_lease() -> None:
    assert answered(renewed(NOW + 5), log=[queued()]) == LeaseRenewed(lease_us=LEASE, lease_until=NOW + 5)


@pytest.mark.parametrize(
    "event",
    [started(), progressed(), cancel_asked(), succeeded(), operation_failed(), stopped(), reconciled("not done")],
    ids=lambda event: type(event).__name__,
)
def test_whatever_else_happens_to_an_operation_answers_with_its_attempt_and_the_position(event: AnyEvent) -> None:
    assert answered(event, log=[queued()]) == OperationLeft(operation="order", attempt=1, position=2)
