"""What an attempt of an operation may record, and the guard that every such write passes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from coordinator.approval import Checked
from coordinator.clock import ManualClock
from coordinator.commands import AnyCommand, ApplyOperation
from coordinator.decisions.attempts import due, lapse
from coordinator.decisions.decide import decide
from coordinator.decisions.moment import Moment
from coordinator.decisions.operations import CheckOutdated
from coordinator.grants import Grants, Terms, grant_digest
from coordinator.refusals import Refused
from coordinator.tokens import Nonce
from events.operations import (
    Artifact,
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
from events.union import AnyEvent
from tests.decisions.given import LEASE, NOW, UNTIL, Rules, added, claimed, token
from tests.decisions.given import submit as submit_job
from tests.decisions.given_operations import (
    ORDER,
    cancel,
    cancel_asked,
    fail,
    failed,
    fresh,
    lapsed,
    progressed,
    queued,
    reconcile,
    reconciled,
    renew,
    renewed,
    start,
    started,
    stop,
    stopped,
    succeed,
    succeeded,
    tell,
)

WRITES: dict[str, Callable[[str, int], AnyCommand]] = {
    "start": start,
    "progress": tell,
    "renew": renew,
    "succeed": succeed,
    "fail": fail,
    "stop": stop,
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)

_ARGUMENTS = b'{"weeks":4}'
FILES = (Artifact(path="orders.csv", size=3, sha256="digest of the orders"),)


# The guard


@every_write
@pytest.mark.parametrize("live", [[queued()], [queued(), started()], [queued(), started(), cancel_asked()]])
def test_a_live_attempt_may_write(rules: Rules, write: Any, live: list[AnyEvent]) -> None:
    rules.given(*live)

    [event] = rules.when(write("order", 1))

    assert event.stream == "operation/order"
    assert event.attempt == 1  # pyright: ignore


@every_write
def test_an_attempt_that_was_followed_by_another_is_locked_out(rules: Rules, write: Any) -> None:
    rules.given(*ORDER["interrupted"], queued(attempt=2))

    refusal = rules.refusal(write("order", 1))

    assert refusal.code == "token_superseded"
    assert refusal.values == {"subject": "operation/order", "attempt": 1, "current": 2, "holder": "ada"}
    assert len(rules.when(write("order", 2))) == 1


@every_write
def test_an_attempt_whose_lease_ran_out_is_too_late(rules: Rules, write: Any) -> None:
    rules.given(*ORDER["interrupted"])

    refusal = rules.refusal(write("order", 1))

    assert refusal.code == "lease_lapsed"


@every_write
def test_what_its_operator_found_does_not_bring_an_attempt_back(rules: Rules, write: Any) -> None:
    rules.given(*ORDER["interrupted"], reconciled("done"))

    assert rules.refusal(write("order", 1)).code == "lease_lapsed"


@every_write
@pytest.mark.parametrize(("end", "how"), [(succeeded(), "succeeded"), (failed(), "failed"), (stopped(), "stopped")])
def test_an_attempt_that_has_ended_writes_nothing_more(rules: Rules, write: Any, end: AnyEvent, how: str) -> None:
    rules.given(queued(), started(), end)

    refusal = rules.refusal(write("order", 1))

    assert refusal.code == "claim_ended"
    assert refusal.values["how"] == how


@every_write
def test_a_token_is_used_only_by_the_operator_whose_attempt_it_is(rules: Rules, write: Any) -> None:
    never_there = rules.refusal(write("order", 1), by="bob")
    rules.given(queued())

    refusal = rules.refusal(write("order", 1), by="bob")

    assert (refusal.code, refusal.values, str(refusal)) == ("token_unknown", never_there.values, str(never_there))


@every_write
def test_a_token_that_was_never_granted_is_unknown(rules: Rules, write: Any) -> None:
    rules.given(queued())

    assert rules.refusal(write("order", 7)).code == "token_unknown"


@every_write
def test_the_token_of_another_operation_is_unknown_here(rules: Rules, write: Any) -> None:
    rules.given(queued(), queued("another"))
    rules.given(queued("third", token_digest=token("order", 2)))  # as if the newest attempt of `order` had this token

    assert rules.refusal(write("order", 2)).code == "token_unknown"


@every_write
def test_the_token_of_a_job_of_the_same_id_is_none_of_the_operation(rules: Rules, write: Any) -> None:
    rules.given(
        queued(token_digest="the operation's"), added("order"), claimed("order", token_digest=token("order", 1))
    )

    assert rules.refusal(write("order", 1)).code == "token_unknown"
    assert len(rules.when(submit_job("order"))) == 1


# What is recorded


def test_it_says_that_it_began_how_far_it_is_and_how_it_ended(rules: Rules) -> None:
    rules.given(*ORDER["failed"], queued(attempt=2))
    result = Raw(b'{"order":17}')

    found = [
        rules.when(command)
        for command in (
            start(attempt=2),
            tell(attempt=2),
            succeed(attempt=2, result=result, artifacts=FILES),
            fail(attempt=2, reason="no luck", stderr="no\n"),
            stop(attempt=2, reason="cancelled", stderr="bye\n"),
        )
    ]

    same: dict[str, Any] = {"operation": "order", "attempt": 2}
    assert found == [
        [OperationStarted(**same)],
        [OperationProgressed(**same, progress=Raw(b'{"rows":7}'))],
        [OperationSucceeded(**same, result=result, artifacts=FILES)],
        [OperationFailed(**same, reason="no luck", stderr="no\n")],
        [OperationStopped(**same, reason="cancelled", stderr="bye\n")],
    ]


def test_a_renewed_lease_counts_anew_for_as_long_as_before(rules: Rules) -> None:
    rules.given(queued(lease_us=7_000_000, lease_until=NOW + 7_000_000))

    [event] = rules.when(renew(), now=NOW + 3_000_000)
    rules.given(event, at=NOW + 3_000_000)

    assert event == OperationRenewed(operation="order", attempt=1, lease_us=7_000_000, lease_until=NOW + 10_000_000)
    assert due(rules.views, NOW + 9_999_999) == []
    assert [lease.subject for lease in due(rules.views, NOW + 10_000_000)] == ["operation/order"]


def test_work_that_was_asked_to_stop_may_still_come_to_its_end(rules: Rules) -> None:
    rules.given(queued(), started(), cancel_asked())

    rules.given(*rules.when(succeed()))

    row = rules.views.operations.get("order")
    assert row is not None
    assert row.state == "succeeded"


# Lapses


@pytest.mark.parametrize("live", [[queued()], [queued(), started()], [queued(), started(), progressed()]])
def test_an_attempt_that_nobody_renews_is_interrupted_not_failed(rules: Rules, live: list[AnyEvent]) -> None:
    rules.given(*live)

    [lease] = due(rules.views, UNTIL)
    event = lapse(lease, rules.views)
    rules.given(event, at=UNTIL)

    assert event == OperationLapsed(operation="order", attempt=1, lease_until=UNTIL)
    row = rules.views.operations.get("order")
    assert row is not None
    assert (row.state, row.since) == ("interrupted", UNTIL)
    assert due(rules.views, UNTIL + LEASE) == []


def test_the_lease_of_an_attempt_lapses_beside_those_of_jobs_each_in_its_own_way(rules: Rules) -> None:
    rules.given(added("order"), claimed("order"), queued(lease_until=NOW + 1))

    lapses = [lapse(lease, rules.views) for lease in due(rules.views, UNTIL)]

    assert [event.stream for event in lapses] == ["operation/order", "job/order"]


@pytest.mark.parametrize("end", [succeeded(), failed(), stopped(), lapsed()])
def test_what_has_ended_does_not_lapse(rules: Rules, end: AnyEvent) -> None:
    rules.given(queued(), started(), end)

    assert due(rules.views, UNTIL + LEASE) == []


def test_a_renewed_attempt_does_not_lapse_at_its_old_end(rules: Rules) -> None:
    rules.given(queued(), renewed(UNTIL + 1))

    assert due(rules.views, UNTIL) == []


# Any story

OPERATORS = ("ada", "bob")
NAMES = ("order", "recount")
_OFTEN = "preview preview preview apply apply apply apply write write write reconcile cancel wait"
STEP = st.tuples(
    st.sampled_from(_OFTEN.split()),
    st.sampled_from(OPERATORS),
    st.sampled_from(NAMES),
    st.integers(0, 5),
    st.sampled_from(["agrees", "agrees", "disagrees", "old", "none"]),
    st.sampled_from([*WRITES]),
)
STORIES = st.integers(0, 60).flatmap(lambda length: st.lists(STEP, min_size=length, max_size=length))


class Story:
    """Several operators at work: real grants, all rules, and the events that were allowed."""

    def __init__(self) -> None:
        self.rules = Rules()
        self.events: list[Any] = []
        self.told_to_others: list[tuple[str, Refused]] = []
        self._clock = ManualClock()
        self._grants = Grants(self._clock)
        self._handed: list[tuple[str, Terms]] = []
        self._tokens: list[tuple[str, OperationQueued]] = []

    def step(self, what: str, by: str, operation: str, number: int, look: str, write: str) -> None:
        match what:
            case "preview":
                self._preview(by, operation)
            case "apply":
                self._apply(by, number, look)
            case "write" if self._tokens:
                operator, queued = self._tokens[-1 - number % len(self._tokens)]
                self._ask(operator, WRITES[write](queued.operation, queued.attempt))
            case "reconcile":
                self._ask(by, reconcile("done" if number == 5 else "not done", operation, attempt=self._at(operation)))
            case "cancel":
                self._ask(by, cancel(operation))
            case "wait":
                self._wait(15 * number)
            case _:
                pass

    def _at(self, operation: str) -> int:
        row = self.rules.views.operations.get(operation)
        return 0 if row is None else row.attempt

    def _preview(self, by: str, operation: str) -> None:
        row = self.rules.views.operations.get(operation)
        attempt = 1 if row is None or row.operator != by else row.attempt + 1
        terms = Terms(operation=operation, operator=by, kind="reorder", arguments=_ARGUMENTS)
        secret, _ = self._grants.hand_out(terms, fresh(attempt))
        self._handed.append((grant_digest(secret), terms))

    def _apply(self, by: str, back: int, look: str) -> None:
        if not self._handed:
            return
        digest, terms = self._handed[-1 - back % len(self._handed)]
        command = ApplyOperation(
            operation=terms.operation, kind="reorder", arguments=Raw(_ARGUMENTS), grant_digest=digest
        )
        approval = self._grants.worth(digest, replace(terms, operator=by))
        newest = self._at(terms.operation)
        checked = {
            "agrees": Checked(attempt=newest),
            "disagrees": Checked(attempt=newest, disagreement="two drafts"),
            "old": Checked(attempt=newest - 1),
        }
        self._ask(by, command, approval=approval, checked=checked.get(look))

    def _wait(self, seconds: int) -> None:
        self._clock.advance(seconds)
        for lease in due(self.rules.views, self._clock.wall()):
            self._keep([lapse(lease, self.rules.views)])

    def _ask(self, by: str, command: AnyCommand, **told: Any) -> None:
        operation = command.subject.removeprefix("operation/")
        row = self.rules.views.operations.get(operation)
        nonce = Nonce("nonce", token(operation, self._at(operation) + 1))
        try:
            events = decide(command, self.rules.views, Moment(by, self._clock.wall(), nonce, **told))
        except CheckOutdated:
            events = []
        except Refused as refusal:
            events = []
            if row is not None and row.operator != by:
                self.told_to_others.append((operation, refusal))
        else:
            assert row is None or row.operator == by, "somebody else was let in"
        self._keep(events)

    def _keep(self, events: list[Any]) -> None:
        self.rules.given(*events, at=self._clock.wall())
        self.events += events
        self._tokens += [(event.operator, event) for event in events if isinstance(event, OperationQueued)]


@settings(deadline=None)
@given(STORIES)
def test_whatever_several_operators_do_one_attempt_runs_at_a_time_each_by_a_grant_of_its_own(steps: list[Any]) -> None:
    story = Story()
    for step in steps:
        story.step(*step)

    live: set[str] = set()
    over: set[str] = set()
    attempts: Counter[str] = Counter()
    for event in story.events:
        name = event.operation
        if isinstance(event, OperationQueued):
            assert name not in live | over
            live.add(name)
            attempts[name] += 1
        else:
            assert (name in live) != isinstance(event, OperationReconciled)
            assert name not in over
        assert event.attempt == attempts[name]
        if isinstance(event, OperationSucceeded | OperationFailed | OperationStopped | OperationLapsed):
            live.remove(name)
        if isinstance(event, OperationSucceeded) or getattr(event, "finding", None) == "done":
            over.add(name)
    queued = [event for event in story.events if isinstance(event, OperationQueued)]
    assert len({event.grant_digest for event in queued}) == len(queued)
    assert len({(event.operation, event.operator) for event in queued}) == len(attempts)


@settings(deadline=None)
@given(STORIES)
def test_whatever_others_ask_of_an_operation_they_are_told_no_more_than_its_id(steps: list[Any]) -> None:
    story = Story()
    for step in steps:
        story.step(*step)

    for operation, refusal in story.told_to_others:
        assert refusal.code in ("operation_bound", "operation_unknown")
        assert refusal.values == {"operation": operation}
