"""A reader's handle: pages of a topic, handed out and acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from types import TracebackType

from coordinator import limits
from coordinator.answers import PageDelivered, SessionOpened, expect
from coordinator.commands import AcknowledgeMessages, OpenReader, ReadMessages
from coordinator.errors import Closed, InvalidInput
from coordinator.messages import Message
from coordinator.pages import Pages
from coordinator.refusals import PageUnacknowledged
from coordinator.seen import Seen
from coordinator.session import Session
from events.streams import reader_stream, topic_stream

_LIMIT = 100


class Reader:
    """One session of a reader, open inside its `async with`.

        async with agent.reader("builds") as reader:
            page = await reader.read()
            ...                                 # keep what it says
            await reader.acknowledge(page)

    What was handed out and not acknowledged is handed out again to the next session, also if the program was killed.
    Opening a reader anew locks the older session out: it raises `ReaderSuperseded` from then on.
    """

    def __init__(
        self, session: Session, actor: str, topic: str, name: str, receipt: str | None, context: str | None
    ) -> None:
        self._session = session
        self._actor = actor
        self._topic = topic
        self._name = name
        self._receipt = receipt
        self._context = context
        self._entered = False
        self._opened: SessionOpened | None = None
        self._cursor = 0
        self._acknowledged = 0
        self._reading = asyncio.Lock()

    @property
    def topic(self) -> str:
        return self._topic

    @property
    def name(self) -> str:
        """The reader's name: whoever opens it next goes on behind what this one has acknowledged."""
        return self._name

    @property
    def delivered(self) -> int:
        """Number of the last message that this session was handed, or has acknowledged."""
        return self._cursor

    @property
    def acknowledged(self) -> int:
        """Number of the last message that is acknowledged."""
        return self._acknowledged

    async def __aenter__(self) -> Reader:
        if self._entered:
            raise Closed("the reader is open already", hint="make another one for another session")
        self._entered = True
        try:
            command = OpenReader(topic=self._topic, reader=self._name)
            outcome = await self._session.ask(self._actor, command, self._receipt, self._context)
            opened = expect(SessionOpened, outcome.answer)
            acknowledged = opened.acknowledged
            if outcome.repeated:  # the session was opened earlier, and may have acknowledged more since
                acknowledged = await self._session.see(lambda seen: seen.acknowledged(self._topic, self._name))
        except BaseException:
            self._entered = False
            raise
        self._cursor = self._acknowledged = acknowledged
        self._opened = opened
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened = None
        self._entered = False
        self._session.waiting.wake({self._stream})  # who still waits for pages hears that it is closed

    def __repr__(self) -> str:
        return f"<Reader {self._name!r} of {self._topic!r}, acknowledged {self._acknowledged}>"

    async def read(
        self, limit: int = _LIMIT, *, receipt: str | None = None, context: str | None = None
    ) -> tuple[Message, ...]:
        """The next page at once, perhaps empty. Moves `delivered`. A second call waits for the first.

        Args:
            limit: so many messages at most, 1 to 1,000; fewer where the topic has bodies of more than 8 KiB, so that a
                page never comes to more than 8 MiB.

        Raises:
            ReaderSuperseded: somebody opened this reader anew.
        """
        limit = limits.whole("limit", limit, 1, limits.PAGE_MAX)
        self._session.check_here()  # before the lock, which would belong to the first loop that waits for it
        async with self._reading:
            return await self._read(limit, receipt, context)

    def pages(self, limit: int = _LIMIT) -> Pages:
        """Pages one after another, waiting for messages: `async for page in reader.pages()`.

        It never acknowledges, and does not hand out the next page before the last one is acknowledged: then it raises
        `PageUnacknowledged`.

        Args:
            limit: so many messages a page at most, 1 to 1,000; never more than 8 MiB, as in `read`.
        """
        limit = limits.whole("limit", limit, 1, limits.PAGE_MAX)
        return Pages(partial(self._read_if_acknowledged, limit), self._news)

    async def acknowledge(
        self, page: Sequence[Message] | int, *, receipt: str | None = None, context: str | None = None
    ) -> int:
        """Say that everything up to here is kept. Repeating it is harmless, and it never moves backwards.

        Args:
            page: the page, or the number of its last message. An empty page changes nothing.

        Returns:
            The last acknowledged number.

        Raises:
            NotDelivered: the message was not handed out to this reader yet.
            ReaderSuperseded: somebody opened this reader anew.
        """
        number = self._number(page)
        if number:
            command = AcknowledgeMessages(
                topic=self._topic, reader=self._name, token_digest=self._digest, number=number
            )
            await self._session.ask(self._actor, command, receipt, context)
            self._acknowledged = max(self._acknowledged, number)
            self._cursor = max(self._cursor, number)  # which an earlier session may have been handed
        return self._acknowledged

    async def _read_if_acknowledged(self, limit: int) -> tuple[Message, ...]:
        self._session.check_here()
        async with self._reading:  # before looking: of two who ask at once, one may be handed a page first
            if self._acknowledged < self._cursor:
                raise PageUnacknowledged(self._topic, self._name, number=self._cursor)
            return await self._read(limit, None, None)

    async def _read(self, limit: int, receipt: str | None, context: str | None) -> tuple[Message, ...]:
        command = ReadMessages(
            topic=self._topic, reader=self._name, token_digest=self._digest, after=self._cursor, limit=limit
        )
        outcome = await self._session.ask(self._actor, command, receipt, context)
        if outcome.answer is None:
            return ()
        page = expect(PageDelivered, outcome.answer).messages
        self._cursor = max(self._cursor, page[-1].number)  # only now: a page that was lost is handed out again
        return page

    async def _news(self) -> None:
        digest = self._digest

        def look(seen: Seen) -> tuple[None] | frozenset[str]:
            refused = self._opened is None or not seen.holds(self._stream, digest)
            if refused or seen.last_message(self._topic) > self._after(seen):
                return (None,)
            return frozenset({topic_stream(self._topic), self._stream})

        await self._session.until(look)

    def _after(self, seen: Seen) -> int:
        """Behind which message the next page begins: what was acknowledged is not handed out again."""
        return max(self._cursor, seen.acknowledged(self._topic, self._name))

    def _number(self, page: Sequence[Message] | int) -> int:
        if isinstance(page, int):
            return limits.whole("page", page, 0, limits.INTEGER_MAX)
        if not isinstance(page, Sequence) or isinstance(page, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "pass message.number, or page[:n]" if isinstance(page, Message) else ""
            raise InvalidInput(
                "page", f"must be a page as `read` gave it, or a number, not {limits.kind(page)}", hint=hint
            )
        for index, message in enumerate(page):
            if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(f"page[{index}]", f"must be a Message, not {limits.kind(message)}")
        if any(message.topic != self._topic for message in page):
            raise InvalidInput("page", f"is of another topic than {self._topic!r}")
        return max((message.number for message in page), default=0)

    @property
    def _stream(self) -> str:
        return reader_stream(self._topic, self._name)

    @property
    def _digest(self) -> str:
        if self._opened is None:
            raise Closed("the reader is not open", hint="async with agent.reader(…) as reader")
        return self._opened.token.digest
