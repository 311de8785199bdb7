"""For tests, ours and users': a coordinator in memory, and a clock that moves only when told to.

clock = ManualClock()
async with memory_coordinator(clock) as coordinator:
    late = await coordinator.agent("ada").claim(...)
    clock.advance(late.lease_s + 1)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coordinator.clock import ManualClock
from coordinator.coordinator import Coordinator

if TYPE_CHECKING:
    from coordinator.calls import CommandRecord
    from coordinator.clock import Clock

__all__ = ["ManualClock", "memory_coordinator"]


def memory_coordinator(
    clock: Clock | None = None, *, observe: Callable[[CommandRecord], None] | None = None
) -> Coordinator:
    """A coordinator whose workspace is gone when it is closed; everything else works as on a disk.

    Args:
        clock: the clock to live by, such as a `ManualClock`; the machine's if there is none.
        observe: called with a record of each command.
    """
    return Coordinator.open("memory:", clock=clock, observe=observe)
