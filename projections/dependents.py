"""Who waits for a job: one row a pair, found by a range over the dependency."""

from __future__ import annotations

import msgspec

from events.envelope import Envelope
from events.jobs import JobAdded, JobRevised
from projections.projection import SEPARATOR, Changes, Get, Projection, keys_of


class DependentRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    dependency: str
    job: str


def dependents_range(dependency: str) -> tuple[str, str]:
    """The lowest key of the rows that wait for `dependency`, and the first key behind them."""
    return keys_of(dependency)


def place(row: DependentRow) -> tuple[str, int]:
    return "", 0


def _key(dependency: str, job: str) -> str:
    return dependency + SEPARATOR + job


def _defined(event: JobAdded | JobRevised, envelope: Envelope, get: Get[DependentRow]) -> Changes[DependentRow]:
    dropped = event.dropped if isinstance(event, JobRevised) else ()
    gone = [(_key(dependency, event.job), None) for dependency in dropped]
    return gone + [
        (_key(dependency, event.job), DependentRow(dependency=dependency, job=event.job))
        for dependency in event.depends_on
    ]


DEPENDENTS = Projection(
    name="dependents",
    row=DependentRow,
    place=place,
    ranged=True,
    folds={JobAdded: _defined, JobRevised: _defined},
)
