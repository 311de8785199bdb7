"""All that is measured, in the order of the tables."""

from __future__ import annotations

from benchmarks.scenario import Scenario
from benchmarks.scenarios.auditing import AUDITING
from benchmarks.scenarios.backlog import BACKLOG
from benchmarks.scenarios.explaining import EXPLAINING
from benchmarks.scenarios.growth import GROWTH
from benchmarks.scenarios.journey import ALONE, JOURNEY
from benchmarks.scenarios.long_topic import LONG_TOPIC
from benchmarks.scenarios.opening import OPENING
from benchmarks.scenarios.operations import OPERATIONS
from benchmarks.scenarios.peers import PEERS
from benchmarks.scenarios.processes import PROCESSES
from benchmarks.scenarios.reading import READING
from benchmarks.scenarios.reading_the_log import READING_THE_LOG
from benchmarks.scenarios.replaying import REPLAYING
from benchmarks.scenarios.sending import SENDING
from benchmarks.scenarios.slow_disk import SLOW_DISK
from benchmarks.scenarios.turn import TURN
from benchmarks.scenarios.waking import WAKING

SCENARIOS: tuple[Scenario, ...] = (
    JOURNEY,
    ALONE,
    PROCESSES,
    TURN,
    GROWTH,
    OPENING,
    BACKLOG,
    SENDING,
    READING,
    LONG_TOPIC,
    WAKING,
    OPERATIONS,
    REPLAYING,
    READING_THE_LOG,
    AUDITING,
    EXPLAINING,
    PEERS,
    SLOW_DISK,
)
