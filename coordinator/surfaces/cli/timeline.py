"""`coordinator timeline`."""

from __future__ import annotations

import select
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Final, TypeVar

import click

from coordinator import limits
from coordinator.sentences import Narrator
from coordinator.stores.selection import SelectedRows, Selection, Unreadable
from coordinator.surfaces.cli.moment import Moment, moment
from coordinator.surfaces.cli.shared import FAILED, Command, NotFound, database_option, json_option
from coordinator.surfaces.colours import Colours, When, colours_for
from coordinator.surfaces.lines import Lines, in_json
from coordinator.surfaces.reading import Told, narrator_for, told, touches
from events.streams import escaped, job_stream, operation_stream, reader_stream, topic_stream

F = TypeVar("F", bound=Callable[..., object])
Entries = Iterator[Told | Unreadable]

_POLL_S: Final = 0.1
_WIDTH: Final = 100
_MOST: Final = 2**63 - 1  # more are as many
_FITTED: Final = 200  # so many lines are looked at before the first is printed

_EXAMPLE = """\b
Example:
  coordinator timeline --database work.db --job parser
  coordinator timeline --database work.db --refusals --since 10m
  coordinator timeline --database work.db --lanes --since 10:42 --until 10:45
  coordinator timeline --database work.db --follow --last 0 --json | jq .sentence
"""


def _selection_options(command: F) -> F:
    name = click.option
    for option in reversed(
        (
            name("--job", help="Only of this job."),
            name("--operation", help="Only of this operation."),
            name("--topic", help="Only of this topic; with --reader, of its reader."),
            name("--reader", help="Only of readers of this name."),
            name("--actor", "actors", multiple=True, help="Only what this actor asked for. More than one: either."),
            name("--path", help="Only what names this path, a folder above it or something in it."),
            name("--type", "types", multiple=True, metavar="PATTERN", help="Only of this type, such as 'job.*'."),
            name("--since", callback=moment, help="From a position, a time (10:42, 2026-12-01T10:42) or 10m ago."),
            name("--until", callback=moment, help="Up to a position or a time, as --since."),
            name("--refusals", is_flag=True, help="Only refusals."),
            name("--receipt", help="Only of the commands with this receipt, their refusals too."),
        )
    ):
        command = option(command)
    return command


@click.command(cls=Command, epilog=_EXAMPLE)
@database_option()
@_selection_options
@click.option("--limit", type=click.IntRange(1), help="The first so many.")
@click.option("--last", type=click.IntRange(0), help="The last so many.")
@click.option("--follow", is_flag=True, help="Go on with what is written from now on, until Ctrl-C.")
@click.option("--lanes", is_flag=True, help="Draw a lane for each worker instead.")
@click.option("--ascii", is_flag=True, help="Draw with ASCII alone.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@json_option
@click.pass_context
def timeline(
    context: click.Context,
    /,
    database: str,
    limit: int | None,
    last: int | None,
    follow: bool,
    lanes: bool,
    ascii: bool,
    color: When,
    as_json: bool,
    **selected: object,
) -> None:
    """Print what happened, a line for each event: position, local time, time since the line before, actor, subject, and
    what happened in words. It never writes to the workspace.

    All conditions hold together. What agents wrote is shown with control, bidi and zero-width characters written out.
    Events that cannot be read are named, and the rest is shown; the exit status is 1 then.
    """
    _check_usage(lanes=lanes, follow=follow, as_json=as_json, limit=limit, last=last, until=selected["until"])
    with closing(SelectedRows(database)) as rows:
        selection = _selection(**selected)  # type: ignore[arg-type]
        if not follow and selection.stream is not None and not rows.holds(selection.stream):
            raise NotFound(f"the log knows nothing of {selection.stream}")
        narrator = narrator_for(rows)
        entries = _entries(rows, selection, narrator, last, follow=follow)
        if limit is not None:
            entries = islice(entries, min(limit, _MOST))
        counted = _Counted(entries)
        colours = colours_for(sys.stdout, color)
        if lanes:
            _draw(counted, narrator, colours, ascii_only=ascii)
        else:
            _write(counted, rows, colours, as_json=as_json, ascii_only=ascii, at_once=follow)
    if not counted.all:
        click.echo("coordinator: there is no such event", err=True)
    if counted.unreadable:
        click.echo(f"coordinator: {counted.unreadable:,} events cannot be read; coordinator audit tells more", err=True)
        context.exit(FAILED)


def _check_usage(
    *, lanes: bool, follow: bool, as_json: bool, limit: int | None, last: int | None, until: object
) -> None:
    for together, what in (
        (lanes and as_json, "--lanes is for people: leave out --json"),
        (lanes and follow, "--lanes draws what is there: leave out --follow"),
        (
            limit is not None and last is not None and not follow,
            "--limit counts from the beginning, --last from the end: choose",
        ),
        (follow and until is not None, "--follow has no end: leave out --until"),
    ):
        if together:
            raise click.UsageError(what)


def _selection(
    *,
    job: str | None,
    operation: str | None,
    topic: str | None,
    reader: str | None,
    actors: tuple[str, ...],
    path: str | None,
    types: tuple[str, ...],
    since: Moment | None,
    until: Moment | None,
    refusals: bool,
    receipt: str | None,
) -> Selection:
    named = (("job", job), ("operation", operation), ("topic", topic), ("reader", reader))
    for field, value in named:
        if value is not None:
            limits.name(field, value)
    if sum(value is not None for _, value in named) - (topic is not None and reader is not None) > 1:
        raise click.UsageError("name one job, one operation, one topic or one reader")
    stream = None
    if job is not None:
        stream = job_stream(job)
    elif operation is not None:
        stream = operation_stream(operation)
    elif topic is not None:
        stream = topic_stream(topic) if reader is None else reader_stream(topic, reader)
    since, until = since or Moment(), until or Moment()
    return Selection(
        stream=stream,
        readers=escaped(reader) if reader is not None and topic is None else None,
        actors=actors,
        types=types,
        refusals=refusals,
        since=since.at,
        until=until.at,
        first=since.position or 1,
        last=until.position,
        receipt=receipt,
        body=None if path is None else touches(path),
    )


def _entries(
    rows: SelectedRows, selection: Selection, narrator: Narrator, last: int | None, *, follow: bool
) -> Entries:
    """What is there; with `follow` also what comes, and as long as nothing does, nothing is yielded."""
    after = 0
    if last is not None:
        after = rows.start_of_last(selection, min(last, _MOST)) if last else rows.last_position()
    while True:
        changes, end = rows.changes(), rows.last_position()
        for entry in told(rows.selected(selection, after), narrator):
            after = entry.row.position if isinstance(entry, Told) else entry.last
            yield entry
        if not follow:
            return
        after = max(after, end)
        sys.stdout.flush()
        while rows.changes() == changes:
            _wait()


def _wait() -> None:
    """A moment, unless nobody reads any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        raise BrokenPipeError
    time.sleep(_POLL_S)


class _Counted:
    """Passes entries on, and counts them, and the events that cannot be read."""

    def __init__(self, entries: Iterable[Told | Unreadable]) -> None:
        self._entries = entries
        self.all = 0
        self.unreadable = 0

    def __iter__(self) -> Entries:
        for entry in self._entries:
            self.all += 1
            if isinstance(entry, Unreadable):
                self.unreadable += entry.last - entry.position + 1
            yield entry


def _write(
    entries: Iterable[Told | Unreadable],
    rows: SelectedRows,
    colours: Colours,
    *,
    as_json: bool,
    ascii_only: bool,
    at_once: bool,
) -> None:
    lines = Lines(colours, position=rows.last_position(), nobody="-" if ascii_only or not _can_show("–") else "–")
    entries = iter(entries)
    first = [] if at_once else list(islice(entries, _FITTED))
    lines.fit(first)
    for entry in chain(first, entries):
        for line in (in_json(entry),) if as_json else lines.of(entry):
            sys.stdout.write(line + "\n")
        if at_once:
            sys.stdout.flush()
    sys.stdout.flush()


def _draw(entries: Iterable[Told | Unreadable], narrator: Narrator, colours: Colours, *, ascii_only: bool) -> None:
    from coordinator.surfaces import lanes
    from coordinator.surfaces.picture import picture

    symbols = lanes.ASCII if ascii_only or not _can_show(lanes.UNICODE.all) else lanes.UNICODE
    for line in lanes.lanes(picture(entries, narrator), _width(), symbols, colours):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _width() -> int:
    return shutil.get_terminal_size((_WIDTH, 0)).columns


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
