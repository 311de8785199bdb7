"""Moments as people name them on the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from coordinator.clock import to_datetime
from coordinator.surfaces.cli.moment import Moment, parse_moment

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 12, 1, 10, 42, 7, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("10m", datetime(2026, 12, 1, 8, 32, 7, tzinfo=UTC)),
        ("1.5 h", datetime(2026, 12, 1, 7, 12, 7, tzinfo=UTC)),
        ("30s", datetime(2026, 12, 1, 8, 41, 37, tzinfo=UTC)),
        ("2d", datetime(2026, 11, 29, 8, 42, 7, tzinfo=UTC)),
        ("10:42", datetime(2026, 12, 1, 8, 42, tzinfo=UTC)),
        ("9:05", datetime(2026, 12, 1, 7, 5, tzinfo=UTC)),
        ("10:42:07.25", datetime(2026, 11, 30, 8, 42, 7, 250_000, tzinfo=UTC)),  # not yet today, so yesterday
        ("2026-12-01T10:42:07Z", datetime(2026, 12, 1, 10, 42, 7, tzinfo=UTC)),
        ("2026-12-01 10:42:07+02:00", datetime(2026, 12, 1, 8, 42, 7, tzinfo=UTC)),
    ],
)
def test_a_time_is_understood(text: str, then: datetime) -> None:
    moment = parse_moment(text, NOW)

    assert moment.position is None
    assert moment.at is not None
    assert to_datetime(moment.at) == then


def test_a_time_without_a_zone_is_local() -> None:
    moment = parse_moment("2026-12-01T10:42", NOW)

    assert moment.at is not None
    assert to_datetime(moment.at) == datetime(2026, 12, 1, 10, 42).astimezone()


def test_a_number_is_a_position() -> None:
    assert parse_moment(" 1207 ", NOW) == Moment(position=1207)


@pytest.mark.parametrize("text", ["", "soon", "10 weeks", "-3", "25:00", "10:61", "2026-13-01", "9" * 30, "²", "1e3"])
def test_what_names_no_moment_is_turned_down(text: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        parse_moment(text, NOW)
