"""Finding out why a job cannot be claimed: all reasons at once, down the chain of its dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from coordinator.clock import to_datetime
from coordinator.decisions.clashes import in_the_way
from coordinator.reasons import Reason, Why
from coordinator.refusals import JobUnknown
from coordinator.seen import Seen
from projections.dependents import dependents_range
from projections.jobs import SETTLED, JobRow, rank_before
from projections.path_keys import keys_clash, path_key

TOLD = 200
"""So many reasons are told in all; the others are counted."""

DEEPEST = 50
"""Chains of dependencies are followed so far down."""

_NAMED = 20  # of one kind beneath one job
_COUNTED = 1_000
_LOOKED_AT = 10_000  # ready jobs of higher priority


def why(seen: Seen, job: str) -> Why:
    """What stands in the way of claiming this job.

    Raises:
        JobUnknown: there is none of this id.
    """
    row = seen.views.jobs.get(job)
    if row is None:
        raise JobUnknown(job)
    return _Search(seen).of(row)


class _Search:
    """Looks at each job once; what was told of it is not told again."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._views = seen.views
        self._told = 0
        self._explained: set[str] = set()

    def of(self, row: JobRow) -> Why:
        self._explained.add(row.id)
        own = [] if row.state in ("ready", "blocked") else [self._closed_or_taken(row)]
        beneath, more = ((), 0) if row.state == "accepted" else self._beneath(row, 0)
        reasons = (*own, *beneath)
        claimable = all(reason.code == "path_wanted" for reason in reasons) and not more
        return Why(
            job=row.id,
            state=row.state,
            version=row.version,
            at=to_datetime(self._seen.time),
            since=to_datetime(row.since),
            claimable=claimable,
            passed_over=bool(reasons or more),
            reasons=reasons,
            more=more,
        )

    def _closed_or_taken(self, row: JobRow) -> Reason:
        code: Any = "attempts_exhausted" if row.state == "failed" else row.state
        because, more = self._started(row) if row.state in SETTLED else ((), 0)
        return self._standing(row, code, because=because, more=more)

    def _beneath(self, row: JobRow, depth: int) -> tuple[tuple[Reason, ...], int]:
        """Dependencies that are not accepted, and paths that others hold or come first at."""
        found: list[Reason] = []
        more = 0
        for reason in (*self._dependencies(row, depth), *self._held(row), *self._wanted(row)):
            if isinstance(reason, int):
                more += reason
            elif len(found) < TOLD:
                found.append(reason)
        return tuple(found), more

    def _dependencies(self, row: JobRow, depth: int) -> Iterator[Reason | int]:
        waiting = (self._views.jobs.get(name) for name in row.depends_on)
        unaccepted = [other for other in waiting if other is not None and other.state != "accepted"]
        for other in unaccepted[:_NAMED]:
            if self._told >= TOLD:
                yield 1
                continue
            self._told += 1
            known = other.id in self._explained
            self._explained.add(other.id)
            if known or depth == DEEPEST:
                yield self._standing(other, "dependency", more=0 if known else len(other.depends_on))
                continue
            because, more = self._beneath(other, depth + 1)
            yield self._standing(other, "dependency", because=because, more=more)
        yield max(0, len(unaccepted) - _NAMED)

    def _held(self, row: JobRow) -> Iterator[Reason | int]:
        """By others; what the job itself holds ends with its claim."""
        counted = 0
        for path in row.paths:
            for held in in_the_way(path, self._views):
                other = None if held.job == row.id else self._views.jobs.get(held.job)
                if other is None:
                    continue
                counted += 1
                if counted <= _NAMED:
                    yield self._standing(other, "path_held", path=path, held=held.path, worker=held.worker)
                elif counted == _COUNTED:
                    break
        yield max(0, counted - _NAMED)

    def _wanted(self, row: JobRow) -> Iterator[Reason | int]:
        """Ready jobs of higher priority: `claim_next` keeps for them what they want, also while they have to wait."""
        if not row.paths or row.state not in ("ready", "blocked"):
            return
        wanted = [(path, path_key(path)) for path in row.paths]
        counted = 0
        ahead = self._views.jobs.scan("ready", up_to=rank_before(row.priority))
        for other in islice(ahead, _LOOKED_AT):
            clash = _clash(wanted, other.paths)
            if clash is None:
                continue
            counted += 1
            if counted <= _NAMED:
                yield self._standing(other, "path_wanted", path=clash[0], held=clash[1], priority=other.priority)
        yield max(0, counted - _NAMED)

    def _started(self, row: JobRow) -> tuple[tuple[Reason, ...], int]:
        """What must not have begun, for the job to be reopened."""
        rows = self._views.dependents.between(*dependents_range(row.id))
        jobs = (self._views.jobs.get(dependent.job) for dependent in islice(rows, _COUNTED))
        started = [job for job in jobs if job is not None and job.state in ("claimed", "submitted", "accepted")]
        named = tuple(self._standing(job, "dependent_started") for job in started[:_NAMED])
        return named, max(0, len(started) - _NAMED)

    def _standing(self, row: JobRow, code: Any, **more: Any) -> Reason:
        """How it stands with a job, which is why."""
        lease = self._views.leases.get("job/" + row.id) if row.state == "claimed" else None
        came = self._seen.came_to(row) if row.state in SETTLED else None
        values: dict[str, Any] = {
            "since": to_datetime(row.since),
            "until": None if lease is None else to_datetime(lease.lease_until),
            "worker": row.worker,
            "by": came,
            "reason": row.reason if row.state in SETTLED else None,
            "used": row.used if row.state == "failed" else None,
            "max_attempts": row.max_attempts if row.state == "failed" else None,
            "remedy": _remedy(row, code),
            **more,
        }
        return Reason(code=code, job=row.id, state=row.state, **values)


def _clash(wanted: Iterable[tuple[str, str]], paths: tuple[str, ...]) -> tuple[str, str] | None:
    for path, key in wanted:
        for other in paths:
            if keys_clash(key, path_key(other)):
                return path, other
    return None


def _remedy(row: JobRow, code: str) -> str:
    if code == "path_wanted":
        return "raise this job's priority to at least the other's, or claim it by its id while the path is free"
    if code == "dependent_started":
        return "cancel it, or reopen it if it is accepted, before this job can be reopened"
    match row.state:
        case "claimed":
            return f"wait until `{row.id}` is submitted, released or lapses; or revoke the claim"
        case "submitted":
            others = f"somebody other than {row.worker}" if row.review == "other" else "anybody"
            return f"{others} accepts or rejects `{row.id}`"
        case "ready":
            return f"`{row.id}` is claimed, submitted and accepted"
        case "blocked":
            return f"what blocks `{row.id}` is accepted"
        case "failed":
            return f"reopen `{row.id}`, which starts its attempts anew"
        case "accepted" | "cancelled":
            return f"reopen `{row.id}` if it is wanted again"
