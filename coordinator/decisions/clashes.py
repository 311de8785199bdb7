"""Which reservations stand in the way of a path: itself, its parents, its children."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator.clock import to_datetime
from coordinator.refusals import CLASHES_NAMED, Clash
from coordinator.views import Views
from events.streams import job_stream
from projections.path_keys import children_range, parents, path_key
from projections.reservations import ReservationRow

_COUNTED = 1_000  # so many clashes are counted; beyond that their number helps nobody


def find_clashes(paths: Iterable[str], views: Views, *, own: str | None = None) -> list[Clash]:
    """All reservations that clash with any of the paths, except those of the job `own`.

    The first 20 are complete; of the rest only the number matters.
    """
    clashes: list[Clash] = []
    for path in paths:
        for row in in_the_way(path, views):
            if row.job == own:
                continue
            clashes.append(_clash(path, row, views) if len(clashes) < CLASHES_NAMED else clashes[-1])
            if len(clashes) == _COUNTED:
                return clashes
    return clashes


def is_free(paths: Iterable[str], views: Views) -> bool:
    """Whether nothing stands in the way of any of the paths."""
    return not any(True for path in paths for _ in in_the_way(path, views))


def in_the_way(path: str, views: Views) -> Iterator[ReservationRow]:
    """The reservations of the path itself, its parents and its children."""
    key = path_key(path)
    for held in (key, *parents(key)):
        row = views.reservations.get(held)
        if row is not None:
            yield row
    yield from views.reservations.between(*children_range(key))


def _clash(path: str, row: ReservationRow, views: Views) -> Clash:
    lease = views.leases.get(job_stream(row.job))
    until = 0 if lease is None else lease.lease_until
    return Clash(path=path, held=row.path, holder=row.worker, job=row.job, until=to_datetime(until))
