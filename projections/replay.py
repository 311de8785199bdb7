"""The one fold. Commit folds a command's events, an audit all of them, time travel those up to a position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from events.envelope import Envelope
from projections.registry import FOLDS, PROJECTIONS

Stored = tuple[str, int, str]
"""Bucket, rank and body of a row as a store keeps it."""


class Keyed(Protocol):
    """The rows of one view, for a fold to read and change."""

    def get(self, key: str, /) -> Any: ...

    def set(self, key: str, row: Any) -> None:
        """Put a row under a key; None removes what stands there."""
        ...


class KeyedRows(dict[str, Any]):
    """The rows of one view by key, and nothing more."""

    def set(self, key: str, row: Any) -> None:
        if row is None:
            self.pop(key, None)
        else:
            self[key] = row


Rows = dict[str, KeyedRows]
"""view -> key -> row"""


def fold(envelope: Envelope, views: Mapping[str, Keyed]) -> None:
    """Change the rows of all views as one event says."""
    event = envelope.event
    for view, change in FOLDS[type(event)]:
        keyed = views[view]
        for key, row in change(event, envelope, keyed.get):
            keyed.set(key, row)


def replay(envelopes: Iterable[Envelope], rows: Rows | None = None) -> Rows:
    """All rows after these events, folded one by one from nothing or from the `rows` given (which are changed)."""
    rows = {projection.name: KeyedRows() for projection in PROJECTIONS} if rows is None else rows
    for envelope in envelopes:
        fold(envelope, rows)
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
