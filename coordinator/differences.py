"""What differs between two states of the rows, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from projections.replay import Rows

Changed = Literal["added", "removed", "changed"]


class RowChange(Struct, frozen=True, kw_only=True):
    """One row that an event, or a stretch of the log, has changed.

    Attributes:
        view: the projection that it belongs to, such as "jobs".
        key: its key there, such as the job's id.
        change: "added", "removed" or "changed".
        fields: what differs: name, and the values before and after; None where there is no row, or no value.
    """

    view: str
    key: str
    change: Changed
    fields: dict[str, tuple[Any, Any]]


def row_change(view: str, key: str, before: Struct | None, after: Struct | None) -> RowChange | None:
    """How a row has changed; None if it has not."""
    if before is after or before == after:
        return None
    old, new = _fields(before), _fields(after)
    fields = {name: (old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)}
    change: Changed = "added" if before is None else "removed" if after is None else "changed"
    return RowChange(view=view, key=key, change=change, fields=fields)


def differences(before: Rows, after: Rows) -> Iterator[RowChange]:
    """Every row that differs, view by view, by key."""
    for view in sorted(before.keys() | after.keys()):
        yield from _of_view(view, before.get(view, {}), after.get(view, {}))


def _of_view(view: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[RowChange]:
    if before is after:
        return
    for key in sorted(before.keys() | after.keys()):
        change = row_change(view, key, before.get(key), after.get(key))
        if change is not None:
            yield change


def _fields(row: Struct | None) -> dict[str, Any]:
    """By name, as JSON has them."""
    return {} if row is None else msgspec.to_builtins({name: getattr(row, name) for name in row.__struct_fields__})
