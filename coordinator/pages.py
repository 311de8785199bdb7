"""Pages of a topic one after another, for a reader's loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from coordinator.messages import Message


class Pages:
    """An asynchronous iterator of pages that waits for messages.

    Args:
        read: gives the next page, perhaps an empty one.
        news: waits until there is more to read, or reading would be refused.
    """

    def __init__(self, read: Callable[[], Awaitable[tuple[Message, ...]]], news: Callable[[], Awaitable[None]]) -> None:
        self._read = read
        self._news = news

    def __aiter__(self) -> Pages:
        return self

    async def __anext__(self) -> tuple[Message, ...]:
        while not (page := await self._read()):
            await self._news()
        return page
