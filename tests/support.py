"""The journey without an event loop: a workspace on a store, asked directly, and a look at what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from coordinator.clock import ManualClock
from coordinator.commands import AnyCommand
from coordinator.envelopes import envelope_of
from coordinator.execute import Journal, commit
from coordinator.request import Outcome, Request
from coordinator.stores.interface import LogRow, Store
from coordinator.stores.memory import MemoryStore
from coordinator.tokens import Token
from events.codec import chain
from projections.registry import PROJECTIONS
from projections.replay import Stored, compare, replay

_ALL = 2**31


class Workspace:
    """One writer on a store, with a clock that moves only when told to."""

    def __init__(self, store: Store | None = None, clock: ManualClock | None = None) -> None:
        self.store: Store = MemoryStore() if store is None else store
        self.clock = ManualClock() if clock is None else clock
        self.journal = Journal(self.clock, "test/1/2026-01-01T00:00:00Z")
        self._receipts = count(1)

    def request(self, actor: str, command: AnyCommand, receipt: str | None = None, **more: Any) -> Request:
        return Request(
            actor=actor, command=command, receipt=receipt or f"receipt {next(self._receipts)} of {id(self)}", **more
        )

    def batch(self, *requests: Request) -> list[Outcome]:
        """What becomes of these requests in one transaction."""
        return commit(self.store, lambda: requests, self.journal, still_wanted=lambda: True)

    def ask(self, actor: str, command: AnyCommand, receipt: str | None = None, **more: Any) -> Outcome:
        """What becomes of one request in a transaction of its own."""
        return self.batch(self.request(actor, command, receipt, **more))[0]

    def do(self, actor: str, command: AnyCommand, receipt: str | None = None) -> Any:
        """The answer to one request, which must not fail."""
        outcome = self.ask(actor, command, receipt)
        if outcome.error is not None:
            raise outcome.error
        return outcome.answer

    def log(self, after: int = 0) -> list[LogRow]:
        return self.store.read(lambda snapshot: snapshot.events(after=after, limit=_ALL))

    def types(self, after: int = 0) -> list[str]:
        return [row.type for row in self.log(after)]

    def rows(self) -> dict[tuple[str, str], Stored]:
        """Every row of every view, as it is stored."""
        return self.store.read(
            lambda snapshot: {
                (row.view, row.key): (row.bucket, row.rank, row.body)
                for projection in PROJECTIONS
                for row in snapshot.range(projection.name, "", None, limit=_ALL)
            }
        )

    def check(self) -> None:
        """The chain holds, time and positions run on, and the stored rows are what the log says."""
        log = self.log()
        head = self.store.read(lambda snapshot: snapshot.head())
        assert [row.position for row in log] == list(range(1, head.position + 1))
        assert [row.at for row in log] == sorted(row.at for row in log)
        assert [row.digest for row in log] == digests(self.store.workspace, log)
        assert head.digest == (log[-1].digest if log else self.store.workspace)
        assert list(compare(replay(map(envelope_of, log)), self.rows())) == []


def digests(workspace: bytes, log: Sequence[LogRow]) -> list[bytes]:
    """The chain as it follows from the rows' columns."""
    found: list[bytes] = []
    digest = workspace
    for row in log:
        digest = chain(digest, row[:-1])
        found.append(digest)
    return found


def secret_of(token: Token) -> str:
    """The secret of a token in hex, without the fence before it."""
    return token.reveal().partition("-")[2]
