"""All projections, and which of them an event concerns."""

from __future__ import annotations

from typing import Any

from events.union import AnyEvent
from projections.dependents import DEPENDENTS
from projections.jobs import JOBS
from projections.leases import LEASES
from projections.projection import Fold, Projection
from projections.reservations import RESERVATIONS
from projections.tokens import TOKENS

PROJECTIONS: tuple[Projection[Any], ...] = (JOBS, LEASES, TOKENS, RESERVATIONS, DEPENDENTS)

FOLDS_VERSION = 1
"""Rises with every change of a fold or a row: stored views of an older one are rebuilt."""

FOLDS: dict[type[AnyEvent], tuple[tuple[Projection[Any], Fold[Any]], ...]] = {
    event: tuple((projection, projection.folds[event]) for projection in PROJECTIONS if event in projection.folds)
    for event in AnyEvent.__args__  # type: ignore[attr-defined]
}
"""For each type of event the projections that it changes, with their functions."""
