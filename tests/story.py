"""A workspace in which something goes wrong, always the same to the microsecond: what the guide's terminals show."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Raw

from coordinator.clock import ManualClock
from coordinator.commands import (
    AcceptJob,
    AddJob,
    ClaimJob,
    NoteProgress,
    RenewClaim,
    SendMessage,
    SubmitJob,
)
from coordinator.stores.interface import Store
from coordinator.stores.sqlite import SqliteStore
from tests.support import Workspace

BEGIN = datetime(2026, 12, 1, 10, 40, 0, 120_000, tzinfo=UTC)
LEASE_US = 60_000_000


def added(job: str, *paths: str, **payload: str) -> AddJob:
    text = "{" + ",".join(f'"{name}":"{value}"' for name, value in payload.items()) + "}"
    return AddJob(job=job, payload=Raw(text.encode()), paths=paths, priority=0, max_attempts=5, review="other")


def late_worker(store: Store | None = None) -> Workspace:
    """ada stalls, bob takes over, and ada comes back with old work."""
    clock = ManualClock(BEGIN)
    workspace = Workspace(store, clock)
    at = _at(clock)
    workspace.do("planner", added("parser", "src/parser", task="parse"), "add-parser")
    workspace.do("planner", added("index", "src", task="index"))
    at(3)
    late = workspace.do("ada", ClaimJob(job="parser", version=1, lease_us=LEASE_US)).token.digest
    at(22)
    workspace.do("ada", RenewClaim(job="parser", token_digest=late, lease_us=LEASE_US))
    at(30)
    workspace.do("ada", NoteProgress(job="parser", token_digest=late, note=Raw(b'{"progress":0.5}')))
    at(52)
    workspace.ask("dave", ClaimJob(job="index", version=1, lease_us=LEASE_US), "claim-index", context="run 7")
    at(127)
    held = workspace.do("bob", ClaimJob(job="parser", version=3, lease_us=LEASE_US)).token.digest
    at(146)
    workspace.do("bob", RenewClaim(job="parser", token_digest=held, lease_us=LEASE_US))
    at(150.5)
    workspace.ask("ada", SubmitJob(job="parser", token_digest=late, result=Raw(b'{"lines":11}')))
    at(171)
    workspace.do("bob", SubmitJob(job="parser", token_digest=held, result=Raw(b'{"lines":12}')))
    workspace.do("bob", SendMessage(topic="builds", body=Raw(b'{"job":"parser"}')))
    at(204)
    workspace.do("carol", AcceptJob(job="parser", version=5))
    workspace.do("dave", ClaimJob(job="index", version=1, lease_us=LEASE_US), "claim-index")
    return workspace


def late_worker_in(path: Path) -> Path:
    """The same in a file."""
    with closing(SqliteStore.open(path)) as store:
        late_worker(store)
    return path


def _at(clock: ManualClock) -> Callable[[float], Any]:
    """Moves the clock to so many seconds behind the beginning."""
    begin = clock.wall()
    return lambda seconds: clock.advance(seconds - (clock.wall() - begin) / 1_000_000)
