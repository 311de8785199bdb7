"""Applying, cancelling and reconciling operations: of what was approved, and of what was left in the world."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from coordinator.approval import Approval, Checked
from coordinator.decisions.operations import CheckOutdated
from events.operations import OperationCancelAsked, OperationQueued, OperationReconciled, OperationState
from projections.operations import OperationRow
from tests.decisions.given import LEASE, NONCE, NOW, Rules
from tests.decisions.given_operations import (
    AGREES,
    DISAGREES,
    FINDING,
    ORDER,
    apply,
    cancel,
    cancel_asked,
    failed,
    fresh,
    grant,
    lapsed,
    queued,
    reconcile,
    reconciled,
    started,
    succeeded,
    worthless,
)

LIVE: list[OperationState] = ["queued", "running"]
OVER: list[OperationState] = ["failed", "stopped", "interrupted"]

every_state = pytest.mark.parametrize("state", ORDER)
while_live = pytest.mark.parametrize("state", LIVE)
once_over = pytest.mark.parametrize("state", OVER)

APPROVALS: dict[str, Approval | None] = {
    "none": None,
    "unknown": worthless("unknown"),
    "expired": worthless("expired"),
    "mismatch": worthless("mismatch"),
    "of_an_older_attempt": fresh(1),
    "fresh": fresh(2),
}
whatever_the_approval_is_worth = pytest.mark.parametrize("approval", APPROVALS.values(), ids=APPROVALS)

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "operator": ("bob", {}),
    "kind": ("ada", {"kind": "recount"}),
    "arguments": ("ada", {"arguments": b'{"weeks":5}'}),
}


def order(rules: Rules) -> OperationRow:
    row = rules.views.operations.get("order")
    assert row is not None
    return row


def attempt_queued(rules: Rules, shown: object, approval: Approval, **told: Any) -> OperationQueued:
    [event] = rules.when(apply(shown=shown), approval=approval, **told)
    assert isinstance(event, OperationQueued)
    return event


# What is bound to something else


@every_state
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("shown", [1, 2])
def test_an_operation_of_another_operator_kind_or_arguments_is_bound_in_whatever_state(
    rules: Rules, state: OperationState, other: str, shown: int
) -> None:
    rules.given(*ORDER[state])
    by, fields = OTHERS[other]

    refusal = rules.refusal(apply(shown=shown, **fields), by=by, approval=fresh(2), checked=AGREES)

    assert refusal.code == "operation_bound"
    assert refusal.values == {"operation": "order"}


def test_the_grant_that_another_operator_has_used_opens_nothing_for_who_got_hold_of_it(rules: Rules) -> None:
    rules.given(*ORDER["failed"])

    refusal = rules.refusal(apply(shown=1), by="bob", approval=fresh(2), checked=AGREES)

    assert refusal.code == "operation_bound"


# What starts nothing


@pytest.mark.parametrize("shown", [1, 2])
@pytest.mark.parametrize("checked", [None, AGREES, DISAGREES])
@whatever_the_approval_is_worth
def test_what_has_succeeded_never_starts_again(
    rules: Rules, shown: int, approval: Approval | None, checked: Checked | None
) -> None:
    rules.given(*ORDER["succeeded"])

    assert rules.when(apply(shown=shown), approval=approval, checked=checked) == []


@every_state
@pytest.mark.parametrize("checked", [None, AGREES, DISAGREES])
@whatever_the_approval_is_worth
def test_a_grant_that_was_used_starts_nothing_a_second_time(
    rules: Rules, state: OperationState, approval: Approval | None, checked: Checked | None
) -> None:
    rules.given(*ORDER[state])

    assert rules.when(apply(shown=1), approval=approval, checked=checked) == []


@whatever_the_approval_is_worth
def test_the_grant_of_an_older_attempt_starts_nothing_a_second_time(rules: Rules, approval: Approval | None) -> None:
    rules.given(*ORDER["failed"], queued(attempt=2), lapsed(attempt=2))

    assert rules.when(apply(shown=1), approval=approval, checked=Checked(attempt=2)) == []


@while_live
@whatever_the_approval_is_worth
def test_while_an_attempt_is_live_no_other_starts(
    rules: Rules, state: OperationState, approval: Approval | None
) -> None:
    rules.given(*ORDER[state])

    assert rules.when(apply(shown=2), approval=approval) == []


# What starts an attempt


def test_a_new_operation_starts_with_its_first_attempt_and_says_all_that_was_approved(rules: Rules) -> None:
    command = apply(shown="x")

    [event] = rules.when(command, approval=fresh(lease_us=7))

    assert event == OperationQueued(
        operation="order",
        attempt=1,
        kind="reorder",
        operator="ada",
        arguments=command.arguments,
        plan=Raw(b'{"boxes":4}'),
        plan_digest="digest of the plan",
        grant_digest=grant("x"),
        nonce=NONCE.value,
        token_digest=NONCE.token_digest,
        lease_us=7,
        lease_until=NOW + 7,
        first=None,
    )


def test_the_first_attempt_needs_no_look_at_the_world(rules: Rules) -> None:
    assert attempt_queued(rules, 1, fresh(), checked=None).attempt == 1


@once_over
def test_what_came_to_nothing_starts_again_with_a_fresh_grant_if_the_world_agrees(
    rules: Rules, state: OperationState
) -> None:
    rules.given(*ORDER[state])

    event = attempt_queued(rules, 2, fresh(2), checked=AGREES)
    rules.given(event)

    assert (event.attempt, event.first, event.grant_digest) == (2, 1, grant(2))
    row = order(rules)
    assert (row.state, row.attempt, row.first, row.queued) == ("queued", 2, 1, 4)
    assert (row.started, row.ended) == (None, None)


def test_all_attempts_remember_where_the_operation_began(rules: Rules) -> None:
    rules.given(*ORDER["failed"], queued(attempt=2), failed(attempt=2))

    event = attempt_queued(rules, 3, fresh(3), checked=Checked(attempt=2))

    assert (event.attempt, event.first) == (3, 1)


# Approval, where one is needed


@pytest.mark.parametrize("state", [None, *OVER])
@pytest.mark.parametrize(
    ("approval", "code"),
    [
        (None, "approval_unknown"),
        (worthless("unknown"), "approval_unknown"),
        (worthless("expired"), "approval_expired"),
        (worthless("mismatch"), "approval_mismatch"),
        (fresh(7), "approval_mismatch"),
    ],
)
@pytest.mark.parametrize("checked", [None, DISAGREES])
def test_an_attempt_needs_an_approval_before_anybody_looks_at_the_world(
    rules: Rules, state: OperationState | None, approval: Approval | None, code: str, checked: Checked | None
) -> None:
    rules.given(*([] if state is None else ORDER[state]))

    refusal = rules.refusal(apply(shown=2), approval=approval, checked=checked)

    assert refusal.code == code
    assert refusal.values["operation"] == "order"


@once_over
@pytest.mark.parametrize("approved", [1, 3])
def test_an_approval_is_good_for_the_attempt_that_it_names_and_for_no_other(
    rules: Rules, state: OperationState, approved: int
) -> None:
    rules.given(*ORDER[state])

    refusal = rules.refusal(apply(shown=2), approval=fresh(approved), checked=AGREES)

    assert refusal.code == "approval_mismatch"
    assert refusal.values == {"operation": "order", "approved": approved, "attempt": 2}


def test_of_two_grants_for_the_same_attempt_only_one_ever_starts_something(rules: Rules) -> None:
    first = attempt_queued(rules, "x", fresh(1))
    rules.given(first)
    while_it_runs = rules.when(apply(shown="y"), approval=fresh(1))
    rules.given(failed())

    refusal = rules.refusal(apply(shown="y"), approval=fresh(1), checked=AGREES)

    assert while_it_runs == []
    assert refusal.code == "approval_mismatch"


@pytest.mark.parametrize("state", [None, *OVER])
def test_a_grant_that_another_operation_has_used_starts_nothing_whatever_is_remembered_of_it(
    rules: Rules, state: OperationState | None
) -> None:
    rules.given(*([] if state is None else ORDER[state]), queued("another", grant_digest=grant("x")))
    approved = fresh(1 if state is None else 2)

    refusal = rules.refusal(apply(shown="x"), approval=approved, checked=AGREES)

    assert refusal.code == "approval_mismatch"
    used = rules.views.grants.get(grant("x"))
    assert used is not None
    assert used.operation == "another"


# The world


@once_over
@pytest.mark.parametrize("checked", [None, Checked(attempt=1), Checked(attempt=3, disagreement=FINDING)])
def test_nothing_starts_before_somebody_has_looked_at_what_the_newest_attempt_left(
    rules: Rules, state: OperationState, checked: Checked | None
) -> None:
    rules.given(*ORDER[state], queued(attempt=2), failed(attempt=2))

    with pytest.raises(CheckOutdated):
        rules.when(apply(shown=3), approval=fresh(3), checked=checked)


@once_over
def test_while_world_and_log_disagree_no_attempt_starts(rules: Rules, state: OperationState) -> None:
    rules.given(*ORDER[state])

    refusal = rules.refusal(apply(shown=2), approval=fresh(2), checked=DISAGREES)

    assert refusal.code == "reconcile_first"
    assert refusal.values == {"operation": "order", "attempt": 1, "finding": FINDING}


@once_over
@pytest.mark.parametrize("checked", [None, DISAGREES, Checked(attempt=9)])
def test_once_its_operator_says_that_nothing_was_done_nothing_stands_in_the_way(
    rules: Rules, state: OperationState, checked: Checked | None
) -> None:
    rules.given(*ORDER[state], reconciled("not done"))

    assert attempt_queued(rules, 2, fresh(2), checked=checked).attempt == 2


def test_what_was_said_of_one_attempt_opens_the_way_for_its_successor_alone(rules: Rules) -> None:
    rules.given(*ORDER["failed"], reconciled("not done"), queued(attempt=2), lapsed(attempt=2))

    with pytest.raises(CheckOutdated):
        rules.when(apply(shown=3), approval=fresh(3), checked=None)
    refusal = rules.refusal(apply(shown=3), approval=fresh(3), checked=Checked(attempt=2, disagreement=FINDING))

    assert refusal.code == "reconcile_first"


def test_saying_that_nothing_was_done_is_no_approval(rules: Rules) -> None:
    rules.given(*ORDER["failed"], reconciled("not done"))

    assert rules.refusal(apply(shown=2), approval=fresh(1)).code == "approval_mismatch"
    assert rules.refusal(apply(shown=2)).code == "approval_unknown"


# Reconciling


@once_over
def test_what_is_said_to_be_done_has_succeeded(rules: Rules, state: OperationState) -> None:
    rules.given(*ORDER[state])

    [event] = rules.when(reconcile("done", note="draft 17 is there", result=Raw(b'{"order":17}')), now=NOW + 5)
    rules.given(event, at=NOW + 5)

    assert event == OperationReconciled(
        operation="order", attempt=1, finding="done", note="draft 17 is there", result=Raw(b'{"order":17}')
    )
    row = order(rules)
    assert (row.state, row.since, row.reconciled) == ("succeeded", NOW + 5, 4)
    assert rules.when(apply(shown=2), approval=fresh(2), checked=AGREES) == []


@once_over
def test_what_is_said_not_to_be_done_stays_as_it_was(rules: Rules, state: OperationState) -> None:
    rules.given(*ORDER[state])

    [event] = rules.when(reconcile("not done"), now=NOW + 5)
    rules.given(event, at=NOW + 5)

    row = order(rules)
    assert (row.state, row.since, row.reconciled) == (state, NOW, 4)


def test_who_looks_again_may_find_that_it_was_done_after_all(rules: Rules) -> None:
    rules.given(*ORDER["interrupted"], reconciled("not done"))

    rules.given(*rules.when(reconcile("done")))

    assert order(rules).state == "succeeded"


@pytest.mark.parametrize("state", [*LIVE, "succeeded"])
def test_what_is_live_or_has_succeeded_is_not_reconciled(rules: Rules, state: OperationState) -> None:
    rules.given(*ORDER[state])

    refusal = rules.refusal(reconcile("not done"))

    assert refusal.code == "operation_live"
    assert refusal.values == {"operation": "order", "state": state}


def test_what_was_reconciled_as_done_is_not_reconciled_again(rules: Rules) -> None:
    rules.given(*ORDER["failed"], reconciled("done"))

    assert rules.refusal(reconcile("not done")).code == "operation_live"


@pytest.mark.parametrize("end", [[], [failed(attempt=2)], [succeeded(attempt=2)]])
@pytest.mark.parametrize("seen", [1, 3])
def test_only_the_newest_attempt_is_reconciled(rules: Rules, end: list[Any], seen: int) -> None:
    rules.given(*ORDER["failed"], queued(attempt=2), *end)

    refusal = rules.refusal(reconcile("not done", attempt=seen))

    assert refusal.code == "attempt_changed"
    assert refusal.values == {"operation": "order", "seen": seen, "current": 2}


# Cancelling


@while_live
def test_a_live_attempt_can_be_asked_to_stop_and_goes_on_until_it_has(rules: Rules, state: OperationState) -> None:
    rules.given(*ORDER[state])
    at = len(ORDER[state]) + 1

    [event] = rules.when(cancel(reason="the wrong supplier"))
    rules.given(event)

    assert event == OperationCancelAsked(operation="order", attempt=1, reason="the wrong supplier")
    row = order(rules)
    assert (row.state, row.cancel_asked) == (state, at)
    lease = rules.views.leases.get("operation/order")
    assert lease is not None
    assert (lease.ended, lease.lease_until) == (None, NOW + LEASE)


@while_live
def test_asking_twice_to_stop_changes_nothing(rules: Rules, state: OperationState) -> None:
    rules.given(*ORDER[state], cancel_asked())

    assert rules.when(cancel()) == []


@pytest.mark.parametrize("state", ["succeeded", *OVER])
def test_what_has_ended_is_not_asked_to_stop(rules: Rules, state: OperationState) -> None:
    rules.given(*ORDER[state])

    assert rules.when(cancel()) == []


def test_what_was_asked_of_one_attempt_is_not_asked_of_the_next(rules: Rules) -> None:
    rules.given(queued(), cancel_asked(), failed(), queued(attempt=2), started(attempt=2))

    before = order(rules).cancel_asked
    [event] = rules.when(cancel())

    assert before is None
    assert isinstance(event, OperationCancelAsked)
    assert event.attempt == 2


# Others


@every_state
@pytest.mark.parametrize(
    "command", [cancel(), reconcile("done"), reconcile("not done", attempt=2)], ids=["cancel", "reconcile", "older"]
)
def test_for_anybody_but_its_operator_an_operation_does_not_exist(
    rules: Rules, state: OperationState, command: Any
) -> None:
    never_there = rules.refusal(command, by="bob")
    rules.given(*ORDER[state])

    refusal = rules.refusal(command, by="bob")

    assert (refusal.code, refusal.values, str(refusal)) == (
        "operation_unknown",
        {"operation": "order"},
        str(never_there),
    )
