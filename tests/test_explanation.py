"""What a refused operation goes back to."""

from __future__ import annotations

from msgspec import Raw

from coordinator.approval import Approval, Checked
from coordinator.clock import ManualClock
from coordinator.commands import ApplyOperation
from coordinator.explanation import explain
from coordinator.steps import drive
from tests.support import Workspace


def test_an_order_to_reconcile_first_goes_back_to_the_attempt_that_was_interrupted() -> None:
    clock = ManualClock()
    work = Workspace(clock=clock)
    for attempt in (1, 2):
        outcome = work.ask(
            "ada",
            ApplyOperation(operation="order", kind="k", arguments=Raw(b"{}"), grant_digest=f"grant {attempt}"),
            approval=Approval(worth="fresh", attempt=attempt, lease_us=10_000_000),
            checked=Checked(attempt=1, disagreement="an order is on its way") if attempt == 2 else None,
        )
        clock.advance(11)

    assert outcome.position is not None
    found = drive(explain(outcome.position), work.store.read)

    assert found.entry.body["code"] == "reconcile_first"
    assert [(cause.entry.type, cause.why) for cause in found.causes] == [
        ("operation.queued", "the approval"),
        ("operation.lapsed", "its end"),
    ]
