"""The journey from commands to rows: receipts, refusals, lapses, time and tokens, on a store in memory."""

from __future__ import annotations

import logging
from hashlib import sha256
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from coordinator import commands
from coordinator.answers import ClaimGranted, NoteTaken
from coordinator.clock import ManualClock
from coordinator.commands import AnyCommand
from coordinator.decisions import decide as decisions
from coordinator.decisions.claims import CANDIDATES, LookDeeper
from coordinator.errors import NewerFormat, Unavailable
from coordinator.refusals import JobExists, LeaseLapsed, ReceiptConflict, Refused, TokenSuperseded, VersionChanged
from coordinator.request import Outcome, undo_unheard
from coordinator.stores.memory import MemoryStore, _Contents  # pyright: ignore[reportPrivateUsage]
from coordinator.views import RowCache
from events.codec import decode
from events.commands import CommandRefused
from projections.replay import fold
from tests.decisions.given_operations import apply, fresh
from tests.support import Workspace, digests, secret_of

LEASE_S = 60


def add(job: str, *, n: int = 0, **fields: Any) -> commands.AddJob:
    values = {"priority": 0, "max_attempts": 5, "review": "other", **fields}
    return commands.AddJob(job=job, payload=Raw(b'{"n":%d}' % n), **values)


def claim(job: str, version: int = 1, *, lease_s: int = LEASE_S) -> commands.ClaimJob:
    return commands.ClaimJob(job=job, version=version, lease_us=lease_s * 1_000_000)


def claim_next(*, lease_s: int = LEASE_S) -> commands.ClaimNext:
    return commands.ClaimNext(lease_us=lease_s * 1_000_000)


def note(claim: ClaimGranted) -> commands.NoteProgress:
    return commands.NoteProgress(job=claim.job.id, token_digest=claim.token.digest, note=Raw(b"{}"))


def submit(claim: ClaimGranted) -> commands.SubmitJob:
    return commands.SubmitJob(job=claim.job.id, token_digest=claim.token.digest, result=Raw(b"{}"))


def refused(outcome: Outcome) -> Refused:
    assert isinstance(outcome.error, Refused)
    return outcome.error


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def work(clock: ManualClock) -> Workspace:
    return Workspace(clock=clock)


# Receipts


def test_asking_again_with_the_same_receipt_gives_the_old_answer_and_appends_nothing(work: Workspace) -> None:
    first = work.ask("ada", add("parser"), "r1")
    log = work.log()

    again = work.ask("ada", add("parser"), "r1")

    assert (again.answer, again.position, again.repeated) == (first.answer, 1, True)
    assert first.repeated is False
    assert work.log() == log


def test_the_old_answer_is_given_also_when_the_world_has_moved_on(work: Workspace, clock: ManualClock) -> None:
    added = work.do("ada", add("parser"), "r1")
    granted = work.do("ada", claim("parser"), "r2")
    noted = work.do("ada", note(granted), "r3")
    clock.advance(LEASE_S)
    work.do("bob", claim("parser", 3), "r1")
    length = len(work.log())

    answers = [
        work.do("ada", add("parser"), "r1"),
        work.do("ada", claim("parser"), "r2"),
        work.do("ada", note(granted), "r3"),
    ]

    assert answers == [added, granted, noted]
    assert len(work.log()) == length


def test_a_retried_claim_is_given_its_original_token_and_the_next_write_tells_that_it_was_lost(
    work: Workspace, clock: ManualClock
) -> None:
    work.do("ada", add("parser"))
    granted = work.do("ada", claim("parser"), "r1")
    clock.advance(LEASE_S)
    work.do("bob", claim("parser", 3))

    again = work.do("ada", claim("parser"), "r1")
    late = work.ask("ada", submit(again))

    assert again.token.reveal() == granted.token.reveal()
    assert isinstance(late.error, TokenSuperseded)


def test_a_retried_claim_next_is_given_the_job_that_it_got_the_first_time(work: Workspace) -> None:
    work.batch(*[work.request("ada", add(job)) for job in ("first", "second")])
    granted = work.do("bob", claim_next(), "r1")

    again = work.do("bob", claim_next(), "r1")

    assert again == granted
    assert work.types().count("job.claimed") == 1


def test_the_answer_to_a_command_of_many_events_is_the_same_on_a_retry(work: Workspace) -> None:
    work.do("ada", add("parser", review="none"))
    names = [f"job-{number:03}" for number in range(300)]
    work.batch(*[work.request("ada", add(name, depends_on=("parser",))) for name in names])
    granted = work.do("ada", claim("parser"))
    left = work.ask("ada", submit(granted), "r1")

    again = work.ask("ada", submit(granted), "r1")

    assert (left.answer.state, left.answer.version) == ("accepted", 4)  # pyright: ignore
    assert (again.answer, again.repeated) == (left.answer, True)
    assert work.types().count("job.unblocked") == 300


def test_the_same_receipt_for_another_request_is_refused_and_names_its_first_use(work: Workspace) -> None:
    work.do("ada", add("other"))
    work.do("ada", add("parser", n=1), "r1")

    conflict = work.ask("ada", add("parser", n=2), "r1")

    assert isinstance(conflict.error, ReceiptConflict)
    assert (conflict.error.first, conflict.error.receipt) == (2, "r1")
    assert conflict.answer is None


def test_a_receipt_conflict_appends_its_record_and_nothing_else(work: Workspace) -> None:
    work.do("ada", add("parser"), "r1")
    rows = work.rows()

    conflict = work.ask("ada", add("another"), "r1")

    assert work.types(after=1) == ["command.refused"]
    assert (conflict.position, refused(conflict).position) == (2, 2)
    assert work.rows() == rows


def test_a_receipt_conflicts_also_with_another_type_of_command_of_the_same_fields(work: Workspace) -> None:
    work.do("ada", add("parser"))
    work.do("ada", commands.CancelJob(job="parser", version=1), "r1")

    conflict = work.ask("ada", commands.ReopenJob(job="parser", version=1), "r1")

    assert isinstance(conflict.error, ReceiptConflict)


def test_a_refusal_does_not_use_up_its_receipt(work: Workspace) -> None:
    work.do("ada", add("parser"))
    no = work.ask("ada", claim("parser", 7), "r1")

    yes = work.ask("ada", claim("parser", 1), "r1")

    assert isinstance(no.error, VersionChanged)
    assert refused(no).receipt == "r1"
    assert isinstance(yes.answer, ClaimGranted)


def test_the_same_refused_request_is_decided_anew_each_time(work: Workspace) -> None:
    work.do("ada", add("parser"))
    granted = work.do("ada", claim("parser"))
    no = work.ask("bob", claim("parser", 3), "r1")
    work.do("ada", commands.ReleaseJob(job="parser", token_digest=granted.token.digest))

    yes = work.ask("bob", claim("parser", 3), "r1")

    assert isinstance(no.error, VersionChanged)
    assert isinstance(yes.answer, ClaimGranted)


def test_a_claim_next_that_found_nothing_does_not_use_up_its_receipt(work: Workspace) -> None:
    nothing = work.ask("bob", claim_next(), "r1")
    work.do("ada", add("parser"))

    found = work.ask("bob", claim_next(), "r1")

    assert nothing == Outcome()
    assert isinstance(found.answer, ClaimGranted)
    assert found.repeated is False


def test_a_reservation_of_what_is_held_already_appends_nothing_and_does_not_use_up_its_receipt(
    work: Workspace,
) -> None:
    work.do("ada", add("parser", paths=("src",)))
    granted = work.do("ada", claim("parser"))
    reserve = commands.ReservePaths(job="parser", token_digest=granted.token.digest, paths=("src/x",))
    length = len(work.log())

    outcome = work.ask("ada", reserve, "r1")
    other = work.ask("ada", note(granted), "r1")

    assert outcome == Outcome()
    assert isinstance(other.answer, NoteTaken)
    assert len(work.log()) == length + 1


def test_another_actors_equal_receipt_is_another_receipt(work: Workspace) -> None:
    work.do("ada", add("parser"), "r1")

    same = work.ask("bob", add("parser"), "r1")
    other = work.ask("bob", add("index"), "r1")

    assert isinstance(same.error, JobExists)
    assert (other.position, other.repeated) == (3, False)


def test_two_equal_receipts_in_one_batch_have_one_effect_and_equal_answers(work: Workspace) -> None:
    work.do("ada", add("parser"))

    first, second = work.batch(*[work.request("ada", claim("parser"), "r1") for _ in range(2)])

    assert isinstance(first.answer, ClaimGranted)
    assert (first.answer, first.position) == (second.answer, second.position)
    assert (first.repeated, second.repeated) == (False, True)
    assert work.types(after=1) == ["job.claimed"]


def test_two_equal_receipts_for_different_requests_conflict_within_one_batch_too(work: Workspace) -> None:
    first, second = work.batch(
        work.request("ada", add("parser"), "r1"),
        work.request("ada", add("index"), "r1"),
    )

    assert first.position == 1
    assert isinstance(second.error, ReceiptConflict)
    assert second.error.first == 1


def test_a_receipt_repeated_within_its_batch_finds_all_events_of_its_command(work: Workspace) -> None:
    work.do("ada", add("parser", review="none"))
    work.do("ada", add("index", depends_on=("parser",)))
    granted = work.do("ada", claim("parser"))

    outcomes = work.batch(
        work.request("bob", add("before")),
        work.request("ada", submit(granted), "r1"),
        work.request("bob", add("between")),
        work.request("ada", submit(granted), "r1"),
    )

    assert outcomes[1].answer.state == "accepted"  # pyright: ignore
    assert outcomes[3] == replace(outcomes[1], repeated=True)


def test_a_receipt_that_was_made_for_this_request_is_looked_up_once_it_is_asked_a_second_time(
    work: Workspace,
) -> None:
    request = work.request("ada", add("parser"), "r1", generated=True)
    [first] = work.batch(request)
    request.fresh = False

    [again] = work.batch(request)

    assert (again.answer, again.repeated) == (first.answer, True)


def test_who_asks_from_where_and_why_is_no_part_of_what_was_asked(work: Workspace) -> None:
    work.ask("ada", add("parser"), "r1", context="trace-1")

    again = work.ask("ada", add("parser"), "r1", context="trace-2")

    assert again.repeated
    assert [row.context for row in work.log()] == ["trace-1"]


# What stands in the log


def test_a_commands_events_name_its_first_one_which_alone_holds_receipt_and_fingerprint(work: Workspace) -> None:
    work.do("ada", add("parser", review="none"))
    work.do("ada", add("index", depends_on=("parser",)))
    granted = work.do("ada", claim("parser"))
    request = work.request("ada", submit(granted), "r1", context="trace")

    work.batch(request)

    rows = work.log(after=3)
    assert [row.type for row in rows] == ["job.submitted", "job.accepted", "job.unblocked"]
    assert [row.stream for row in rows] == ["job/parser", "job/parser", "job/index"]
    assert [row.command for row in rows] == [4, 4, 4]
    assert [row.receipt for row in rows] == ["r1", None, None]
    assert [row.fingerprint for row in rows] == [request.fingerprint, None, None]
    assert {(row.actor, row.context, row.origin) for row in rows} == {("ada", "trace", work.journal.origin)}


def test_the_digests_form_a_chain_from_the_workspaces_id_over_every_column(work: Workspace) -> None:
    work.batch(*[work.request("ada", add(f"job-{number}")) for number in range(5)])
    work.ask("ada", add("job-1"))
    work.ask("ada", claim("job-1"))

    log = work.log()

    assert [row.digest for row in log] == digests(work.store.workspace, log)
    work.check()


@pytest.mark.parametrize("column", ["at", "stream", "type", "actor", "origin", "context", "receipt", "body"])
def test_a_changed_column_breaks_the_chain(work: Workspace, column: str) -> None:
    work.batch(*[work.request("ada", add(f"job-{number}"), context="trace") for number in range(3)])
    log = work.log()
    changed = 1 if column == "at" else "changed"

    log[1] = log[1]._replace(**{column: changed})

    assert digests(work.store.workspace, log)[1:] != [row.digest for row in log][1:]


def test_a_batch_without_effect_writes_nothing(work: Workspace, clock: ManualClock) -> None:
    head = work.store.read(lambda snapshot: snapshot.head())
    clock.advance(5)

    outcomes = work.batch(work.request("ada", claim_next()))

    assert outcomes == [Outcome()]
    assert work.store.read(lambda snapshot: snapshot.head()) == head


def test_a_workspace_in_a_newer_format_is_left_alone_also_by_a_running_process(work: Workspace) -> None:
    work.do("ada", add("parser"))
    head = work.store.read(lambda snapshot: snapshot.head())
    work.store.write(
        lambda transaction: transaction.append([], head._replace(format=head.format + 1)), still_wanted=lambda: True
    )

    with pytest.raises(NewerFormat):
        work.ask("ada", add("index"))

    assert work.types() == ["job.added"]


# Refusals are facts too


def test_a_refusal_is_recorded_with_its_code_and_values_and_the_receipts_digest_only(work: Workspace) -> None:
    work.do("ada", add("parser"))

    outcome = work.ask("bob", claim("parser", 7), "bobs receipt", context="trace")

    [row] = work.log(after=1)
    assert decode(row.body) == CommandRefused(
        command="claim_job",
        code="version_changed",
        subject="job/parser",
        values=Raw(b'{"job":"parser","seen":7,"current":1}'),
        receipt_digest=sha256(b"bobs receipt").hexdigest(),
    )
    assert (row.type, row.stream, row.actor, row.context) == ("command.refused", "job/parser", "bob", "trace")
    assert (row.receipt, row.fingerprint, row.command) == (None, None, row.position)
    assert "bobs receipt" not in repr(row)
    assert outcome.position == row.position == refused(outcome).position


def test_a_refused_claim_next_would_be_about_all_jobs() -> None:
    assert claim_next().subject == "jobs"


def test_a_refusal_with_nested_values_is_recorded_with_all_of_them(work: Workspace) -> None:
    work.do("ada", add("index", paths=("src",)))
    granted = work.do("bob", claim("index"))
    work.do("ada", add("parser", paths=("src/x",)))

    work.ask("ada", claim("parser"))

    event = decode(work.log()[-1].body)
    assert isinstance(event, CommandRefused)
    assert msgspec.json.decode(event.values) == {
        "job": "parser",
        "clashes": [
            {"path": "src/x", "held": "src", "holder": "bob", "job": "index", "until": granted.lease_until},
        ],
        "more": 0,
    }


def test_refusals_change_no_row(work: Workspace) -> None:
    work.do("ada", add("parser"))
    rows = work.rows()

    work.ask("ada", add("parser"))
    work.ask("ada", claim("parser", 2))

    assert work.rows() == rows
    work.check()


def test_of_one_actors_refusals_eight_a_second_are_recorded_and_the_next_one_counts_those_left_out(
    work: Workspace, clock: ManualClock
) -> None:
    work.do("ada", add("parser"))
    in_vain = [work.ask("ada", add("parser")) for _ in range(11)]
    clock.advance(1)

    later = [work.ask("ada", add("parser")) for _ in range(2)]

    assert all(isinstance(outcome.error, JobExists) for outcome in [*in_vain, *later])
    assert [outcome.position for outcome in in_vain] == [*range(2, 10), None, None, None]
    assert [outcome.position for outcome in later] == [10, 11]
    assert [refused(outcome).position for outcome in later] == [10, 11]
    assert [decode(row.body).left_out for row in work.log(after=1)] == [0] * 8 + [3, 0]  # pyright: ignore


def test_the_limit_counts_within_a_batch_too(work: Workspace) -> None:
    work.do("ada", add("parser"))

    outcomes = work.batch(*[work.request("ada", add("parser")) for _ in range(20)])

    assert all(isinstance(outcome.error, JobExists) for outcome in outcomes)
    assert work.types(after=1) == ["command.refused"] * 8


def test_one_actors_refusals_do_not_count_against_anothers(work: Workspace) -> None:
    work.do("ada", add("parser"))
    work.batch(*[work.request("ada", add("parser")) for _ in range(20)])

    outcome = work.ask("bob", add("parser"))

    assert outcome.position == 10
    assert decode(work.log()[-1].body).left_out == 0  # pyright: ignore


# One command does not disturb its neighbours


def test_a_refusal_in_the_middle_of_a_batch_leaves_its_neighbours_alone(work: Workspace) -> None:
    outcomes = work.batch(
        work.request("ada", add("parser")),
        work.request("ada", add("parser")),
        work.request("ada", claim("parser")),
    )

    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert work.types() == ["job.added", "command.refused", "job.claimed"]
    work.check()


def test_a_command_sees_what_those_before_it_in_its_batch_changed(work: Workspace) -> None:
    work.do("ada", add("parser", paths=("src",)))
    work.do("ada", add("index", paths=("src/index",)))

    one, two, other, nothing = work.batch(
        work.request("ada", claim("parser")),
        work.request("bob", claim("parser")),
        work.request("bob", claim("index")),
        work.request("eve", claim_next()),
    )

    assert isinstance(one.answer, ClaimGranted)
    assert [refused(two).code, refused(other).code] == ["version_changed", "path_clash"]
    assert nothing == Outcome()
    work.check()


def test_jobs_are_unblocked_in_the_order_of_their_ids_whatever_their_batch_holds(work: Workspace) -> None:
    work.do("ada", add("base", review="none"))
    work.batch(*[work.request("ada", add(job, depends_on=("base",))) for job in ("d", "b")])
    granted = work.do("ada", claim("base"))

    work.batch(
        work.request("ada", add("c", depends_on=("base",))),
        work.request("ada", add("a", depends_on=("base",))),
        work.request("ada", submit(granted)),
    )

    assert [row.stream for row in work.log() if row.type == "job.unblocked"] == ["job/a", "job/b", "job/c", "job/d"]


def test_two_claims_of_one_actor_cannot_reserve_the_same_path_later_either(work: Workspace) -> None:
    work.do("ada", add("parser", paths=("src",)))
    work.do("ada", add("index"))
    work.do("ada", claim("parser"))
    granted = work.do("ada", claim("index"))

    outcome = work.ask("ada", commands.ReservePaths(job="index", token_digest=granted.token.digest, paths=("src/x",)))

    assert refused(outcome).code == "path_clash"


def test_an_unexpected_error_fails_its_command_alone_and_leaves_nothing_half_done(
    work: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a mistake in a rule")

    monkeypatch.setitem(decisions.DECISIONS, commands.CancelJob, broken)  # pyright: ignore[reportArgumentType]

    with caplog.at_level(logging.ERROR, "coordinator"):
        before, failed, after = work.batch(
            work.request("ada", add("parser")),
            work.request("ada", commands.CancelJob(job="parser", version=1), "r1"),
            work.request("ada", add("index")),
        )

    assert isinstance(failed.error, RuntimeError)
    assert (before.position, failed.position, after.position) == (1, None, 2)
    assert "cancel_job of ada failed unexpectedly" in caplog.text
    work.check()


def test_a_command_that_failed_unexpectedly_can_be_asked_again_with_its_receipt(
    work: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a mistake in a rule")

    with monkeypatch.context() as patch:
        patch.setitem(decisions.DECISIONS, commands.AddJob, broken)  # pyright: ignore[reportArgumentType]
        work.ask("ada", add("parser"), "r1")

    outcome = work.ask("ada", add("parser"), "r1")

    assert (outcome.error, outcome.position, outcome.repeated) == (None, 1, False)


def test_an_error_in_the_middle_of_a_commands_folds_leaves_no_row_of_it(
    work: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.do("ada", add("parser", review="none", paths=("src",)))
    granted = work.do("ada", claim("parser"))
    rows = work.rows()

    def broken(envelope: Any, views: Any) -> None:
        fold(envelope, views)
        if type(envelope.event).__name__ == "JobAccepted":
            raise RuntimeError("a mistake in a fold")

    monkeypatch.setattr("coordinator.views.fold", broken)
    failed, after = work.batch(work.request("ada", submit(granted)), work.request("ada", note(granted)))
    monkeypatch.undo()

    assert isinstance(failed.error, RuntimeError)
    assert isinstance(after.answer, NoteTaken)
    assert work.types(after=2) == ["job.noted"]
    assert {place for place, row in work.rows().items() if rows.get(place) != row} == {("jobs", "parser")}
    work.check()


def test_a_command_whose_answer_fails_leaves_nothing_either(work: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    work.do("ada", add("parser"))
    with monkeypatch.context() as patch:
        patch.setattr("coordinator.execute.answer", lambda *_, **__: 1 / 0)
        failed = work.ask("ada", claim("parser"), "r1")

    outcome = work.ask("ada", claim("parser"), "r1")

    assert isinstance(failed.error, ZeroDivisionError)
    assert (outcome.error, outcome.position, outcome.repeated) == (None, 2, False)
    work.check()


def test_a_token_that_cannot_be_made_again_fails_its_command_alone(work: Workspace) -> None:
    work.do("ada", add("parser"))
    work.do("ada", claim("parser"), "r1")
    work.store._key = b"x" * 32  # pyright: ignore  # the key that made the token is lost

    neighbour, repeated = work.batch(work.request("ada", add("index")), work.request("ada", claim("parser"), "r1"))

    assert isinstance(repeated.error, Unavailable)
    assert neighbour.error is None
    work.check()


def test_a_store_at_fault_ends_the_whole_batch_and_nothing_of_it_stays(
    work: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.do("ada", add("parser"))

    def fail(snapshot: Any, *_: object) -> None:
        snapshot.failure = Unavailable("the disk is gone")
        raise snapshot.failure

    with monkeypatch.context() as patch:
        patch.setattr(_Contents, "row", fail)
        with pytest.raises(Unavailable):
            work.batch(work.request("ada", add("index", depends_on=("unheard of",))))

    assert len(work.log()) == 1
    work.check()


def test_a_search_that_must_go_on_elsewhere_appends_nothing_and_claims_what_was_found_there(work: Workspace) -> None:
    jobs = [add(f"job-{number:03}", paths=("src",)) for number in range(CANDIDATES + 1)]
    work.batch(*[work.request("ada", job) for job in jobs], work.request("ada", add("beyond", paths=("doc",))))
    work.do("ada", claim("job-000"))
    length = len(work.log())

    deeper = work.ask("bob", claim_next(), "r1")
    found = work.ask("bob", claim_next(), "r1", candidate="beyond")

    assert isinstance(deeper.error, LookDeeper)
    assert isinstance(found.answer, ClaimGranted)
    assert (found.answer.job.id, found.position) == ("beyond", length + 1)


def test_what_a_search_found_is_no_part_of_what_was_asked(work: Workspace) -> None:
    work.do("ada", add("parser"))
    granted = work.ask("bob", claim_next(), "r1", candidate="parser")

    again = work.ask("bob", claim_next(), "r1")

    assert (again.answer, again.repeated) == (granted.answer, True)


# A claim that nobody hears of


def test_a_claim_is_given_back_if_its_caller_has_gone_and_cannot_know_the_receipt(work: Workspace) -> None:
    work.do("ada", add("parser", max_attempts=1, paths=("src",)))
    request = work.request("ada", claim("parser"), generated=True)
    [outcome] = work.batch(request)
    undo = undo_unheard(request, outcome)
    assert undo is not None

    [given_back] = work.batch(undo)

    assert given_back.error is None
    assert work.types(after=2) == ["job.released"]
    assert isinstance(work.ask("bob", claim("parser", 3)).answer, ClaimGranted)


def test_a_claim_under_the_callers_own_receipt_is_left_to_the_caller(work: Workspace) -> None:
    work.do("ada", add("parser"))
    request = work.request("ada", claim("parser"), "r1")
    [outcome] = work.batch(request)

    assert undo_unheard(request, outcome) is None


def test_what_is_no_claim_is_not_undone(work: Workspace) -> None:
    requests = [work.request("ada", add("parser"), generated=True) for _ in range(2)]
    outcomes = work.batch(*requests)

    assert [undo_unheard(request, outcome) for request, outcome in zip(requests, outcomes, strict=True)] == [None, None]


# Lapses


def test_a_lapse_is_recorded_before_anything_is_decided_without_actor_and_receipt(
    work: Workspace, clock: ManualClock
) -> None:
    work.do("ada", add("parser"))
    granted = work.do("ada", claim("parser"))
    clock.advance(LEASE_S)

    outcome = work.ask("bob", claim("parser", 3))

    lapsed, claimed = work.log(after=2)
    assert (lapsed.type, claimed.type) == ("job.lapsed", "job.claimed")
    assert (lapsed.actor, lapsed.receipt, lapsed.fingerprint, lapsed.context) == (None, None, None, None)
    assert (lapsed.command, lapsed.origin) == (3, work.journal.origin)
    assert decode(lapsed.body).lease_until == granted.lease_until  # pyright: ignore
    assert isinstance(outcome.answer, ClaimGranted)
    work.check()


def test_a_worker_that_comes_back_right_at_the_end_of_its_lease_is_too_late(
    work: Workspace, clock: ManualClock
) -> None:
    work.do("ada", add("parser"))
    granted = work.do("ada", claim("parser"))
    clock.advance(LEASE_S)

    outcome = work.ask("ada", submit(granted))

    assert isinstance(outcome.error, LeaseLapsed)
    assert work.types(after=2) == ["job.lapsed", "command.refused"]


def test_a_worker_that_comes_back_a_microsecond_before_the_end_of_its_lease_is_in_time(
    work: Workspace, clock: ManualClock
) -> None:
    work.do("ada", add("parser"))
    granted = work.do("ada", claim("parser"))
    clock.advance(LEASE_S - 0.000_001)

    outcome = work.ask("ada", submit(granted))

    assert outcome.error is None


def test_a_lease_that_is_shorter_than_those_before_it_lapses_at_its_own_end(
    work: Workspace, clock: ManualClock
) -> None:
    for job, lease_s in (("long", 100), ("short", 10)):
        work.do("ada", add(job))
        work.do("ada", commands.ClaimJob(job=job, version=1, lease_us=lease_s * 1_000_000))
        work.batch()
    clock.advance(10)

    work.batch()

    assert work.types(after=4) == ["job.lapsed"]
    assert work.log(after=4)[0].stream == "job/short"


def test_a_lease_that_another_process_granted_lapses_too(work: Workspace, clock: ManualClock) -> None:
    other = Workspace(work.store, clock)
    work.do("ada", add("parser"))
    work.batch()
    other.do("bob", claim("parser"))
    clock.advance(LEASE_S)

    work.batch()

    assert work.types(after=2) == ["job.lapsed"]


def test_an_empty_batch_records_the_lapses_that_are_due(work: Workspace, clock: ManualClock) -> None:
    work.batch(*[work.request("ada", add(job, paths=(job,))) for job in ("a", "b", "c")])
    work.batch(work.request("ada", claim("a", lease_s=20)), work.request("ada", claim("b", lease_s=10)))
    work.do("ada", claim("c", lease_s=30))
    clock.advance(20)

    outcomes = work.batch()

    assert outcomes == []
    assert [(row.type, row.stream) for row in work.log(after=6)] == [("job.lapsed", "job/b"), ("job.lapsed", "job/a")]
    work.check()


def test_a_job_whose_last_attempt_lapsed_is_failed(work: Workspace, clock: ManualClock) -> None:
    work.do("ada", add("parser", max_attempts=1))
    work.do("ada", claim("parser"))
    clock.advance(LEASE_S)

    outcome = work.ask("ada", claim("parser", 3))

    assert refused(outcome).code == "attempts_exhausted"


# Time


def test_log_time_does_not_run_back_when_the_wall_clock_does(work: Workspace, clock: ManualClock) -> None:
    work.do("ada", add("first"))
    clock.jump_wall(-3_600)
    clock.advance(2)

    work.do("ada", add("second"))

    first, second = work.log()
    assert second.at - first.at == 2_000_000


def test_after_a_glitch_of_the_wall_clock_leases_still_lapse_on_time(work: Workspace, clock: ManualClock) -> None:
    work.do("ada", add("parser"))
    clock.jump_wall(365 * 86_400)
    granted = work.do("ada", claim("parser"))
    clock.jump_wall(-365 * 86_400)
    clock.advance(LEASE_S - 1)
    work.batch()
    before = work.types(after=2)
    clock.advance(1)

    late = work.ask("ada", submit(granted))

    assert before == []
    assert isinstance(late.error, LeaseLapsed)


def test_after_a_reboot_log_time_goes_on_from_the_last_event(work: Workspace, clock: ManualClock) -> None:
    work.do("ada", add("first"))
    clock.jump_wall(-3_600)
    clock.reboot()

    work.do("ada", add("second"))

    first, second = work.log()
    assert second.at == first.at
    work.check()


def test_all_events_of_a_batch_have_one_time(work: Workspace, clock: ManualClock) -> None:
    work.do("ada", add("parser"))
    work.do("ada", claim("parser"))
    clock.advance(LEASE_S + 5)

    work.batch(work.request("ada", add("parser")), work.request("bob", claim("parser", 3)))

    assert {row.at for row in work.log(after=2)} == {clock.wall()}


# Tokens


def test_the_log_holds_a_tokens_nonce_and_digest(work: Workspace) -> None:
    work.do("ada", add("parser"))

    granted = work.do("ada", claim("parser"))

    event = decode(work.log()[-1].body)
    assert event.token_digest == sha256(bytes.fromhex(secret_of(granted.token))).hexdigest()  # pyright: ignore
    assert len(event.nonce) == 32  # pyright: ignore


def test_each_claim_has_a_token_of_its_own(work: Workspace) -> None:
    jobs = [f"job-{number}" for number in range(20)]
    work.batch(*[work.request("ada", add(job)) for job in jobs])

    granted = work.batch(*[work.request("ada", claim(job)) for job in jobs])

    assert len({outcome.answer.token.reveal() for outcome in granted}) == 20  # pyright: ignore


def test_neither_a_token_nor_the_workspaces_key_is_in_any_row(work: Workspace, clock: ManualClock) -> None:
    work.do("ada", add("parser"))
    lost = work.do("ada", claim("parser"))
    clock.advance(LEASE_S)
    granted = work.do("bob", claim("parser", 3))
    for write in (note(lost), submit(lost), note(granted), submit(granted)):
        work.ask("ada", write)
        work.ask("bob", write)

    everything = repr(work.log()) + repr(work.rows())

    for secret in (secret_of(lost.token), secret_of(granted.token), work.store.key.hex()):
        assert secret not in everything
        assert repr(bytes.fromhex(secret))[2:-1] not in everything


def test_a_requests_nonce_is_drawn_once_and_is_the_same_when_it_is_tried_again(
    work: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks again after an unknown outcome knows by the token whether it was this very request."""
    request = work.request("ada", apply(), generated=True, approval=fresh())
    with monkeypatch.context() as patch:
        patch.setattr("coordinator.execute.encode", lambda event: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            work.batch(request)
    drawn = request.nonce
    assert drawn is not None
    request.fresh = False

    [first] = work.batch(request)
    [again] = work.batch(request)

    assert request.nonce is drawn
    assert [outcome.answer.token.digest for outcome in (first, again)] == [drawn.token_digest] * 2  # pyright: ignore
    assert (first.repeated, again.repeated) == (False, True)
    assert decode(work.log()[0].body).nonce == drawn.value  # pyright: ignore


def test_an_equal_request_with_the_same_receipt_has_another_nonce_and_is_told_the_old_token(work: Workspace) -> None:
    one, other = (work.request("ada", apply(), "r1", approval=fresh()) for _ in range(2))

    first, again = work.batch(one, other)

    assert again.answer == first.answer
    assert one.nonce is not None
    assert other.nonce is None


def test_a_command_that_grants_nothing_draws_no_nonce(work: Workspace) -> None:
    request = work.request("ada", add("parser"))

    work.batch(request)

    assert request.nonce is None


def test_a_token_of_another_workspace_is_unknown(work: Workspace) -> None:
    other = Workspace()
    for place in (work, other):
        place.do("ada", add("parser"))
    work.do("ada", claim("parser"))
    foreign = other.do("ada", claim("parser"))

    outcome = work.ask("ada", submit(foreign))

    assert refused(outcome).code == "token_unknown"


# What is remembered between batches


def test_rows_are_remembered_between_batches(work: Workspace) -> None:
    work.do("ada", add("parser"))

    work.do("ada", claim("parser"))

    row = work.journal.cache.tables["jobs"].rows["parser"]
    assert row is not None
    assert row.state == "claimed"


def test_what_another_writer_committed_is_seen_at_once(clock: ManualClock) -> None:
    store = MemoryStore()
    here, there = Workspace(store, clock), Workspace(store, clock)
    here.do("ada", add("parser", paths=("src",)))
    granted = there.do("bob", claim("parser"))
    here.do("ada", add("index", paths=("src",)))

    taken = here.ask("ada", claim("parser"))
    clash = here.ask("ada", claim("index"))
    there.do("bob", submit(granted))
    free = here.ask("ada", claim("index"))

    assert [refused(taken).code, refused(clash).code] == ["version_changed", "path_clash"]
    assert isinstance(free.answer, ClaimGranted)
    here.check()


def test_a_batch_that_failed_is_not_remembered(work: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    work.do("ada", add("parser"))
    with monkeypatch.context() as patch:
        patch.setattr("coordinator.execute.encode", lambda event: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            work.ask("ada", claim("parser"))

    outcome = work.ask("bob", claim("parser"))

    assert isinstance(outcome.answer, ClaimGranted)
    assert outcome.answer.job.worker == "bob"
    work.check()


def test_a_view_that_grows_beyond_what_is_remembered_as_a_whole_is_searched_just_as_well(work: Workspace) -> None:
    names = tuple(f"src/{number:04}" for number in range(700))
    work.do("ada", add("one", paths=names))
    work.do("ada", add("two", paths=tuple(name.replace("src", "doc") for name in names)))
    work.do("ada", add("three", paths=("src",)))
    work.do("ada", add("four", paths=("doc/0699/x",)))
    one = work.do("ada", claim("one"))
    two = work.do("ada", claim("two"))

    clashes = [refused(work.ask("bob", claim(job))).code for job in ("three", "four")]
    work.batch(work.request("ada", submit(one)), work.request("ada", submit(two)))
    granted = [work.do("bob", claim(job)) for job in ("three", "four")]

    assert clashes == ["path_clash", "path_clash"]
    assert [claim.paths for claim in granted] == [("src",), ("doc/0699/x",)]
    work.check()


JOBS = ("a", "b", "c")
PATHS = ("src", "src/x", "src/x/y", "SRC/z", "doc", ".")
STEPS: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        add,
        st.sampled_from(JOBS),
        paths=st.lists(st.sampled_from(PATHS), max_size=1).map(tuple),
        depends_on=st.sets(st.sampled_from(JOBS), max_size=1).map(tuple),
        review=st.sampled_from(["none", "anyone"]),
    ),
    st.builds(claim_next),
    st.sampled_from(["note", "submit", "release", "cancel", "reopen"]),
    st.integers(1, 2 * LEASE_S),
)


@pytest.mark.parametrize(("page", "small", "limit"), [(64, 1_000, 20_000), (1, 2, 3), (2, 0, 0)])
@settings(deadline=None)
@given(
    steps=st.integers(0, 25).flatmap(lambda length: st.lists(STEPS, min_size=length, max_size=length)),
    writers=st.lists(st.integers(0, 1), min_size=25, max_size=25),
)
def test_it_makes_no_difference_who_writes_and_what_is_remembered(
    page: int, small: int, limit: int, steps: list[Any], writers: list[int]
) -> None:
    """One writer that remembers, one that forgets everything before each batch, and two that take turns."""
    remembering = Workspace()
    forgetting = Workspace()
    clock = ManualClock()
    shared = MemoryStore()
    alternating = [Workspace(shared, clock), Workspace(shared, clock)]
    alternating[1].journal.refusals = alternating[0].journal.refusals  # else each would record eight a second
    for work in (remembering, *alternating):
        work.journal.cache = RowCache(limit)

    told: list[list[Any]] = [[], [], []]
    for step, writer in zip(steps, writers, strict=False):
        forgetting.journal.cache.drop()
        with mock.patch.multiple("coordinator.views", _PAGE=page, _SMALL=small):
            for answers, work in zip(told, (remembering, forgetting, alternating[writer]), strict=True):
                answers.append(_told(work, step))

    assert told[0] == told[1] == told[2]
    for work in (remembering, forgetting, alternating[0]):
        work.check()


def _told(work: Workspace, step: AnyCommand | str | int) -> object:
    if isinstance(step, int):
        work.clock.advance(step)
        work.batch()
        return work.types()
    outcome = work.ask("ada", _command(work, step) if isinstance(step, str) else step)
    if isinstance(outcome.error, Refused):
        return outcome.error.code, outcome.error.values, outcome.position
    if isinstance(outcome.answer, ClaimGranted):
        return outcome.answer.job.id, outcome.answer.attempt, outcome.answer.paths, outcome.position
    return outcome


def _command(work: Workspace, word: str) -> AnyCommand:
    """A command about the newest claim, with the token and version that the log tells."""
    claims = [decode(row.body) for row in work.log() if row.type == "job.claimed"]
    job, digest = (claims[-1].job, claims[-1].token_digest) if claims else ("a", "none")  # pyright: ignore
    versions = [getattr(decode(row.body), "version", 0) for row in work.log() if row.stream == f"job/{job}"]
    version = max([0, *versions])
    match word:
        case "note":
            return commands.NoteProgress(job=job, token_digest=digest, note=Raw(b"{}"))
        case "submit":
            return commands.SubmitJob(job=job, token_digest=digest, result=Raw(b"{}"))
        case "release":
            return commands.ReleaseJob(job=job, token_digest=digest)
        case "cancel":
            return commands.CancelJob(job=job, version=version)
        case _:
            return commands.ReopenJob(job=job, version=version)
