"""All projections, and which of them an event concerns."""

from __future__ import annotations

from typing import Any

from events.union import AnyEvent
from projections.dependents import DEPENDENTS
from projections.grants import GRANTS
from projections.jobs import JOBS
from projections.leases import LEASES
from projections.marks import MARKS
from projections.operations import OPERATIONS
from projections.projection import Fold, Projection
from projections.readers import READERS
from projections.reservations import RESERVATIONS
from projections.topics import TOPICS

PROJECTIONS: tuple[Projection[Any], ...] = (
    JOBS,
    LEASES,
    RESERVATIONS,
    DEPENDENTS,
    TOPICS,
    MARKS,
    READERS,
    OPERATIONS,
    GRANTS,
)

FOLDS_VERSION = 4
"""Rises with every change of a fold or a row: stored views of an older one are rebuilt."""

FOLDS: dict[type[AnyEvent], tuple[tuple[str, Fold[Any]], ...]] = {
    event: tuple((projection.name, projection.folds[event]) for projection in PROJECTIONS if event in projection.folds)
    for event in AnyEvent.__args__  # type: ignore[attr-defined]
}
"""For each type of event the views that it changes, with the functions that do it."""
