"""For each rule of messages, readers and operations: a log that breaks it, and it alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from events.base import Event
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.operations import (
    OperationCancelAsked,
    OperationFailed,
    OperationLapsed,
    OperationProgressed,
    OperationQueued,
    OperationReconciled,
    OperationRenewed,
    OperationStarted,
    OperationStopped,
    OperationSucceeded,
)
from tests.audit.story import LEASE_US, Tampered

NOTHING = Raw(b"{}")
READER: dict[str, Any] = {"topic": "news", "reader": "ada"}


def opened(session: int, acknowledged: int, holder: str = "ada") -> ReaderOpened:
    return ReaderOpened(
        **READER, session=session, acknowledged=acknowledged, holder=holder, nonce="n", token_digest="t"
    )


def delivered(first: int, last: int, session: int = 1) -> MessagesDelivered:
    return MessagesDelivered(**READER, session=session, first=first, last=last)


def acknowledged(number: int, session: int = 1) -> MessagesAcknowledged:
    return MessagesAcknowledged(**READER, session=session, number=number)


MESSAGES: dict[str, tuple[str, str, Event]] = {
    "a number left out": ("numbers", "ada", MessageSent(topic="news", number=5, body=NOTHING)),
    "a number used again": ("numbers", "ada", MessageSent(topic="news", number=3, body=NOTHING)),
    "a topic that begins with 2": ("numbers", "ada", MessageSent(topic="new", number=2, body=NOTHING)),
    "a session left out": ("positions", "ada", opened(3, 1)),
    "opened further on": ("positions", "ada", opened(2, 2)),
    "opened further back": ("positions", "ada", opened(2, 0)),
    "opened for somebody else": ("positions", "ada", opened(2, 1, holder="eve")),
    "read by another session": ("positions", "ada", delivered(2, 3, session=2)),
    "read by somebody else": ("positions", "eve", delivered(2, 3)),
    "more than there are": ("positions", "ada", delivered(2, 4)),
    "less than one": ("positions", "ada", delivered(3, 2)),
    "acknowledged before delivery": ("positions", "ada", acknowledged(3)),
    "acknowledged backwards": ("positions", "ada", acknowledged(1)),
    "acknowledged by another session": ("positions", "ada", acknowledged(2, session=2)),
    "acknowledged by somebody else": ("positions", "eve", acknowledged(2)),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_cannot_have_become_of_messages_is_reported_by_its_rule_alone(name: str, log: Tampered) -> None:
    rule, actor, event = MESSAGES[name]

    position = log.append(actor, event)

    assert log.found() == [(rule, position)]


def test_a_message_that_was_skipped_is_reported(log: Tampered) -> None:
    log.append("ada", MessageSent(topic="news", number=4, body=NOTHING))

    position = log.append("ada", delivered(4, 4))

    assert log.found() == [("positions", position)]


def queued(log: Tampered, **fields: Any) -> OperationQueued:
    given: dict[str, Any] = {
        "operation": "next",
        "attempt": 1,
        "kind": "reorder",
        "operator": "ada",
        "arguments": Raw(b'{"supplier":"north","weeks":4}'),
        "plan": NOTHING,
        "plan_digest": "p",
        "grant_digest": "g",
        "nonce": "n",
        "token_digest": "t",
        "lease_us": LEASE_US,
        "lease_until": log.now + LEASE_US,
    }
    return OperationQueued(**{**given, **fields})


def grant(log: Tampered) -> str:
    sql = "SELECT json_extract(body, '$.grant_digest') FROM events WHERE type = 'operation.queued'"
    return log.sql(sql)[0][0]


def test_a_grant_that_starts_two_attempts_is_reported(log: Tampered) -> None:
    position = log.append("ada", queued(log, grant_digest=grant(log)))

    assert log.found() == [("grant", position)]


QUEUED: dict[str, tuple[str, dict[str, Any]]] = {
    "for somebody else": ("operator", {"operator": "eve"}),
    "as the second attempt": ("attempt", {"attempt": 2}),
    "for another time than it says": ("lease", {"lease_until": 1}),
    "after it has succeeded": ("one attempt", {"operation": "ordered", "attempt": 2}),
}


@pytest.mark.parametrize("name", QUEUED)
def test_an_attempt_that_cannot_have_been_queued_is_reported(name: str, log: Tampered) -> None:
    rule, fields = QUEUED[name]

    position = log.append("ada", queued(log, **fields))

    assert log.found() == [(rule, position)]


def test_a_second_live_attempt_is_reported(log: Tampered) -> None:
    log.append("ada", queued(log))

    position = log.append("ada", queued(log, attempt=2, grant_digest="another"))

    assert log.found() == [("one attempt", position)]


@pytest.mark.parametrize("other", [{"kind": "other"}, {"arguments": NOTHING}], ids=["kind", "arguments"])
def test_an_operation_of_which_something_else_was_queued_is_reported(other: dict[str, Any], log: Tampered) -> None:
    log.append("ada", queued(log))
    log.append("ada", OperationFailed(operation="next", attempt=1, reason="so"))

    position = log.append("ada", queued(log, attempt=2, grant_digest="another", **other))

    assert log.found() == [("operator", position)]


NEXT: dict[str, Any] = {"operation": "next", "attempt": 1}
LIVE: dict[str, tuple[str, str | None, Event]] = {
    "started by somebody else": ("guard", "eve", OperationStarted(**NEXT)),
    "told by another attempt": ("guard", "ada", OperationProgressed(operation="next", attempt=2, progress=NOTHING)),
    "succeeded by somebody else": ("guard", "eve", OperationSucceeded(**NEXT, result=NOTHING)),
    "failed by somebody else": ("guard", "eve", OperationFailed(**NEXT, reason="so")),
    "stopped by somebody else": ("guard", "eve", OperationStopped(**NEXT, reason="so")),
    "a lease moved elsewhere": ("lease", "ada", OperationRenewed(**NEXT, lease_us=LEASE_US, lease_until=1)),
    "lapsed too early": ("lapse", None, OperationLapsed(**NEXT, lease_until=1)),
    "cancelled by somebody else": ("operator", "eve", OperationCancelAsked(**NEXT)),
    "another attempt cancelled": ("attempt", "ada", OperationCancelAsked(operation="next", attempt=2)),
    "reconciled while live": ("state", "ada", OperationReconciled(**NEXT, finding="not done", note="so")),
    "never queued": ("operation", "ada", OperationStarted(operation="ghost", attempt=1)),
}


@pytest.mark.parametrize("name", LIVE)
def test_what_cannot_have_become_of_a_live_attempt_is_reported(name: str, log: Tampered) -> None:
    rule, actor, event = LIVE[name]
    log.append("ada", queued(log))

    position = log.append(actor, event)

    assert log.found() == [(rule, position)]


def test_what_is_said_of_an_attempt_after_its_end_is_reported(log: Tampered) -> None:
    over = {"operation": "ordered", "attempt": 1}

    told = log.append("ada", OperationProgressed(**over, progress=NOTHING))
    cancelled = log.append("ada", OperationCancelAsked(**over))
    reconciled = log.append("ada", OperationReconciled(**over, finding="not done", note="so"))

    assert log.found() == [("guard", told), ("state", cancelled), ("state", reconciled)]


def test_what_a_runner_tells_after_its_lease_is_reported(log: Tampered) -> None:
    log.append("ada", queued(log))

    position = log.append("ada", OperationProgressed(**NEXT, progress=NOTHING), after_us=LEASE_US)

    assert log.found() == [("guard", position)]


def test_an_attempt_that_lapsed_and_was_reconciled_and_followed_is_none(log: Tampered) -> None:
    until = log.now + LEASE_US
    log.append("ada", queued(log))
    log.append(None, OperationLapsed(**NEXT, lease_until=until), after_us=LEASE_US)
    log.append("ada", OperationReconciled(**NEXT, finding="not done", note="so"))

    log.append("ada", queued(log, attempt=2, grant_digest="another"))

    assert log.found() == []
