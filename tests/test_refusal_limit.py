"""How many refusals are recorded."""

from coordinator.refusal_limit import RECORDED_PER_SECOND, RefusalLimit

SECOND = 1_000_000


def test_no_second_holds_more_than_eight_wherever_it_begins() -> None:
    limit = RefusalLimit()

    recorded = [at for at in range(0, 3 * SECOND, SECOND // 20) if limit.admit("ada", at) is not None]

    assert all(
        len([at for at in recorded if first <= at < first + SECOND]) <= RECORDED_PER_SECOND for first in recorded
    )
    assert len(recorded) == 3 * RECORDED_PER_SECOND


def test_the_next_that_is_recorded_counts_those_left_out() -> None:
    limit = RefusalLimit()
    for _ in range(RECORDED_PER_SECOND + 3):
        limit.admit("ada", 0)

    assert limit.admit("ada", SECOND) == 3


def test_what_a_failed_batch_admitted_does_not_count() -> None:
    limit = RefusalLimit()
    limit.admit("ada", 0)
    limit.keep()
    for _ in range(RECORDED_PER_SECOND):
        limit.admit("ada", 1)

    limit.undo()

    assert [limit.admit("ada", 2) for _ in range(RECORDED_PER_SECOND)] == [*[0] * (RECORDED_PER_SECOND - 1), None]


def test_actors_are_counted_each_for_themselves() -> None:
    limit = RefusalLimit()
    for _ in range(RECORDED_PER_SECOND + 1):
        limit.admit("ada", 0)

    assert limit.admit("bob", 0) == 0
