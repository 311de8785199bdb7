"""Moments on the command line: how they are written, and the log folded up to one."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta
from typing import NamedTuple

import click

from coordinator.clock import SystemClock, to_datetime, to_us
from coordinator.errors import InvalidInput
from coordinator.execute import now
from coordinator.moments import Moment
from coordinator.steps import drive, rows_of
from coordinator.stores.inspection import Inspection
from coordinator.surfaces.cli.shared import NotFound
from coordinator.surfaces.plain import plain

_PAGE = 2_000
_AGO = re.compile(r"(\d{1,9})(s|m|h|d)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_OF_DAY = re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")


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
    if written.isascii() and written.isdigit() and len(written) < 19:
        position = int(written)
        if position > head.position:
            raise NotFound(f"the log ends at position {head.position}")
        return Wanted(position, None)
    present = now(head, SystemClock())
    at = to_us(_time(written, to_datetime(present)))
    if at > present:
        raise InvalidInput("MOMENT", "lies in the future")
    return Wanted(inspection.read(lambda snapshot: snapshot.position_at(at)), at)


def _time(written: str, present: datetime) -> datetime:
    if ago := _AGO.fullmatch(written):
        return present - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        if _OF_DAY.fullmatch(written):
            return datetime.fromisoformat(f"{present.astimezone():%Y-%m-%d}T{written}").astimezone()
        return datetime.fromisoformat(written).astimezone()  # local time, if it names no zone
    except (ValueError, OverflowError):
        hint = "write a position (1207), a time (2026-12-01T10:42:07, 10:42:07) or how long ago (10m)"
        raise InvalidInput("MOMENT", f"{written!r} is no position and no time", hint=hint) from None


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
            _show(moment.position - begun_at, wanted.position - begun_at)
    if wanted.at is not None:
        moment.lapse_due(wanted.at)


def _fold_stream(inspection: Inspection, until: int, moment: Moment, stream: str) -> None:
    drive(rows_of(stream, until, moment.fold_one), inspection.read)
    moment.position = until
    row = inspection.read(lambda snapshot: snapshot.event(until))
    moment.at = 0 if row is None else row.at


def tell(moment: Moment) -> None:
    """People read on standard error what is damaged."""
    for problem in moment.problems:
        click.echo(f"coordinator: the workspace is damaged: {plain(problem)}", err=True)
    further = moment.problem_count - len(moment.problems)
    if further:
        click.echo(f"coordinator: and {further:,} more", err=True)


def _show(done: int, of: int) -> None:
    filled = 30 * done // max(of, 1)
    bar = "#" * filled + "." * (30 - filled)
    click.echo(f"\r[{bar}] {done:,} of {of:,} events", nl=done >= of, err=True)
