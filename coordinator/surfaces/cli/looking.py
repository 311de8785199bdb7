"""How commands look at a workspace: read-only, on one connection, without an event loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import msgspec

from coordinator.clock import SystemClock
from coordinator.envelopes import reading
from coordinator.execute import now
from coordinator.rebuild import check_head
from coordinator.seen import Seen
from coordinator.stores.inspection import Inspection
from coordinator.stores.interface import Snapshot

T = TypeVar("T")


def look(database: str, at_it: Callable[[Seen], T]) -> T:
    """What there is to see of the present.

    Raises:
        NotAWorkspace, NewerFormat, Unavailable: it cannot be read.
    """

    def work(snapshot: Snapshot) -> T:
        head = snapshot.head()
        check_head(head)
        return at_it(Seen(snapshot, now(head, SystemClock())))

    with closing(Inspection(database)) as inspection, reading():
        return inspection.read(work)


def builtins(value: Any) -> Any:
    """A struct as JSON has it; times in UTC."""
    return msgspec.to_builtins(value)
