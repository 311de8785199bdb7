"""Rows of the log, decoded and told one after the other; what is damaged is named and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from coordinator.clock import to_datetime
from coordinator.paths import clashes, normalise_one
from coordinator.sentences import Grant, Narrator, grant_of
from coordinator.stores.interface import LogRow
from coordinator.stores.selection import SelectedRows, Unreadable
from events.codec import decode
from events.union import AnyEvent

_NONE: Final[dict[str, Any]] = {}


class Told(NamedTuple):
    """An event with its sentence."""

    row: LogRow
    event: AnyEvent
    sentence: str


def told(rows: Iterable[LogRow | Unreadable], narrator: Narrator) -> Iterator[Told | Unreadable]:
    for row in rows:
        if isinstance(row, Unreadable):
            yield row
            continue
        try:
            event = decode(row.body)
            to_datetime(row.at)
        except (msgspec.DecodeError, OverflowError) as error:
            yield Unreadable(row.position, row.position, f"{row.type} cannot be decoded: {error}")
            continue
        yield Told(row, event, narrator.tell(row.position, row.at, event, row.context))


def narrator_for(rows: SelectedRows) -> Narrator:
    """One that finds who held something in the log itself, whatever was selected of it."""

    def look_up(stream: str, before: int) -> Iterator[Grant]:
        for row in rows.granted(stream, before):
            try:
                grant = grant_of(decode(row.body), row.at)
            except msgspec.DecodeError:
                continue
            if grant is not None:
                yield grant

    return Narrator(look_up)


def touches(path: str) -> Callable[[str], bool]:
    """Whether the body of an event names the path, or one that lies above or below it.

    Of a body that cannot be read nobody can tell: it is taken for one that does, so that it is shown.

    Raises:
        BadPath: nobody can have reserved such a path.
    """
    wanted = normalise_one("path", path)

    def body_touches(body: str) -> bool:
        if '"paths"' not in body and '"clashes"' not in body and '"added"' not in body:
            return False
        try:
            fields: dict[str, Any] = msgspec.json.decode(body)
            named = [*fields.get("paths", ()), *fields.get("added", ())]
            for clash in fields.get("values", _NONE).get("clashes", ()):
                named += clash["path"], clash["held"]
            return any(clashes(wanted, other) for other in named)
        except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
            return True

    return body_touches
