"""Moments as people name them: a position of the log, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple

import click

from coordinator.clock import to_us

_AGO: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d{1,6})?)?")


class Moment(NamedTuple):
    """Either a position, or a time in µs UTC."""

    position: int | None = None
    at: int | None = None


def moment(context: click.Context, parameter: click.Parameter, value: str | None) -> Moment | None:
    """For `click.option(callback=…)`: `1207`, `10:42`, `2026-12-01T10:42:07Z`, or `10m` for ten minutes ago."""
    if value is None:
        return None
    try:
        return parse_moment(value, datetime.now().astimezone())
    except (ValueError, OverflowError):
        problem = f"{value!r} is no position, no time such as 10:42 or 2026-12-01T10:42, and not 10m (ago)"
        raise click.BadParameter(problem) from None


def parse_moment(text: str, now: datetime) -> Moment:
    """What a text names at this time, in its zone.

    Raises:
        ValueError: it names no moment.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        position = int(text)
        if position >= 2**63:
            raise ValueError(text)
        return Moment(position=position)
    if ago := _AGO.fullmatch(text):
        return Moment(at=to_us(now - timedelta(seconds=float(ago[1]) * _SECONDS[ago[2]])))
    if _CLOCK.fullmatch(text):
        clock = time.fromisoformat(text.zfill(len(text) + (text[1] == ":")))
        today = datetime.combine(now.date(), clock).replace(tzinfo=now.tzinfo)
        return Moment(at=to_us(today if today <= now else today - timedelta(days=1)))
    moment = datetime.fromisoformat(text)
    return Moment(at=to_us(moment.astimezone() if moment.tzinfo is None else moment))
