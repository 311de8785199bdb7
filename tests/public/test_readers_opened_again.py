"""A reader that is opened under a receipt it was opened with before: the same session, as it stands now."""

from __future__ import annotations

import pytest

from coordinator import Agent, Coordinator, ReaderSuperseded
from tests.public.support import entries

pytestmark = pytest.mark.both_stores


async def test_a_session_that_is_opened_again_by_its_receipt_goes_on_behind_what_it_acknowledged_since(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    for n in range(3):
        await ada.send("builds", {"n": n})
    async with bob.reader("builds", receipt="r") as reader:
        await reader.acknowledge((await reader.read())[:2])

    async with bob.reader("builds", receipt="r") as reader:
        place = (reader.delivered, reader.acknowledged)
        page = await reader.read()

    assert place == (2, 2)
    assert [message.number for message in page] == [3]
    assert [entry.type for entry in await entries(coordinator)].count("reader.opened") == 1


async def test_a_session_that_is_opened_again_by_its_receipt_is_refused_if_another_was_opened_since(
    ada: Agent, bob: Agent
):
    await ada.send("builds", {})
    async with bob.reader("builds", receipt="r"), bob.reader("builds"), bob.reader("builds", receipt="r") as late:
        with pytest.raises(ReaderSuperseded):
            await late.read()
