"""Why a job cannot be claimed: every reason, as data and in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from coordinator.clock import local_text
from coordinator.jobs import JobState

ReasonCode = Literal[
    "claimed",
    "submitted",
    "accepted",
    "cancelled",
    "attempts_exhausted",
    "dependency",
    "path_held",
    "path_wanted",
    "dependent_started",
]


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that stands in the way.

    Attributes:
        code: a stable word for programs.
        job: the job that it is about: the job itself; the dependency that is not accepted; the one that holds or wants
            a path; the one that builds on the result.
        state: the state of that job.
        since: when that job came into its state.
        until: when its claim lapses unless it is renewed.
        worker: who holds that job or submitted it.
        by: who brought it into that state, where that was not its worker.
        reason: what was said when it came into that state.
        path: the path that is wanted.
        held: the reserved path that stands in its way; for "path_wanted", the path that the other job wants.
        priority: of the job that wants the path and comes first.
        used: attempts that are used up.
        max_attempts: so many there may be.
        remedy: what would change it.
        because: what stands in the way of that job in turn.
        more: so many more reasons beneath this one are not told.
    """

    code: ReasonCode
    job: str
    state: JobState
    since: datetime
    until: datetime | None = None
    worker: str | None = None
    by: str | None = None
    reason: str | None = None
    path: str | None = None
    held: str | None = None
    priority: int | None = None
    used: int | None = None
    max_attempts: int | None = None
    remedy: str = ""
    because: tuple[Reason, ...] = ()
    more: int = 0


class Why(Struct, frozen=True, kw_only=True):
    """Whether a job can be claimed, and all that stands in the way. `str()` tells it in words.

    Attributes:
        job: the job's id.
        state: its state.
        version: its version.
        at: log time of the moment that this is about.
        since: when it came into its state.
        claimable: `claim` would grant it.
        passed_over: `claim_next` would not hand it out before something changes.
        reasons: all of them; empty if nothing stands in the way.
        more: so many more are not told.
    """

    job: str
    state: JobState
    version: int
    at: datetime
    since: datetime
    claimable: bool
    passed_over: bool
    reasons: tuple[Reason, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """It in words, in local time, a line each; what lies beneath is indented."""
        if not self.claimable:
            yield f"`{self.job}` cannot be claimed; it is {self.state}, version {self.version}"
        elif self.passed_over:
            yield f"`{self.job}` can be claimed by its id, but claim_next passes it over"
        else:
            since = local_text(self.since, self.at)
            yield f"`{self.job}` can be claimed; it is ready since {since}, version {self.version}"
        yield from _lines(self.reasons, self.more, self.at, "  ")


def _lines(reasons: tuple[Reason, ...], more: int, now: datetime, indent: str) -> Iterator[str]:
    for reason in reasons:
        yield f"{indent}- {sentence(reason, now)}"
        if reason.remedy:
            yield f"{indent}  to change it: {reason.remedy}"
        yield from _lines(reason.because, reason.more, now, indent + "  ")
    if more:
        yield f"{indent}- and {more:,} more"


def sentence(reason: Reason, now: datetime) -> str:
    """One reason in words, without what lies beneath it."""
    match reason.code:
        case "dependency":
            return f"blocked by `{reason.job}`, {_standing(reason, now)}"
        case "path_held":
            until = "" if reason.until is None else f" until {local_text(reason.until, now)}"
            return f"`{reason.held}` is held by {reason.worker} for job `{reason.job}`{until}" + _in_the_way(reason)
        case "path_wanted":
            return (
                f"`{reason.job}`, priority {reason.priority}, is ready and comes first "
                f"at `{reason.held}`{_in_the_way(reason)}"
            )
        case "dependent_started":
            return f"`{reason.job}` builds on it and has started: {_standing(reason, now)}"
        case _:
            return _standing(reason, now)


def _in_the_way(reason: Reason) -> str:
    return "" if reason.held == reason.path else f", in the way of `{reason.path}`"


def _standing(reason: Reason, now: datetime) -> str:
    since = ago(reason.since, now)
    by = "" if reason.by is None else f" by {reason.by}"
    said = "" if reason.reason is None else f": {reason.reason}"
    match reason.state:
        case "claimed":
            until = "" if reason.until is None else f" until {local_text(reason.until, now)}"
            return f"held by {reason.worker}{until}, claimed {since}"
        case "submitted":
            return f"submitted {since} by {reason.worker}, waiting for a review"
        case "accepted" | "cancelled":
            return f"{reason.state} {since}{by}{said}"
        case "failed":
            return f"failed {since}{by}, {reason.used} of {reason.max_attempts} attempts used up{said}"
        case "ready":
            return f"ready for {lasting(reason.since, now)}, and nobody has claimed it"
        case "blocked":
            return f"blocked itself for {lasting(reason.since, now)}"


def ago(at: datetime, now: datetime) -> str:
    return f"{lasting(at, now)} ago"


def lasting(since: datetime, now: datetime) -> str:
    """For how long, in the largest unit that makes at least two of it."""
    passed = max(now - since, timedelta()) // timedelta(seconds=1)
    for unit, seconds in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if passed >= 2 * seconds:
            return f"{passed // seconds} {unit}"
    return f"{passed} s"
