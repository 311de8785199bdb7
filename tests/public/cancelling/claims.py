"""Claims under a receipt that the caller does not know, cancelled at any step."""

from __future__ import annotations

import asyncio
from typing import Any

from coordinator import Claims, JobRef
from tests.public.cancelling.row import Ask, Given, Row, losing_the_answer, ready
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World


def claim(covers: str, ask: Ask, *, given: Given = ready, meanwhile: Any = None, one: bool = True) -> Row:
    """The caller has the claim, or the job is free: no claim is left that nobody knows of.

    Args:
        one: there is one command only, and it claims.
    """

    async def afterwards(world: World, given: Any, ended: Ended) -> None:
        story = [entry.type for entry in await world.since("job.claimed", "job.released")]
        if not ended.cancelled:
            assert story == ["job.claimed"]
            assert (await ended.answer.submit()).state == "submitted"
            return
        never, undone = list[str](), ["job.claimed", "job.released"]
        expected = {"undrawn": [never], "applied": [undone]} if one else {}
        assert story in expected.get(ended.command or "", [never, undone])
        job = await world.coordinator.job(world.id)
        assert job.state == "ready"

        again = await ask(world, job if isinstance(given, JobRef) else given)

        assert (await again.submit()).state == "submitted"

    return Row(covers=covers.split(), given=given, ask=ask, afterwards=afterwards, meanwhile=meanwhile)


async def behind_many_that_clash(world: World) -> None:
    """So many as a transaction looks at (the fixture `hold` sees to that): the rest is searched apart."""
    await world.bob.claim(await world.bob.add_job(f"{world.id}-held", paths=["taken"]))
    await world.bob.add_job(f"{world.id}-first", paths=["taken"], priority=1)
    await ready(world)


async def looking(world: World) -> Claims:
    return world.ada.claims()


async def looking_where_work_is(world: World) -> Claims:
    await ready(world)
    return world.ada.claims()


async def work_comes(world: World, given: Any) -> None:
    await asyncio.sleep(0)  # the call is under way
    await ready(world)


CLAIMS = {
    "claim": claim("Agent.claim", lambda w, job: w.ada.claim(job)),
    "claim next": claim("Agent.claim_next", lambda w, _: w.ada.claim_next()),
    "claim whose answer is lost": claim("Agent.claim", lambda w, job: losing_the_answer(w, w.ada.claim(job))),
    "claim next whose answer is lost": claim("Agent.claim_next", lambda w, _: losing_the_answer(w, w.ada.claim_next())),
    "the next of all claims": claim(
        "Agent.claims Claims.__anext__", lambda w, claims: anext(claims), given=looking_where_work_is
    ),
    "the next of all claims, when work comes": claim(
        "Agent.claims Claims.__anext__",
        lambda w, claims: anext(claims),
        given=looking,
        meanwhile=work_comes,
        one=False,
    ),
    "claim next from far down": claim(
        "Agent.claim_next", lambda w, _: w.ada.claim_next(), given=behind_many_that_clash, one=False
    ),
}
