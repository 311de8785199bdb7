"""What is said of a peer beside its figures."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

from benchmarks.peers.threads import Cycles

BODY = "x" * 220
"""The payload of a job."""


class Peer(NamedTuple):
    """One library.

    Attributes:
        name: in the tables.
        module: what is imported, to see whether it is there.
        cycle: the calls that make up the cycle, and what was set.
        durability: what its own defaults ask of SQLite.
        more: what it does beyond ours.
        less: what it leaves to its users.
        cycles_per_second: measures it.
    """

    name: str
    module: str
    cycle: str
    durability: str
    more: str
    less: str
    cycles_per_second: Callable[[str, int, float], Cycles]

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None
