"""Rows as decisions see them are the same whatever is pending, remembered or still to be read."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.stores.interface import Transaction
from coordinator.stores.memory import MemoryStore
from coordinator.views import RowCache, Views
from projections.jobs import JobRow, place
from projections.reservations import ReservationRow

KEYS = ["a", "a/b", "a/b/c", "a/c", "a0", "b", "本"]
RANGES = [("", None), ("a/", "a0"), ("a/b", "a/c"), ("a/b/", "a/b0"), ("b", None)]
Rows = dict[str, dict[str, Any]]


def job(key: str, state: Any, priority: int, ready_at: int) -> JobRow:
    return JobRow(
        id=key,
        state=state,
        version=1,
        priority=priority,
        max_attempts=1,
        review="none",
        since=0,
        position=1,
        ready_at=ready_at,
        defined=1,
        payload_at=1,
    )


def reservation(key: str, number: int) -> ReservationRow:
    return ReservationRow(path=key, job=f"job {number}", worker="ada", attempt=1)


SMALL = st.integers(0, 2)
CHANGES = st.one_of(
    st.tuples(
        st.just("jobs"), st.builds(job, st.sampled_from(KEYS), st.sampled_from(["ready", "claimed"]), SMALL, SMALL)
    ),
    st.tuples(st.just("reservations"), st.builds(reservation, st.sampled_from(KEYS), SMALL)),
    st.tuples(st.just("reservations"), st.builds(reservation, st.sampled_from(KEYS), SMALL)),
    st.tuples(st.sampled_from(["remove jobs", "remove reservations", "remove reservations"]), st.sampled_from(KEYS)),
    st.tuples(st.just("look"), st.none()),
)
BATCHES = st.lists(st.lists(CHANGES, min_size=1, max_size=12), min_size=1, max_size=6)


@pytest.mark.parametrize(("page", "small", "limit"), [(64, 1_000, 20_000), (2, 4, 5), (1, 0, 0)])
@settings(deadline=None, max_examples=200)
@given(batches=BATCHES, forgets=st.sets(st.integers(0, 5)))
def test_views_show_what_was_set_last(
    page: int, small: int, limit: int, batches: list[list[Any]], forgets: set[int]
) -> None:
    """At any time, in any batch; also if what is remembered is dropped between two batches."""
    store, cache = MemoryStore(), RowCache(limit)
    expected: Rows = {"jobs": {}, "reservations": {}}

    with mock.patch.multiple("coordinator.views", _PAGE=page, _SMALL=small):
        for number, batch in enumerate(batches):
            if number in forgets:
                cache.drop()
            views = store.write(lambda transaction, batch=batch: run(transaction, cache, batch, expected))
            cache.merge(views, 0, number, b"")

        store.read(lambda snapshot: check(Views(snapshot), expected))


def run(transaction: Transaction, cache: RowCache, batch: list[Any], expected: Rows) -> Views:
    views = Views(transaction, cache)
    for what, changed in batch:
        if what == "look":
            check(views, expected)
        elif what.startswith("remove "):
            view = what.removeprefix("remove ")
            views.by_name[view].set(changed, None)
            expected[view].pop(changed, None)
        else:
            key = changed.id if isinstance(changed, JobRow) else changed.path
            views.by_name[what].set(key, changed)
            expected[what][key] = changed
    for table in views.tables:
        put, gone = table.changes()
        transaction.put(put)
        transaction.delete(gone)
    return views


def check(views: Views, expected: Rows) -> None:
    jobs, reservations = expected["jobs"], expected["reservations"]
    for bucket in ("ready", "claimed"):
        placed = sorted((place(row)[1], key) for key, row in jobs.items() if row.state == bucket)
        assert [row.id for row in views.jobs.scan(bucket)] == [key for _, key in placed]
        due = [key for rank, key in placed if rank <= 1]
        assert [row.id for row in views.jobs.scan(bucket, up_to=1)] == due
    for low, high in RANGES:
        inside = [row for key, row in sorted(reservations.items()) if low <= key and (high is None or key < high)]
        assert sorted(views.reservations.between(low, high), key=lambda row: row.path) == inside
    assert [views.jobs.get(key) for key in KEYS] == [jobs.get(key) for key in KEYS]
    assert [views.reservations.get(key) for key in KEYS] == [reservations.get(key) for key in KEYS]


def test_rows_that_are_fetched_together_are_those_that_are_got_one_by_one() -> None:
    store, cache = MemoryStore(), RowCache()
    expected: Rows = {"jobs": {}, "reservations": {}}
    rows = [("jobs", job("a", "ready", 0, 1)), ("reservations", reservation("a/b", 1))]
    store.write(lambda transaction: run(transaction, RowCache(), rows, expected))

    def fetch(transaction: Transaction) -> list[Any]:
        views = Views(transaction, cache)
        views.fetch([("jobs", "a"), ("jobs", "b"), ("reservations", "a/b"), ("reservations", "b")])
        assert not views.jobs.unknown("a")
        assert not views.jobs.unknown("b")
        return [views.jobs.get("a"), views.jobs.get("b"), views.reservations.get("a/b"), views.reservations.get("b")]

    assert store.write(fetch) == [rows[0][1], None, rows[1][1], None]
