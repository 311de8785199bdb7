"""`coordinator explain`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click

from coordinator.clock import utc_text
from coordinator.envelopes import reading
from coordinator.explanation import Explanation
from coordinator.explanation import explain as steps_of
from coordinator.log import LogEntry
from coordinator.printable import printable
from coordinator.steps import drive
from coordinator.stores.inspection import Inspection
from coordinator.surfaces.cli.changes import line
from coordinator.surfaces.cli.looking import builtins
from coordinator.surfaces.cli.shared import Command, NotFound, database_option, json_option, print_json

_EXAMPLE = """\b
Example:
  coordinator explain 1207 --database work.db
  coordinator explain 1207 --database work.db --json
"""


@click.command(cls=Command, epilog=_EXAMPLE)
@click.argument("position", type=click.IntRange(1, 2**63 - 1))
@database_option()
@json_option
def explain(position: int, database: str, as_json: bool) -> None:
    """Explain the event at POSITION: the others of its command, and the rows that it changed, before and after.

    For a refusal, the events that it goes back to: the claim that took over and the lapse before it, the claims that
    hold the paths, the changes since the version that was seen. Exit status 4 if the log ends before POSITION.
    """
    with closing(Inspection(database)) as inspection, reading():
        last = inspection.head().position
        if position > last:
            raise NotFound(f"the log ends at position {last}")
        found = drive(steps_of(position), inspection.read)
        if as_json:
            print_json(_json(found))
            return
        for text in _lines(found):
            click.echo(printable(text))


def _json(found: Explanation) -> dict[str, Any]:
    return {
        "event": _entry(found.entry),
        "command": [_entry(entry) for entry in found.command],
        "changes": builtins(found.changes),
        "causes": [{"why": cause.why, "event": _entry(cause.entry)} for cause in found.causes],
    }


def _entry(entry: LogEntry) -> dict[str, Any]:
    return {
        "position": entry.position,
        "at": utc_text(entry.at),
        "stream": entry.stream,
        "type": entry.type,
        "actor": entry.actor,
        "origin": entry.origin,
        "context": entry.context,
        "receipt": entry.receipt,
        "command": entry.command,
        "body": dict(entry.body),
    }


def _lines(found: Explanation) -> Iterator[str]:
    yield _line(found.entry)
    if found.entry.origin is not None:
        context = "" if found.entry.context is None else f", {found.entry.context}"
        yield f"  by {found.entry.origin}{context}"
    if len(found.command) > 1:
        yield "its command:"
        yield from (f"  {_line(entry)}" for entry in found.command)
    if found.changes:
        yield "it changed:"
        yield from (f"  {line(change)}" for change in found.changes)
    elif found.entry.type == "command.refused":
        yield "it changed nothing"
        yield from (f"  {name}: {value}" for name, value in _values(found.entry))
    if found.causes:
        yield "it goes back to:"
        for cause in found.causes:
            yield f"  {_line(cause.entry)}"
            yield f"      {cause.why}"


def _line(entry: LogEntry) -> str:
    at = f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S.%f}"[:-3]
    return f"{entry.position}  {at}  {entry.actor or '–'}  {entry.stream}  {entry.sentence}"


def _values(entry: LogEntry) -> Iterator[tuple[str, object]]:
    values = entry.body.get("values")
    if isinstance(values, dict):
        yield from values.items()
