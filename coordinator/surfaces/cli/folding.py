"""Moments on the command line: how they are written, and the log folded up to one."""

from __future__ import annotations

import sys
from typing import NamedTuple

import click

from coordinator.clock import SystemClock, to_datetime
from coordinator.errors import InvalidInput
from coordinator.execute import now
from coordinator.moments import Moment
from coordinator.printable import printable
from coordinator.steps import drive, rows_of
from coordinator.stores.inspection import Inspection
from coordinator.surfaces.cli.moment import parse_moment
from coordinator.surfaces.cli.shared import NotFound, show_progress

_PAGE = 2_000


class Wanted(NamedTuple):
    """A position, and the time that it was asked by, in µs, if it was."""

    position: int
    at: int | None


def find(inspection: Inspection, written: str) -> Wanted:
    """A position of the log, a time, or how long ago: `1207`, `2026-12-01T10:42:07`, `10:42:07`, `10m`.

    Raises:
        InvalidInput: it is none of these, or lies in the future.
        NotFound: the log ends before this position.
    """
    head = inspection.head()
    present = now(head, SystemClock())
    try:
        named = parse_moment(written, to_datetime(present).astimezone())
    except (ValueError, OverflowError):
        hint = "write a position (1207), a time (2026-12-01T10:42:07, 10:42:07) or how long ago (10m)"
        raise InvalidInput("MOMENT", f"{written!r} is no position and no time", hint=hint) from None
    if named.position is not None:
        if named.position > head.position:
            raise NotFound(f"the log ends at position {head.position}")
        return Wanted(named.position, None)
    at = named.at or 0
    if at > present:
        raise InvalidInput("MOMENT", "lies in the future")
    return Wanted(inspection.read(lambda snapshot: snapshot.position_at(at)), at)


def fold(inspection: Inspection, wanted: Wanted, moment: Moment, stream: str | None = None) -> None:
    """Go on with a moment to another, page by page: each is a read of its own."""
    begun_at, shown = moment.position, sys.stderr.isatty()
    if stream is not None:
        _fold_stream(inspection, wanted.position, moment, stream)
    while moment.position < wanted.position:
        page = inspection.page(moment.position, min(_PAGE, wanted.position - moment.position))
        if not page:
            moment.problem(f"nothing can be read behind position {moment.position}")
            break
        moment.fold(page)
        if shown:
            show_progress(moment.position - begun_at, wanted.position - begun_at)
    if wanted.at is not None:
        moment.lapse_due(wanted.at)


def _fold_stream(inspection: Inspection, until: int, moment: Moment, stream: str) -> None:
    drive(rows_of(stream, until, moment.fold_one), inspection.read)
    moment.position = until
    row = inspection.read(lambda snapshot: snapshot.event(until))
    if row is not None:
        moment.reach(row)


def tell(moment: Moment) -> None:
    """People read on standard error what is damaged."""
    for problem in moment.problems:
        click.echo(f"coordinator: the workspace is damaged: {printable(problem)}", err=True)
    further = moment.problem_count - len(moment.problems)
    if further:
        click.echo(f"coordinator: and {further:,} more", err=True)
