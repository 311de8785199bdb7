"""Changes of rows in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from coordinator.clock import to_datetime
from coordinator.differences import RowChange

_TIMES = frozenset({"since", "lease_until", "sent_at"})
_BOOKKEEPING = frozenset({"id", "position", "ready_at", "defined", "payload_at", "subject", "fence", "token_digest"})
_QUIET = frozenset({"marks", "dependents", "grants"})  # they only help to find others


def is_told(change: RowChange) -> bool:
    """Whether people want to know: not the rows by which others are found, nor leases long over."""
    return change.view not in _QUIET and not (change.view == "leases" and "/" not in change.key)


def line(change: RowChange) -> str:
    """One changed row, on a line."""
    what = f"{change.view} `{change.key}`".replace("\x1f", " ")
    if change.change == "removed":
        return f"{what} removed"
    shown = [
        f"{name} {_value(name, after)}" if change.change == "added" else _moved(name, before, after)
        for name, (before, after) in change.fields.items()
        if name not in _BOOKKEEPING and (change.change == "changed" or after not in (None, (), [], 0))
    ]
    if not shown:
        return f"{what} {change.change}"
    return f"{what}{' added' if change.change == 'added' else ''}: {', '.join(shown)}"


def _moved(name: str, before: Any, after: Any) -> str:
    return f"{name} {_value(name, before)} → {_value(name, after)}"


def _value(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name in _TIMES and isinstance(value, int) and value:
        return f"{_local(to_datetime(value)):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list | tuple):
        return " ".join(map(str, cast("Iterable[object]", value))) or "–"
    return str(value)


def _local(at: datetime) -> datetime:
    return at.astimezone()
