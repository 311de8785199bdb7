"""One fold, whoever drives it: in one go, batch by batch, or from somewhere in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.envelope import Envelope
from projections.registry import FOLDS, PROJECTIONS
from projections.replay import Difference, KeyedRows, Rows, Stored, as_stored, compare, fold, replay
from tests.decisions.given import NOW, added, claimed, submitted
from tests.projections.histories import HISTORIES

EVENTS = [added("parser", paths=("src",)), claimed("parser", paths=("src",)), submitted("parser", paths=("src",))]


def enveloped(events: Iterable[Any]) -> list[Envelope]:
    return [
        Envelope(position, NOW, "ada", None, None, None, None, position, event)
        for position, event in enumerate(events, start=1)
    ]


def stored(rows: Rows) -> dict[tuple[str, str], Stored]:
    return {(view, key): as_stored(view, row) for view, keyed in rows.items() for key, row in keyed.items()}


def through_store(bodies: dict[tuple[str, str], Stored]) -> Rows:
    """Rows as they come back from a store."""
    rows: Rows = {projection.name: KeyedRows() for projection in PROJECTIONS}
    decoders = {projection.name: projection.decode for projection in PROJECTIONS}
    for (view, key), (_, _, body) in bodies.items():
        rows[view][key] = decoders[view](body)
    return rows


class Over:
    """The rows of a view as changes leave them, which are kept apart."""

    def __init__(self, rows: KeyedRows) -> None:
        self._rows = rows
        self.changes: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self.changes[key] if key in self.changes else self._rows.get(key)

    def set(self, key: str, row: Any) -> None:
        self.changes[key] = row


def changed_by(envelopes: Iterable[Envelope], rows: Rows) -> dict[tuple[str, str], Any]:
    over = {view: Over(keyed) for view, keyed in rows.items()}
    for envelope in envelopes:
        fold(envelope, over)
    return {(view, key): row for view, keyed in over.items() for key, row in keyed.changes.items()}


# Replaying


def test_a_log_without_events_leaves_no_rows() -> None:
    rows = replay([])

    assert rows == {projection.name: {} for projection in PROJECTIONS}


def test_each_event_sees_what_those_before_it_left() -> None:
    rows = replay(enveloped(EVENTS))

    assert rows["jobs"]["parser"].state == "submitted"
    assert rows["leases"]["job/parser"].ended == "submitted"
    assert rows["reservations"] == {}


def test_a_fold_names_only_the_rows_that_changed_and_those_that_are_gone() -> None:
    before = replay(enveloped(EVENTS[:2]))
    [*_, last] = enveloped(EVENTS)

    changes = changed_by([last], before)

    assert {place: row is not None for place, row in changes.items()} == {
        ("jobs", "parser"): True,
        ("leases", "job/parser"): True,
        ("reservations", "src"): False,
    }


def test_a_fold_leaves_the_rows_before_it_as_they_were() -> None:
    before = replay(enveloped(EVENTS[:2]))
    copy = deepcopy(before)

    changed_by(enveloped(EVENTS)[2:], before)

    assert before == copy


@settings(deadline=None)
@given(history=HISTORIES, data=st.data())
def test_a_history_folds_to_the_same_rows_in_one_go_and_split_anywhere(history: list[Envelope], data: Any) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(history)), max_size=5), label="cuts"))
    at_once = replay(history)

    in_parts: Rows = replay([])
    for begin, end in zip([0, *cuts], [*cuts, len(history)], strict=True):
        replay(history[begin:end], in_parts)

    assert in_parts == at_once


@settings(deadline=None)
@given(history=HISTORIES, data=st.data())
def test_folding_batch_by_batch_over_stored_rows_comes_to_the_same_as_replaying(
    history: list[Envelope], data: Any
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(history)), max_size=5), label="cuts"))

    bodies: dict[tuple[str, str], Stored] = {}
    for begin, end in zip([0, *cuts], [*cuts, len(history)], strict=True):
        before = through_store(bodies)
        changes = changed_by(history[begin:end], before)
        bodies.update({place: as_stored(place[0], row) for place, row in changes.items() if row is not None})
        for place in [place for place, row in changes.items() if row is None]:
            bodies.pop(place, None)

    assert list(compare(replay(history), bodies)) == []


@settings(deadline=None)
@given(history=HISTORIES)
def test_every_row_comes_back_from_its_text_as_it_was(history: list[Envelope]) -> None:
    rows = replay(history)

    assert through_store(stored(rows)) == rows


@settings(deadline=None)
@given(history=HISTORIES)
def test_a_removed_reservation_was_there(history: list[Envelope]) -> None:
    """An event names every row that it changes: what a claim reserved is what its end frees."""
    rows = replay([])
    for envelope in history:
        before = set(rows["reservations"])
        gone = {key for (view, key), row in changed_by([envelope], rows).items() if view == "reservations" and not row}
        assert gone <= before
        replay([envelope], rows)

    live = {row.subject for row in rows["leases"].values() if row.ended is None}
    assert {f"job/{row.job}" for row in rows["reservations"].values()} <= live


def test_the_histories_that_are_tried_hold_every_type_of_event() -> None:
    """Else the properties above would say little."""
    seen: set[type] = set()

    @settings(deadline=None, max_examples=600, derandomize=True, database=None)
    @given(history=HISTORIES)
    def look(history: list[Envelope]) -> None:
        seen.update(type(envelope.event) for envelope in history)

    look()

    assert seen == {event for event, folds in FOLDS.items() if folds}


# Comparing


@pytest.fixture
def rows() -> Rows:
    return replay(enveloped(EVENTS[:2]))


def test_rows_that_were_stored_as_the_log_says_do_not_differ(rows: Rows) -> None:
    assert list(compare(rows, stored(rows))) == []


def test_a_stored_row_that_was_changed_is_reported_with_both_sides(rows: Rows) -> None:
    kept = stored(rows)
    bucket, rank, body = kept["jobs", "parser"]
    changed = json.dumps({**json.loads(body), "used": 7})

    found = list(compare(rows, {**kept, ("jobs", "parser"): (bucket, rank, changed)}))

    assert found == [Difference("jobs", "parser", (bucket, rank, changed), (bucket, rank, body))]


@pytest.mark.parametrize(("bucket", "rank"), [("ended", 0), ("live", 1)])
def test_a_row_in_the_wrong_place_is_reported_although_its_body_is_right(rows: Rows, bucket: str, rank: int) -> None:
    kept = stored(rows)
    right = kept["leases", "job/parser"]
    wrong = (bucket, rank, right[2])

    found = list(compare(rows, {**kept, ("leases", "job/parser"): wrong}))

    assert found == [Difference("leases", "job/parser", wrong, right)]


def test_a_row_that_is_missing_is_reported(rows: Rows) -> None:
    kept = stored(rows)
    missing = kept.pop(("reservations", "src"))

    found = list(compare(rows, kept))

    assert found == [Difference("reservations", "src", None, missing)]


def test_a_row_that_nothing_in_the_log_explains_is_reported(rows: Rows) -> None:
    extra = ("", 0, "{}")

    found = list(compare(rows, {**stored(rows), ("reservations", "doc"): extra}))

    assert found == [Difference("reservations", "doc", extra, None)]


def test_all_differences_are_reported_in_the_order_of_views_and_keys(rows: Rows) -> None:
    found = list(compare(rows, {}))

    places = [(difference.view, difference.key) for difference in found]
    assert places == sorted(stored(rows))
