"""A timeline as lines of text, and as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

import msgspec

from coordinator.clock import to_datetime, utc_text
from coordinator.printable import columns, json_line, pad, printable
from coordinator.sentences import subject_of
from coordinator.stores.selection import Unreadable
from coordinator.surfaces.colours import Colours
from coordinator.surfaces.reading import Told

NOBODY = "–"
_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


class Lines:
    """Lays one line after the other out; columns grow as they must.

    Args:
        position: the highest that is to be expected.
        nobody: stands for the actor of what the store found out itself.
    """

    def __init__(self, colours: Colours, *, position: int, nobody: str = NOBODY) -> None:
        self._colours = colours
        self._widths = [len(str(position)), 3, 3]  # position, actor, subject
        self._nobody = nobody
        self._day: date | None = None
        self._last_at: int | None = None

    def fit(self, entries: Iterable[Told | Unreadable]) -> None:
        """Make the columns wide enough for these from the beginning."""
        for entry in entries:
            if isinstance(entry, Told):
                self._fill(str(entry.row.position), self._actor(entry), subject_of(entry.row.stream))

    def of(self, entry: Told | Unreadable) -> Iterator[str]:
        """The line of an entry, after the date if that is another one."""
        if isinstance(entry, Unreadable):
            yield self._colours.paint(f"{_places(entry):>{self._widths[0]}}  {_problem(entry)}", "red")
            return
        row = entry.row
        local = to_datetime(row.at).astimezone()
        if local.date() != self._day:
            self._day = local.date()
            yield self._colours.paint(f"{local:%A, %Y-%m-%d} (UTC{local:%z})", "bold")
        since = "" if self._last_at is None else gap(row.at - self._last_at)
        self._last_at = row.at
        position, actor, subject = self._fill(str(row.position), self._actor(entry), subject_of(row.stream))
        at = f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"
        before = self._colours.paint(f"{position}  {at}  {since:>10}", "dim")
        yield f"{before}  {actor}  {subject}  {self._colours.of_type(entry.sentence, row.type)}"

    def _actor(self, entry: Told) -> str:
        return self._nobody if entry.row.actor is None else printable(entry.row.actor)

    def _fill(self, position: str, *texts: str) -> tuple[str, str, str]:
        self._widths = [max(width, columns(text)) for width, text in zip(self._widths, (position, *texts), strict=True)]
        actor, subject = (pad(text, width) for text, width in zip(texts, self._widths[1:], strict=True))
        return f"{position:>{self._widths[0]}}", actor, subject


def gap(us: int) -> str:
    """How long after the line before."""
    if us < 0:
        return "back"
    if us < _SECOND - 500:
        return f"+{us / 1000:.0f} ms"
    if us < _MINUTE - 50_000:
        return f"+{us / _SECOND:.1f} s"
    minutes, seconds = divmod(round(us / _SECOND), 60)
    if us < _HOUR:
        return f"+{minutes}m {seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}h {minutes:02}m" if us < _DAY else f"+{hours // 24}d {hours % 24:02}h"


def in_json(entry: Told | Unreadable) -> str:
    """One object on one line; docs/timeline.md tells its fields."""
    if isinstance(entry, Unreadable):
        return json_line({"position": entry.position, "last": entry.last, "problem": entry.problem})
    row = entry.row
    return json_line(
        {
            "position": row.position,
            "at": utc_text(to_datetime(row.at)),
            "stream": row.stream,
            "type": row.type,
            "actor": row.actor,
            "sentence": entry.sentence,
            "command": row.command,
            "receipt": row.receipt,
            "context": row.context,
            "origin": row.origin,
            "body": msgspec.json.decode(row.body),
        }
    )


def _places(entry: Unreadable) -> str:
    return str(entry.position) if entry.last == entry.position else f"{entry.position}-{entry.last}"


def _problem(entry: Unreadable) -> str:
    return printable(f"cannot be read: {entry.problem}")
