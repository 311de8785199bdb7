"""Who waits for whom."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.decisions.lookup import known_job
from coordinator.refusals import DependenciesUnaccepted, DependencyCycle
from coordinator.views import Views
from events.jobs import JobBlocked, JobUnblocked
from projections.dependents import dependents_range
from projections.jobs import JobRow

_NAMED = 20


def all_accepted(dependencies: Iterable[str], views: Views, *, but: str | None = None) -> bool:
    """Whether every dependency is accepted, not looking at `but`."""
    return all(name == but or known_job(name, views).state == "accepted" for name in dependencies)


def unaccepted(job: JobRow, views: Views) -> DependenciesUnaccepted:
    """Names each dependency that is not accepted."""
    rows = [known_job(name, views) for name in job.depends_on]
    waiting = [(row.id, row.state) for row in rows if row.state != "accepted"]
    return DependenciesUnaccepted(job.id, waiting[:_NAMED], more=max(0, len(waiting) - _NAMED))


def dependents(job: str, views: Views) -> list[JobRow]:
    """The jobs that wait for `job`, in whatever state, by their ids: whatever else their batch holds."""
    rows = views.dependents.between(*dependents_range(job))
    return [known_job(name, views) for name in sorted(row.job for row in rows)]


def unblocked_by(job: str, views: Views) -> list[JobUnblocked]:
    """An event for each job whose last open dependency is `job`, which is being accepted."""
    return [
        JobUnblocked(job=row.id, by=job)
        for row in dependents(job, views)
        if row.state == "blocked" and all_accepted(row.depends_on, views, but=job)
    ]


def blocked_by(job: str, views: Views) -> list[JobBlocked]:
    """An event for each job that was ready, and waits again for `job`, which is being reopened."""
    return [JobBlocked(job=row.id, by=job) for row in dependents(job, views) if row.state == "ready"]


def refuse_cycle(job: str, depends_on: Iterable[str], views: Views) -> None:
    """Refuse dependencies through which `job` would wait for itself, naming the way."""
    came_from: dict[str, str] = dict.fromkeys(depends_on, job)
    open_ends = list(came_from)
    while open_ends:
        name = open_ends.pop()
        if name == job:
            raise DependencyCycle(job, _way(job, came_from))
        for needed in known_job(name, views).depends_on:
            if needed not in came_from:
                came_from[needed] = name
                open_ends.append(needed)


def _way(job: str, came_from: dict[str, str]) -> list[str]:
    way: list[str] = []
    name = came_from[job]
    while name != job:
        way.append(name)
        name = came_from[name]
    return [job, *reversed(way)]
