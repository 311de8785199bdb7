"""Who held what from when to when, and what else happened to them, as it is to be drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from coordinator.printable import printable
from coordinator.sentences import Narrator
from coordinator.stores.selection import Unreadable
from coordinator.surfaces.reading import Told
from events.commands import CommandRefused
from events.jobs import (
    AttemptEnded,
    JobAccepted,
    JobCancelled,
    JobClaimed,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobRejected,
    JobReleased,
    JobRenewed,
    JobReserved,
    JobRevoked,
    JobSubmitted,
)
from events.operations import (
    OperationFailed,
    OperationLapsed,
    OperationProgressed,
    OperationQueued,
    OperationReconciled,
    OperationRenewed,
    OperationStopped,
    OperationSucceeded,
)

Kind = Literal[
    "claimed",
    "renewed",
    "noted",
    "reserved",
    "submitted",
    "failed",
    "released",
    "lapsed",
    "revoked",
    "cancelled",
    "held",
    "accepted",
    "rejected",
    "refused",
]

TROUBLE: frozenset[Kind] = frozenset({"failed", "lapsed", "revoked", "rejected", "refused"})

_ENDS: dict[type, Kind] = {
    JobSubmitted: "submitted",
    JobFailed: "failed",
    JobReleased: "released",
    JobLapsed: "lapsed",
    JobRevoked: "revoked",
    JobCancelled: "cancelled",
    OperationSucceeded: "submitted",
    OperationFailed: "failed",
    OperationStopped: "revoked",
    OperationLapsed: "lapsed",
}
_ON_BARS: dict[type, Kind] = {
    JobRenewed: "renewed",
    JobNoted: "noted",
    JobReserved: "reserved",
    OperationRenewed: "renewed",
    OperationProgressed: "noted",
}
_ALONE: dict[type, Kind] = {JobAccepted: "accepted", JobRejected: "rejected", CommandRefused: "refused"}


class Mark(NamedTuple):
    """Something that happened at a moment, µs of log time."""

    at: int
    kind: Kind


@dataclass(slots=True)
class Bar:
    """A claim, or an attempt at an operation.

    Attributes:
        start: None if it began before what is drawn.
        end: None if it has not ended in what is drawn.
        how: it ended; `held` if it has not.
    """

    label: str
    start: int | None
    end: int | None = None
    how: Kind = "held"
    marks: list[Mark] = field(default_factory=list[Mark])


@dataclass(slots=True)
class Lane:
    """One worker."""

    bars: list[Bar] = field(default_factory=list[Bar])
    marks: list[Mark] = field(default_factory=list[Mark])


@dataclass(slots=True)
class Picture:
    """Lanes by worker, in the order in which they come up; times of the first and the last event.

    Attributes:
        troubles: the last of what went wrong, told.
    """

    lanes: dict[str, Lane] = field(default_factory=dict[str, Lane])
    first: int | None = None
    last: int = 0
    troubles: list[Told] = field(default_factory=list[Told])
    unreadable: list[Unreadable] = field(default_factory=list[Unreadable])


def picture(entries: Iterable[Told | Unreadable], narrator: Narrator, *, troubles: int = 8) -> Picture:
    """What these events tell of who held what.

    Args:
        narrator: who knows whose claims those are that began earlier.
        troubles: so many of them are kept.
    """
    drawn = Picture()
    bars: dict[tuple[str, int], Bar] = {}
    for entry in entries:
        if isinstance(entry, Unreadable):
            drawn.unreadable.append(entry)
            continue
        at = entry.row.at
        drawn.first = at if drawn.first is None else drawn.first
        drawn.last = at
        if _draw(entry, drawn, bars, narrator) in TROUBLE:
            drawn.troubles = [*drawn.troubles, entry][-troubles:]
    return drawn


def _draw(entry: Told, drawn: Picture, bars: dict[tuple[str, int], Bar], narrator: Narrator) -> Kind | None:
    """Puts an event where it belongs, and tells as what."""
    event, at = entry.event, entry.row.at
    if isinstance(event, JobClaimed | OperationQueued):
        who = event.worker if isinstance(event, JobClaimed) else event.operator
        bar = Bar(_label(event.stream, event.attempt), at)
        _lane(drawn, who).bars.append(bar)
        bars[event.stream, event.attempt] = bar
        return "claimed"
    kind = _ALONE.get(type(event))
    if isinstance(event, OperationReconciled):
        kind = "accepted" if event.finding == "done" else "rejected"
    if kind is not None:
        _lane(drawn, entry.row.actor or "").marks.append(Mark(at, kind))
        return kind
    kind = _ENDS.get(type(event)) or _ON_BARS.get(type(event))
    attempt: int | None = getattr(event, "attempt", None)
    if kind is None or attempt is None:
        return None
    bar = bars.get((event.stream, attempt))
    if bar is None:
        bar = bars[event.stream, attempt] = Bar(_label(event.stream, attempt), None)
        _lane(drawn, _whose(entry, attempt, narrator)).bars.append(bar)
    if type(event) in _ON_BARS:
        bar.marks.append(Mark(at, kind))
    else:
        missed = event.lease_until if isinstance(event, JobLapsed | OperationLapsed) else at
        bar.end, bar.how = max(min(missed, at), bar.start or 0), kind
        del bars[event.stream, attempt]
    return kind


def _whose(entry: Told, attempt: int, narrator: Narrator) -> str:
    """Whose claim it was that began before what is drawn."""
    event = entry.event
    if isinstance(event, AttemptEnded | JobCancelled | OperationLapsed) and not isinstance(event, JobSubmitted):
        grant = narrator.holder(event.stream, attempt, entry.row.position)
        return "" if grant is None else grant.holder
    return entry.row.actor or ""


def _label(stream: str, attempt: int) -> str:
    return f"{stream.partition('/')[2]} {attempt}"


def _lane(drawn: Picture, who: str) -> Lane:
    return drawn.lanes.setdefault(printable(who) or "?", Lane())
