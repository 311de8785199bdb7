"""Claims one after another, for a worker's loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from coordinator.claim import Claim
from coordinator.seekers import Seekers


class Claims:
    """An asynchronous iterator of claims that waits for work.

    Args:
        ask: claims the best job there is, or one that was found further down, or none.
        until_settled: end when no job is ready, claimed or submitted.
    """

    def __init__(
        self, seekers: Seekers, ask: Callable[[str | None], Awaitable[Claim | None]], until_settled: bool
    ) -> None:
        self._seekers = seekers
        self._ask = ask
        self._until_settled = until_settled

    def __aiter__(self) -> Claims:
        return self

    async def __anext__(self) -> Claim:
        claim = await self._seekers.find(self._ask, waits=True, until_settled=self._until_settled)
        if claim is None:
            raise StopAsyncIteration
        return claim
