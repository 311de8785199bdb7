"""All that is measured, in the order of the tables."""

from __future__ import annotations

from benchmarks.scenario import Scenario
from benchmarks.scenarios.backlog import BACKLOG
from benchmarks.scenarios.growth import GROWTH
from benchmarks.scenarios.journey import ALONE, JOURNEY
from benchmarks.scenarios.opening import OPENING
from benchmarks.scenarios.peers import PEERS
from benchmarks.scenarios.processes import PROCESSES
from benchmarks.scenarios.replaying import REPLAYING
from benchmarks.scenarios.slow_disk import SLOW_DISK
from benchmarks.scenarios.turn import TURN

SCENARIOS: tuple[Scenario, ...] = (
    JOURNEY,
    ALONE,
    PROCESSES,
    TURN,
    GROWTH,
    OPENING,
    BACKLOG,
    REPLAYING,
    PEERS,
    SLOW_DISK,
)
