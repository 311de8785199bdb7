"""Pages of messages, cancelled at any step."""

from __future__ import annotations

import asyncio
from typing import Any

from coordinator import Reader
from tests.public.cancelling.row import Ask, Given, Row, losing_the_answer, reader
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World


def page(covers: str, ask: Ask, *, given: Given = reader, meanwhile: Any = None, one: bool = True) -> Row:
    """A page that did not arrive is the next one again: nothing is skipped.

    Args:
        one: there is one command only, under the receipt, so that asking again appends nothing.
    """

    async def afterwards(world: World, reader: Reader, ended: Ended) -> None:
        delivered = len(await world.since("messages.delivered"))
        if one:
            assert delivered == {"undrawn": 0, "applied": 1}.get(ended.command or "", delivered)
        assert ended.cancelled or delivered == 1
        assert reader.delivered == (0 if ended.cancelled else ended.answer[-1].number)

        handed_out = (await ask(world, reader)) if ended.cancelled else ended.answer

        assert [message.number for message in handed_out] == list(range(1, len(handed_out) + 1))
        if one:
            assert len(await world.since("messages.delivered")) == 1
            assert await world.ada.recall(world.receipt) == handed_out
        assert await reader.acknowledge(handed_out) == len(handed_out)

    return Row(covers=covers.split(), given=given, ask=ask, afterwards=afterwards, meanwhile=meanwhile)


async def reader_of_nothing(world: World) -> Reader:
    return await world.ada.reader(world.id).__aenter__()


async def something_is_sent(world: World, reader: Reader) -> None:
    await asyncio.sleep(0)  # the call is under way
    await world.bob.send(world.id, {"n": 1})


PAGES = {
    "read": page("Reader.read", lambda w, reader: reader.read(receipt=w.receipt)),
    "read whose answer is lost": page(
        "Reader.read", lambda w, reader: losing_the_answer(w, reader.read(receipt=w.receipt))
    ),
    "the next of all pages": page("Reader.pages Pages.__anext__", lambda w, reader: anext(reader.pages()), one=False),
    "the next of all pages, when something is sent": page(
        "Reader.pages Pages.__anext__",
        lambda w, reader: anext(reader.pages()),
        given=reader_of_nothing,
        meanwhile=something_is_sent,
        one=False,
    ),
}
