"""The one fold. Commit folds a command's events, an audit all of them, time travel those up to a position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from events.envelope import Envelope
from projections.registry import FOLDS, PROJECTIONS

Rows = dict[str, dict[str, Any]]
"""view -> key -> row"""

Stored = tuple[str, int, str]
"""Bucket, rank and body of a row as a store keeps it."""


def fold(envelopes: Iterable[Envelope], row: Callable[[str, str], Any]) -> dict[tuple[str, str], Any]:
    """The rows that these events change, by (view, key); None for one that goes.

    Args:
        envelopes: events in order; each sees what those before it changed.
        row: the row that stands under (view, key) before them, or None.
    """
    changes: dict[tuple[str, str], Any] = {}
    for envelope in envelopes:
        event = envelope.event
        for projection, change in FOLDS[type(event)]:
            view = projection.name
            get = _over(changes, view, row) if changes else partial(row, view)
            for key, changed in list(change(event, envelope, get)):
                changes[view, key] = changed
    return changes


def _over(changes: Mapping[tuple[str, str], Any], view: str, row: Callable[[str, str], Any]) -> Callable[[str], Any]:
    """What gives a row as the changes leave it."""

    def get(key: str) -> Any:
        place = view, key
        return changes[place] if place in changes else row(view, key)

    return get


def replay(envelopes: Iterable[Envelope], rows: Rows | None = None) -> Rows:
    """All rows after these events, folded one by one from nothing or from the `rows` given (which are changed)."""
    rows = {projection.name: {} for projection in PROJECTIONS} if rows is None else rows
    for envelope in envelopes:
        event = envelope.event
        for projection, change in FOLDS[type(event)]:
            view = rows[projection.name]
            for key, changed in list(change(event, envelope, view.get)):
                if changed is None:
                    view.pop(key, None)
                else:
                    view[key] = changed
    return rows


class Difference(NamedTuple):
    """A row that a store holds otherwise than the log says. `stored` or `replayed` is None where there is no row."""

    view: str
    key: str
    stored: Stored | None
    replayed: Stored | None


def compare(rows: Rows, stored: Mapping[tuple[str, str], Stored]) -> Iterator[Difference]:
    """Every difference between replayed rows and the stored ones, by view and key."""
    expected = {(view, key): as_stored(view, row) for view, keyed in rows.items() for key, row in keyed.items()}
    for place in sorted(expected.keys() | stored.keys()):
        if expected.get(place) != stored.get(place):
            yield Difference(*place, stored.get(place), expected.get(place))


def as_stored(view: str, row: Any) -> Stored:
    """Bucket, rank and body of a row, as a commit writes them."""
    bucket, rank = _PLACES[view](row)
    return bucket, rank, _encode(row).decode()


_encode = msgspec.json.Encoder().encode
_PLACES = {projection.name: projection.place for projection in PROJECTIONS}
