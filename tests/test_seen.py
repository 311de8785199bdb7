"""What a read sees of leases that have run out."""

import pytest
from msgspec import Raw

from coordinator.approval import Approval
from coordinator.clock import ManualClock
from coordinator.commands import AddJob, ApplyOperation, ClaimNext
from coordinator.execute import now
from coordinator.seen import Seen
from tests.support import Workspace

LEASE_US = 10_000_000


def claimed(clock: ManualClock) -> Workspace:
    work = Workspace(clock=clock)
    work.do("ada", AddJob(job="parser", payload=Raw(b"{}"), priority=0, max_attempts=5, review="other"))
    work.do("ada", ClaimNext(lease_us=LEASE_US))
    return work


def due_in(work: Workspace, *streams: str) -> int | None:
    watched = frozenset(streams or [""])
    return work.store.read(lambda snapshot: Seen(snapshot, now(snapshot.head(), work.clock)).due_in(watched))


def test_a_live_lease_is_due_when_it_ends() -> None:
    clock = ManualClock()
    work = claimed(clock)

    clock.advance(4)

    assert due_in(work) == 6_000_000


def test_a_lapse_that_nobody_has_recorded_yet_is_due_now() -> None:
    """Else who reads just after the lease ended would wait for ever: it sees no live lease to wait for."""
    clock = ManualClock()
    work = claimed(clock)

    clock.advance(11)

    assert due_in(work) == 0


@pytest.mark.parametrize("passed_s", [4, 11])
@pytest.mark.parametrize(
    ("streams", "concerned"),
    [
        (["job/parser"], True),
        (["job/other", "job/parser"], True),
        (["job/"], True),
        (["job/other"], False),
        (["topic/builds", "reader/builds/ada"], False),
        (["topic/parser/", "job/other/"], False),  # names may end like that, too
    ],
)
def test_only_leases_on_what_is_waited_for_fall_due(streams: list[str], concerned: bool, passed_s: int) -> None:
    clock = ManualClock()
    work = claimed(clock)

    clock.advance(passed_s)

    assert due_in(work, *streams) == (max(0, 10 - passed_s) * 1_000_000 if concerned else None)


def test_an_operation_whose_lapse_nobody_has_recorded_yet_reads_as_interrupted() -> None:
    clock = ManualClock()
    work = Workspace(clock=clock)
    approved = Approval(worth="fresh", attempt=1, lease_us=LEASE_US)
    work.ask("ada", ApplyOperation(operation="o", kind="k", arguments=Raw(b"{}"), grant_digest="g"), approval=approved)
    clock.advance(11)

    status = work.store.read(
        lambda snapshot: Seen(snapshot, now(snapshot.head(), work.clock)).operation("o", operator="ada")
    )

    assert (status.state, status.attempt, len(work.log())) == ("interrupted", 1, 1)
