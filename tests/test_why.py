"""How far reasons are followed, whatever the log holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Raw

from coordinator.clock import ManualClock
from coordinator.commands import AddJob
from coordinator.execute import now
from coordinator.reasons import Reason, Why
from coordinator.seen import Seen
from coordinator.why import DEEPEST, TOLD, why
from tests.support import Workspace


def added(job: str, depends_on: Sequence[str] = ()) -> AddJob:
    return AddJob(job=job, payload=Raw(b"{}"), priority=0, max_attempts=5, review="other", depends_on=tuple(depends_on))


def asked(work: Workspace, job: str) -> Why:
    return work.store.read(lambda snapshot: why(Seen(snapshot, now(snapshot.head(), ManualClock())), job))


def every(reasons: Sequence[Reason]) -> Iterator[Reason]:
    for reason in reasons:
        yield reason
        yield from every(reason.because)


def test_a_chain_is_followed_so_far_down_and_what_lies_deeper_is_counted() -> None:
    work = Workspace()
    for number in range(DEEPEST + 20):
        work.do("ada", added(f"{number}", [f"{number - 1}"] if number else []))

    found = list(every(asked(work, f"{DEEPEST + 19}").reasons))

    assert len(found) == DEEPEST + 1
    assert found[-1].more == 1


def test_very_many_dependencies_are_named_up_to_a_number_and_the_rest_counted() -> None:
    work = Workspace()
    for number in range(30):
        work.do("ada", added(f"{number}"))
    work.do("ada", added("all", [f"{number}" for number in range(30)]))

    found = asked(work, "all")

    assert (len(found.reasons), found.more) == (20, 10)
    assert not found.claimable


def test_reasons_are_bounded_where_every_job_waits_for_many_others() -> None:
    work = Workspace()
    for level in range(15):
        for number in range(20):
            below = [f"{level - 1}-{other}" for other in range(20)] if level else []
            work.do("ada", added(f"{level}-{number}", below))
    work.do("ada", added("top", [f"14-{number}" for number in range(20)]))

    found = asked(work, "top")

    assert len(list(every(found.reasons))) <= TOLD


def test_a_job_that_many_wait_for_is_explained_once() -> None:
    work = Workspace()
    work.do("ada", added("deepest"))
    work.do("ada", added("shared", ["deepest"]))
    work.do("ada", added("left", ["shared"]))
    work.do("ada", added("right", ["shared"]))
    work.do("ada", added("top", ["left", "right"]))

    found = [reason.job for reason in every(asked(work, "top").reasons)]

    assert found == ["left", "shared", "deepest", "right", "shared"]
