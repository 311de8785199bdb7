"""Claims one after another, for a worker's loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from coordinator.claim import Claim
from coordinator.errors import Busy
from coordinator.seen import Seen
from coordinator.session import Session
from coordinator.waiting import Look


class Claims:
    """An asynchronous iterator of claims that waits for work.

    Args:
        claim_next: claims the best job there is, or none.
        until_settled: end when no job is ready, claimed or submitted.
    """

    def __init__(
        self, session: Session, claim_next: Callable[[], Awaitable[Claim | None]], until_settled: bool
    ) -> None:
        self._session = session
        self._claim_next = claim_next
        self._until_settled = until_settled

    def __aiter__(self) -> Claims:
        return self

    async def __anext__(self) -> Claim:
        claim = await self._session.waiting.until(self._look)
        if claim is None:
            raise StopAsyncIteration
        return claim

    async def _look(self) -> Look[Claim | None]:
        """A claim; None if there will be none; or how long nothing can change by itself."""
        try:
            claim = await self._claim_next()
        except Busy:
            return Look(None, 0)  # somebody holds the turn for long: whoever waits for work can wait for that, too
        if claim is not None:
            return Look((claim,), None)
        open_jobs, due_in = await self._session.see(_survey)
        return Look((None,) if self._until_settled and not open_jobs else None, due_in)


def _survey(seen: Seen) -> tuple[bool, int | None]:
    return seen.any_job("ready", "claimed", "submitted"), seen.due_in()
