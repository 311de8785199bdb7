"""Pages over messages of which some are stored and some are of the same batch."""

from __future__ import annotations

import pytest
from msgspec import Raw

from coordinator.answers import PageDelivered
from coordinator.commands import OpenReader, ReadMessages, SendMessage
from tests.support import Workspace


@pytest.mark.parametrize("stored", [0, 1, 63, 64, 65])
@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_a_page_holds_just_what_was_asked_for_wherever_it_begins_in_the_batch(stored: int, limit: int) -> None:
    workspace = Workspace()
    opened = workspace.do("bob", OpenReader(topic="builds", reader="bob"))
    workspace.batch(*(workspace.request("ada", send("builds", number)) for number in range(1, stored + 1)))

    def read(after: int, limit: int) -> ReadMessages:
        return ReadMessages(topic="builds", reader="bob", token_digest=opened.token.digest, after=after, limit=limit)

    *_, whole, part = workspace.batch(
        *(
            workspace.request("ada", send(topic, number))
            for number in range(stored + 1, stored + 71)
            for topic in TOPICS
        ),
        workspace.request("bob", read(0, 1_000), "whole"),
        workspace.request("bob", read(stored + 3, limit), "part"),
    )

    assert numbers(whole.answer) == list(range(1, stored + 71))
    assert numbers(part.answer) == list(range(stored + 4, stored + 71))[:limit]
    assert workspace.do("bob", read(0, 1_000), "whole") == whole.answer
    assert workspace.do("bob", read(stored + 3, limit), "part") == part.answer
    workspace.check()


TOPICS = ("others", "builds")


def send(topic: str, number: int) -> SendMessage:
    return SendMessage(topic=topic, body=Raw(b'{"of":"%s","n":%d}' % (topic.encode(), number)))


def numbers(page: object) -> list[int]:
    assert isinstance(page, PageDelivered)
    assert all(message.body == {"of": "builds", "n": message.number} for message in page.messages)
    return [message.number for message in page.messages]
