"""Every event and every refusal reads as a sentence, with its values, and nothing in it can touch a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coordinator import operation_refusals, refusals, timeline
from coordinator.clock import ManualClock, to_datetime
from coordinator.commands import AcceptJob, AddJob, ClaimJob, NoteProgress, OpenReader, ReadMessages, SubmitJob
from coordinator.log import entry_of
from coordinator.refusals import Clash, Refused
from coordinator.refused import why_refused
from coordinator.sentences import Grant, Narrator
from events.commands import CommandRefused
from tests.golden.samples import EVENTS
from tests.support import Workspace

AT = 1_767_264_127_000_000  # 2026-01-01T10:42:07Z
LATER = AT + 178_000_000  # 10:45:05
DAYS_LATER = AT + 2 * 86_400_000_000

CLASHES = [Clash("src/index", held, "bob", "indexer", to_datetime(LATER)) for held in ("src", "src/index")]

REFUSALS: list[tuple[Refused, str]] = [
    (refusals.ReceiptConflict("r", 17), "its receipt was used for another request, at position 17"),
    (refusals.JobExists("parser"), "there is a job parser already"),
    (refusals.JobUnknown("parser"), "there is no job parser"),
    (refusals.VersionChanged("parser", seen=1, current=3), "it was seen at version 1, and is at version 3 now"),
    (refusals.AlreadyClaimed("parser", holder="bob", until=LATER), "bob holds it until 10:45:05"),
    (refusals.AlreadyClaimed("parser", holder="bob", until=DAYS_LATER), "bob holds it until 2026-01-03 10:42:07"),
    (refusals.AlreadySubmitted("parser"), "it was submitted, and waits for a review"),
    (refusals.JobClosed("parser", "cancelled"), "it is cancelled"),
    (refusals.JobOpen("parser", "ready"), "it is not closed, it is ready"),
    (refusals.DependencyCycle("a", ["b", "c"]), "it would wait for itself, through b and c"),
    (refusals.DependenciesUnaccepted("a", [("b", "ready")]), "it waits for b (ready)"),
    (
        refusals.DependenciesUnaccepted("a", [(name, "ready") for name in "bcdef"], more=7),
        "it waits for b (ready), c (ready), d (ready), 9 more",
    ),
    (refusals.AttemptsExhausted("parser", 5, 5), "5 of 5 attempts are used up"),
    (
        refusals.PathClash("parser", CLASHES),
        "src/index clashes with src, which is held by bob for indexer until 10:45:05; "
        "src/index is held by bob for indexer until 10:45:05",
    ),
    (refusals.TooManyPaths("parser", 1_000), "the claim would hold more than 1000 paths"),
    (refusals.NothingToReview("parser", "ready"), "it is not submitted, it is ready"),
    (refusals.SelfReview("parser", "ada"), "ada submitted it, and may not review its own work"),
    (refusals.NotClaimed("parser", "ready"), "it is not claimed, it is ready"),
    (
        refusals.DependentsStarted("parser", [("index", "claimed")]),
        "others that build on it have started: index (claimed)",
    ),
    (refusals.TokenUnknown("job/parser"), "the token belongs to no claim of this actor"),
    (
        refusals.TokenSuperseded("job/parser", attempt=1, current=2, holder="bob"),
        "this is attempt 1's token; attempt 2 is bob's since 10:42:07",
    ),
    (
        refusals.LeaseLapsed("job/parser", attempt=1, lease_until=LATER),
        "the lease of attempt 1 ran out at 10:45:05",
    ),
    (refusals.ClaimEnded("job/parser", attempt=1, how="revoked"), "attempt 1 was revoked already"),
    (
        refusals.ReaderSuperseded("reader/news/bob", attempt=1, current=2, holder="bob"),
        "this is session 1; session 2 is bob's since 10:42:07",
    ),
    (refusals.NotDelivered("news", "bob", number=9, delivered=4), "bob was handed messages up to 4, not 9"),
    (refusals.PageUnacknowledged("news", "bob", number=4), "bob has not acknowledged up to message 4"),
    (operation_refusals.OperationUnknown("o"), "this actor has no operation o"),
    (
        operation_refusals.OperationBound("o"),
        "the id o belongs to another operation, kind, operator or other arguments",
    ),
    (operation_refusals.ApprovalUnknown("o"), "its approval is not known to this process"),
    (operation_refusals.ApprovalExpired("o"), "its approval has expired"),
    (operation_refusals.ApprovalMismatch("o"), "its approval was for something else"),
    (
        operation_refusals.ApprovalMismatch("o", approved=1, attempt=2),
        "its approval was for attempt 1, and the next is 2",
    ),
    (
        operation_refusals.ReconcileFirst("o", attempt=1, finding="there is an order already"),
        "reconcile first, for of attempt 1 it was found: there is an order already",
    ),
    (
        operation_refusals.AttemptChanged("o", seen=1, current=2),
        "attempt 1 was looked at, and attempt 2 has begun since",
    ),
    (operation_refusals.OperationLive("o", "running"), "it is running, so that there is nothing to reconcile"),
]


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def kinds_of(base: type[Refused]) -> Iterator[type[Refused]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("coordinator."):
            yield kind
            yield from kinds_of(kind)


def kept(refusal: Refused) -> dict[str, Any]:
    """The values as the log keeps them."""
    return msgspec.json.decode(msgspec.json.encode(refusal.values))


def since(attempt: int) -> str:
    return " since 10:42:07" if attempt == 2 else " since another time"


@pytest.mark.parametrize(("refusal", "sentence"), REFUSALS, ids=lambda value: getattr(value, "code", ""))
def test_a_refusal_reads_as_a_sentence_with_its_values(refusal: Refused, sentence: str) -> None:
    assert why_refused(refusal.code, kept(refusal), AT, since) == sentence


def test_every_code_of_a_refusal_has_its_sentence() -> None:
    codes = {kind.code for kind in kinds_of(Refused)} - {"claim_lost"}  # which only its kinds are raised for

    assert codes == {refusal.code for refusal, _ in REFUSALS}


@pytest.mark.parametrize(
    ("code", "values", "sentence"),
    [
        ("too_late", {"by": 3}, "too_late: by 3"),
        ("too_late", {}, "too_late"),
        ("version_changed", {"seen": 3}, "version_changed: seen 3"),
        ("path_clash", {"clashes": 3}, "path_clash: clashes 3"),
        ("lease_lapsed", {"attempt": 1, "lease_until": 10**30}, f"lease_lapsed: attempt 1, lease_until {10**30}"),
    ],
)
def test_a_refusal_that_is_not_known_is_shown_as_it_stands(code: str, values: dict[str, Any], sentence: str) -> None:
    assert why_refused(code, values, AT, since) == sentence


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_that_was_ever_stored_reads_as_a_sentence(name: str) -> None:
    sentence = Narrator().tell(1, AT, EVENTS[name])

    assert sentence
    assert sentence.isprintable()


def test_a_narrator_that_did_not_begin_at_the_beginning_looks_up_who_held_it() -> None:
    asked: list[tuple[str, int]] = []

    def look_up(stream: str, before: int) -> list[Grant]:
        asked.append((stream, before))
        return [Grant(2, "bob", AT), Grant(1, "ada", AT - 60_000_000)]

    refused = CommandRefused(
        command="submit_job",
        code="token_superseded",
        subject="job/parser",
        values=msgspec.Raw(b'{"attempt":1,"current":2,"holder":"bob"}'),
        receipt_digest="",
    )
    narrator = Narrator(look_up)

    told = [narrator.tell(position, LATER, refused) for position in (9, 10)]

    assert told == ["submit_job was refused: this is attempt 1's token; attempt 2 is bob's since 10:42:07"] * 2
    assert asked == [("job/parser", 9)]


def late_worker() -> Workspace:
    clock = ManualClock()
    workspace = Workspace(clock=clock)
    added = AddJob(
        job="parser",
        payload=msgspec.Raw(b'{"file":"a.py"}'),
        paths=("src",),
        priority=0,
        max_attempts=5,
        review="other",
    )
    workspace.do("planner", added)
    late = workspace.do("ada", ClaimJob(job="parser", version=1, lease_us=60_000_000)).token.digest
    clock.advance(61)
    held = workspace.do("bob", ClaimJob(job="parser", version=3, lease_us=60_000_000)).token.digest
    clock.advance(1)
    workspace.ask("ada", SubmitJob(job="parser", token_digest=late, result=msgspec.Raw(b"{}")))
    note = msgspec.Raw(b'{"progress":0.5,"of":{"files":[1,2]}}')
    workspace.do("bob", NoteProgress(job="parser", token_digest=held, note=note))
    workspace.do("bob", SubmitJob(job="parser", token_digest=held, result=msgspec.Raw(b'{"lines":12}')))
    workspace.do("carol", AcceptJob(job="parser", version=5))
    return workspace


def test_the_story_of_a_late_worker_can_be_read_off_its_sentences() -> None:
    lines = list(timeline(map(entry_of, late_worker().log())))

    assert [(line.actor, line.subject, line.sentence) for line in lines] == [
        ("planner", "parser", "added; it is ready: file a.py"),
        ("ada", "parser", "claimed it, attempt 1, for 60 s, with src"),
        (None, "parser", "attempt 1 lapsed: ada did not renew it by 00:01:00"),
        ("bob", "parser", "claimed it, attempt 2, for 60 s, with src"),
        ("ada", "parser", "submit_job was refused: this is attempt 1's token; attempt 2 is bob's since 00:01:01"),
        ("bob", "parser", 'left a note: progress 0.5, of {"files": [1, 2]}'),
        ("bob", "parser", "submitted the result of attempt 2: lines 12"),
        ("carol", "parser", "accepted attempt 2"),
    ]


def test_an_entry_tells_its_own_sentence_without_what_came_before() -> None:
    lapsed, refused = (entry_of(late_worker().log()[index]).sentence for index in (2, 4))

    assert lapsed == "attempt 1 lapsed: its worker did not renew it by 00:01:00"
    assert refused == "submit_job was refused: this is attempt 1's token; attempt 2 is bob's"


def test_a_session_that_was_replaced_is_told_since_when() -> None:
    workspace = Workspace()
    late = workspace.do("bob", OpenReader(topic="news", reader="bob")).token.digest
    workspace.do("bob", OpenReader(topic="news", reader="bob"))
    workspace.ask("bob", ReadMessages(topic="news", reader="bob", token_digest=late, after=0, limit=1))

    *_, line = timeline(map(entry_of, workspace.log()))

    assert (line.subject, line.sentence) == (
        "reader/news/bob",
        "read_messages was refused: this is session 1; session 2 is bob's since 00:00:00",
    )


def test_what_agents_wrote_cannot_touch_a_terminal_through_a_line() -> None:
    workspace = Workspace()
    payload = msgspec.Raw(msgspec.json.encode({"title": "\x9b2J\u202egnp\u200b\x1b]0;owned\x07"}))
    added = AddJob(job="a", payload=payload, priority=0, max_attempts=5, review="other")
    workspace.ask("ada", added, context="run\u2066 7")

    (line,) = timeline(map(entry_of, workspace.log()))

    assert line.sentence == (r"added; it is ready: title \x9b2J\u202egnp\u200b\x1b]0;owned\x07 [run\u2066 7]")


def test_long_payloads_are_cut_and_said_to_be() -> None:
    workspace = Workspace()
    payload = msgspec.Raw(msgspec.json.encode({"text": "x" * 100}))
    workspace.do("ada", AddJob(job="a", payload=payload, priority=0, max_attempts=5, review="other"))

    (line,) = timeline(map(entry_of, workspace.log()))

    assert line.sentence == f"added; it is ready: text {'x' * 74}…"
