"""Pages of a topic one after another, for a reader's loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from coordinator.messages import Message
from coordinator.refusals import PageUnacknowledged

if TYPE_CHECKING:
    from coordinator.reader import Reader


class Pages:
    """An asynchronous iterator of pages that waits for messages.

    Args:
        news: waits until there is more to read, or reading would be refused.
    """

    def __init__(self, reader: Reader, limit: int, news: Callable[[], Awaitable[None]]) -> None:
        self._reader = reader
        self._limit = limit
        self._news = news

    def __aiter__(self) -> Pages:
        return self

    async def __anext__(self) -> tuple[Message, ...]:
        reader = self._reader
        if reader.acknowledged < reader.delivered:
            raise PageUnacknowledged(reader.topic, reader.name, number=reader.delivered)
        while not (page := await reader.read(self._limit)):
            await self._news()
        return page
