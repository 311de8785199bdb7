"""The journey of operations on each engine: applied once, however often and by whomever it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.answers import AttemptQueued, OperationLeft
from coordinator.approval import Checked
from coordinator.commands import SucceedOperation
from coordinator.decisions.operations import CheckOutdated
from coordinator.refusals import Refused
from coordinator.request import Outcome
from coordinator.stores.interface import Store
from tests.decisions.given_operations import FINDING, apply, fresh, reconcile, succeed
from tests.support import Workspace, secret_of

LEASE_S = 60


@pytest.fixture
def work(store: Store) -> Workspace:
    return Workspace(store)


def code(outcome: Outcome) -> str:
    assert isinstance(outcome.error, Refused)
    return outcome.error.code


def queued(outcome: Outcome) -> AttemptQueued:
    assert isinstance(outcome.answer, AttemptQueued)
    return outcome.answer


def begin(work: Workspace, shown: object = 1, attempt: int = 1, **seen: Any) -> AttemptQueued:
    return queued(work.ask("ada", apply(shown=shown), approval=fresh(attempt), **seen))


def end(attempt: AttemptQueued) -> SucceedOperation:
    return SucceedOperation(operation="order", token_digest=attempt.token.digest, result=succeed().result)


def test_applied_twice_in_one_batch_it_starts_once(work: Workspace) -> None:
    first, second = work.batch(*[work.request("ada", apply(), approval=fresh()) for _ in range(2)])

    assert (queued(first).attempt, second) == (1, Outcome())
    assert work.types() == ["operation.queued"]
    work.check()


def test_of_two_grants_in_one_batch_one_starts_something(work: Workspace) -> None:
    outcomes = work.batch(*[work.request("ada", apply(shown=name), approval=fresh()) for name in "xy"])

    assert [outcome.answer is not None for outcome in outcomes] == [True, False]
    assert work.types() == ["operation.queued"]
    work.check()


def test_of_two_operators_on_one_new_id_in_one_batch_the_first_binds_it(work: Workspace) -> None:
    ada, bob = work.batch(
        work.request("ada", apply(shown="x"), approval=fresh()), work.request("bob", apply(shown="y"), approval=fresh())
    )

    assert queued(ada).attempt == 1
    assert code(bob) == "operation_bound"
    assert work.types() == ["operation.queued", "command.refused"]
    work.check()


def test_a_repeated_receipt_gets_the_same_token_and_starts_nothing(work: Workspace) -> None:
    first = work.ask("ada", apply(), "r1", approval=fresh())
    work.do("ada", end(queued(first)))

    again = work.ask("ada", apply(), "r1")

    assert (again.answer, again.repeated) == (first.answer, True)
    assert secret_of(queued(again).token) == secret_of(queued(first).token)
    assert work.types() == ["operation.queued", "operation.succeeded"]


def test_what_is_needed_before_an_attempt_can_start_is_asked_for_without_a_trace(
    work: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    begin(work)
    work.clock.advance(LEASE_S)

    asked = work.ask("ada", apply(shown=2), "r1", approval=fresh(2))
    second = work.ask("ada", apply(shown=2), "r1", approval=fresh(2), checked=Checked(attempt=1))

    assert isinstance(asked.error, CheckOutdated)
    assert caplog.records == []
    assert (queued(second).attempt, second.repeated) == (2, False)
    assert work.types() == ["operation.queued", "operation.lapsed", "operation.queued"]
    work.check()


def test_a_late_attempt_is_refused_and_its_successor_goes_on(work: Workspace) -> None:
    late = begin(work)
    work.clock.advance(LEASE_S)
    successor = begin(work, 2, 2, checked=Checked(attempt=1))

    refused = work.ask("ada", end(late))
    told = work.do("ada", end(successor))

    assert code(refused) == "token_superseded"
    assert told == OperationLeft(operation="order", attempt=2, position=5)
    assert late.fence < successor.fence
    work.check()


def test_where_the_world_disagrees_it_is_refused_until_its_operator_has_looked(work: Workspace) -> None:
    begin(work)
    work.clock.advance(LEASE_S)
    disagrees = Checked(attempt=1, disagreement=FINDING)

    refused = work.ask("ada", apply(shown=2), approval=fresh(2), checked=disagrees)
    work.do("ada", reconcile("not done"))
    second = begin(work, 2, 2, checked=disagrees)

    assert code(refused) == "reconcile_first"
    assert second.attempt == 2
    work.check()


def test_neither_a_grant_nor_a_token_is_in_any_row(work: Workspace) -> None:
    attempt = begin(work, shown="secret")
    work.ask("bob", end(attempt))

    everything = repr(work.log()) + repr(work.rows())

    assert secret_of(attempt.token) not in everything
    assert attempt.token.digest in everything
