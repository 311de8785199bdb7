"""Pages of a topic one after another, for a reader's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.messages import Message
from coordinator.refusals import PageUnacknowledged
from coordinator.seen import Seen
from coordinator.session import Session

if TYPE_CHECKING:
    from coordinator.reader import Reader


class Pages:
    """An asynchronous iterator of pages that waits for messages."""

    def __init__(self, session: Session, reader: Reader, limit: int) -> None:
        self._session = session
        self._reader = reader
        self._limit = limit

    def __aiter__(self) -> Pages:
        return self

    async def __anext__(self) -> tuple[Message, ...]:
        reader = self._reader
        if reader.acknowledged < reader.delivered:
            raise PageUnacknowledged(reader.topic, reader.name, number=reader.delivered)

        def more(seen: Seen) -> tuple[bool] | None:
            return (True,) if seen.last_message(reader.topic) > reader.delivered else None

        while not (page := await reader.read(self._limit)):
            await self._session.until(more)
        return page
