"""Topics and readers as rules: numbers, two positions, and sessions of which only the latest counts."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.commands import AnyCommand
from coordinator.limits import PAGE_BYTES, PAYLOAD_BYTES
from coordinator.views import Views
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.streams import reader_stream
from projections.readers import ReaderRow, reader_key
from tests.decisions.given import (
    NONCE,
    Rules,
    acknowledge,
    acknowledged,
    added,
    claimed,
    delivered,
    lapsed,
    open_reader,
    opened,
    read,
    send,
    sent,
    shown,
    submitted,
)

SESSION_WRITES: dict[str, Any] = {
    "read": lambda session: read("builds", "bob", 0, session=session),
    "acknowledge": lambda session: acknowledge("builds", "bob", 1, session=session),
}
every_session_write = pytest.mark.parametrize("write", SESSION_WRITES.values(), ids=SESSION_WRITES)


def decided(rules: Rules, command: AnyCommand, by: str = "bob") -> Any:
    [event] = rules.when(command, by=by)
    return event


def positions(views: Views, topic: str = "builds", reader: str = "bob") -> tuple[int, int]:
    row = views.readers.get(reader_key(topic, reader)) or ReaderRow(topic=topic, reader=reader)
    return row.delivered, row.acknowledged


@pytest.fixture
def three_sent(rules: Rules) -> Rules:
    rules.given(*(sent("builds", number) for number in (1, 2, 3)), by="ada")
    return rules


# Sending


def test_the_first_message_of_a_topic_has_number_one_and_each_further_one_the_next(rules: Rules) -> None:
    first = decided(rules, send("builds"))
    rules.given(first, sent("other", 1))
    second = decided(rules, send("builds", body=b'{"built":"schema"}'))

    assert isinstance(first, MessageSent)
    assert (first.number, second.number, bytes(second.body)) == (1, 2, b'{"built":"schema"}')


def test_a_message_of_a_claim_says_under_which_attempt_it_was_sent(rules: Rules) -> None:
    rules.given(added("parser"), claimed("parser"))

    event = decided(rules, send("builds", shown=shown("parser")), by="ada")

    assert (event.under, event.under_attempt) == ("parser", 1)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ([lapsed("parser")], "lease_lapsed"),
        ([submitted("parser")], "claim_ended"),
        ([lapsed("parser"), claimed("parser", "bob", version=4, attempt=2)], "token_superseded"),
    ],
)
def test_a_claim_that_is_over_sends_nothing(rules: Rules, end: list[Any], code: str) -> None:
    rules.given(added("parser"), claimed("parser"), *end)

    refusal = rules.refusal(send("builds", shown=shown("parser")), by="ada")

    assert refusal.code == code


# Sessions


def test_a_new_reader_begins_before_the_first_message(three_sent: Rules) -> None:
    event = decided(three_sent, open_reader("builds", "bob"))

    assert isinstance(event, ReaderOpened)
    assert (event.session, event.holder, event.acknowledged) == (1, "bob", 0)
    assert (event.nonce, event.token_digest) == (NONCE.value, NONCE.token_digest)


def test_a_reader_can_be_opened_before_anything_was_sent(rules: Rules) -> None:
    assert decided(rules, open_reader("builds", "bob")).acknowledged == 0


def test_a_session_goes_on_behind_what_was_acknowledged_not_behind_what_was_delivered(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3), acknowledged("builds", "bob", 1))

    event = decided(three_sent, open_reader("builds", "bob"), by="eve")

    assert (event.session, event.holder, event.acknowledged) == (2, "eve", 1)


@every_session_write
def test_an_older_session_is_locked_out_and_told_by_whom(three_sent: Rules, write: Any) -> None:
    three_sent.given(
        opened("builds", "bob"), delivered("builds", "bob", 1, 3), opened("builds", "bob", "eve", session=2)
    )

    refusal = three_sent.refusal(write(1), by="bob")

    assert refusal.code == "reader_superseded"
    assert refusal.values == {"subject": "reader/builds/bob", "session": 1, "current": 2, "holder": "eve"}
    assert three_sent.when(write(2), by="eve")


@every_session_write
def test_a_session_is_used_only_by_the_actor_that_opened_it(three_sent: Rules, write: Any) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3))

    assert three_sent.refusal(write(1), by="eve").code == "token_unknown"


@every_session_write
def test_a_token_that_was_never_granted_opens_no_session(three_sent: Rules, write: Any) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3))

    assert three_sent.refusal(write(7), by="bob").code == "token_unknown"


def test_the_token_of_a_claim_is_no_token_of_a_reader(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), added("builds bob"), claimed("builds bob", "bob"))

    events = three_sent.when(read("builds", "bob", 0), by="bob")  # the session's own token, which reads alike

    assert len(events) == 1


def test_two_readers_of_one_topic_know_nothing_of_each_other(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), opened("builds", "eve", "eve"))
    three_sent.given(delivered("builds", "bob", 1, 3), acknowledged("builds", "bob", 3))

    event = decided(three_sent, read("builds", "eve", 0), by="eve")

    assert (event.first, event.last) == (1, 3)
    assert positions(three_sent.views, reader="eve") == (0, 0)


def test_no_two_readers_share_a_stream() -> None:
    names = ["a", "a/b", "b", "b/c", "c", "a%2Fb", "%", "a/"]

    streams = {reader_stream(topic, reader) for topic in names for reader in names}

    assert len(streams) == len(names) ** 2


# Reading


def test_a_page_is_what_follows_the_cursor_up_to_its_limit(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 1))

    short = decided(three_sent, read("builds", "bob", 1, limit=1))
    whole = decided(three_sent, read("builds", "bob", 1))

    assert isinstance(short, MessagesDelivered)
    assert (short.first, short.last, short.session) == (2, 2, 1)
    assert (whole.first, whole.last) == (2, 3)


def test_a_page_never_comes_to_more_than_8_mib_even_if_all_messages_were_as_large_as_the_largest(rules: Rules) -> None:
    rules.given(sent("builds", 1, body=b"x" * PAYLOAD_BYTES), *(sent("builds", number) for number in range(2, 101)))
    rules.given(opened("builds", "bob"), delivered("builds", "bob", 1, 40))

    first = decided(rules, read("builds", "bob", 0))
    second = decided(rules, read("builds", "bob", 32))
    short = decided(rules, read("builds", "bob", 0, limit=31))

    assert PAGE_BYTES == 32 * PAYLOAD_BYTES == 8 * 1024 * 1024
    assert (first.first, first.last) == (1, 32)
    assert (second.first, second.last) == (33, 64)
    assert (short.first, short.last) == (1, 31)


def test_messages_of_8_kib_do_not_make_pages_shorter(rules: Rules) -> None:
    rules.given(*(sent("builds", number, body=b"x" * 8 * 1024) for number in range(1, 1_002)))
    rules.given(opened("builds", "bob"))

    assert decided(rules, read("builds", "bob", 0, limit=1_000)).last == 1_000


def test_an_empty_page_is_no_event(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3))

    assert three_sent.when(read("builds", "bob", 3), by="bob") == []


def test_a_page_that_was_lost_is_handed_out_again(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3))

    event = decided(three_sent, read("builds", "bob", 0, limit=2))
    three_sent.given(event)

    assert (event.first, event.last) == (1, 2)
    assert positions(three_sent.views) == (3, 0)


def test_what_was_acknowledged_is_not_handed_out_again_whatever_the_cursor_says(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3), acknowledged("builds", "bob", 2))

    event = decided(three_sent, read("builds", "bob", 0, limit=2))

    assert (event.first, event.last) == (3, 3)


def test_a_cursor_behind_what_was_handed_out_would_skip_messages(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 1))

    refusal = three_sent.refusal(read("builds", "bob", 2), by="bob")

    assert refusal.code == "not_delivered"
    assert refusal.values == {"topic": "builds", "reader": "bob", "number": 2, "delivered": 1}


# Acknowledging


def test_what_was_delivered_can_be_acknowledged(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3))

    event = decided(three_sent, acknowledge("builds", "bob", 2))
    three_sent.given(event)

    assert isinstance(event, MessagesAcknowledged)
    assert (event.number, event.session) == (2, 1)
    assert positions(three_sent.views) == (3, 2)


def test_what_was_not_delivered_cannot_be_acknowledged(three_sent: Rules) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 2))

    refusal = three_sent.refusal(acknowledge("builds", "bob", 3), by="bob")

    assert refusal.code == "not_delivered"
    assert refusal.values == {"topic": "builds", "reader": "bob", "number": 3, "delivered": 2}


@pytest.mark.parametrize("number", [1, 2])
def test_acknowledging_again_or_less_changes_nothing(three_sent: Rules, number: int) -> None:
    three_sent.given(opened("builds", "bob"), delivered("builds", "bob", 1, 3), acknowledged("builds", "bob", 2))

    assert three_sent.when(acknowledge("builds", "bob", number), by="bob") == []
