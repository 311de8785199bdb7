"""Reads, waits and logs, cancelled at any step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from coordinator import Claim, Log, LogEntry, Why
from tests.public.cancelling.row import Ask, Given, Row, claimed, handed_out, ready, told
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World


def read(covers: str, ask: Ask, *, given: Given = claimed, meanwhile: Any = None) -> Row:
    """Asking again, through the same handle, gives what an undisturbed call gives, and nothing is appended."""

    async def afterwards(world: World, given: Any, ended: Ended) -> None:
        answer = await ask(world, given)
        assert ended.cancelled or told(ended.answer) == told(answer)
        assert told(answer) == told(await ask(world, given))
        assert await world.since() == []

    return Row(covers=covers.split(), given=given, ask=ask, afterwards=afterwards, meanwhile=meanwhile)


async def without_time(asked: Awaitable[Why]) -> object:
    why = await asked
    return why.state, why.reasons


async def past(world: World) -> Any:
    await claimed(world)
    return world.coordinator.at((await world.another_command()).position)


async def past_time(world: World) -> Any:
    await claimed(world)
    return world.coordinator.at((await world.since())[-1].at)


async def past_with_readers(world: World) -> Any:
    await handed_out(world)
    return world.coordinator.at((await world.another_command()).position)


async def last_position(world: World) -> int:
    await claimed(world)
    return (await world.since())[-1].position


async def claimed_by_receipt(world: World) -> Claim:
    return await world.ada.claim(await ready(world), receipt=world.receipt)


async def claimed_by_bob(world: World) -> Claim:
    return await world.bob.claim(await world.bob.add_job(world.id, review="none"))


async def handed_in(world: World, claim: Claim) -> None:
    await asyncio.sleep(0)  # the call is under way
    await claim.submit()


READS = {
    "recall": read("Agent.recall", lambda w, claim: w.ada.recall(w.receipt), given=claimed_by_receipt),
    "resume": read("Agent.resume", lambda w, claim: w.ada.resume(claim.token)),
    "job": read("Coordinator.job", lambda w, _: w.coordinator.job(w.id)),
    "jobs": read("Coordinator.jobs", lambda w, _: w.coordinator.jobs("claimed")),
    "reservations": read("Coordinator.reservations", lambda w, _: w.coordinator.reservations()),
    "who": read("Coordinator.who", lambda w, _: w.coordinator.who(".")),
    "why": read("Coordinator.why", lambda w, _: without_time(w.coordinator.why(w.id))),
    "who in the past": read("Past.who", lambda w, past: past.who("."), given=past),
    "why in the past": read("Past.why", lambda w, past: without_time(past.why(w.id)), given=past),
    "explain": read("Coordinator.explain", lambda w, last: w.coordinator.explain(last), given=last_position),
    "diff": read("Coordinator.diff", lambda w, last: w.coordinator.diff(0, last), given=last_position),
    "job in the past": read("Past.job", lambda w, past: past.job(w.id), given=past),
    "jobs in the past": read("Past.jobs", lambda w, past: past.jobs(), given=past),
    "jobs at a time": read("Past.jobs", lambda w, past: past.jobs(), given=past_time),
    "reservations in the past": read("Past.reservations", lambda w, past: past.reservations(), given=past),
    "topics": read("Coordinator.topics", lambda w, _: w.coordinator.topics(), given=handed_out),
    "readers": read("Coordinator.readers", lambda w, _: w.coordinator.readers(w.id), given=handed_out),
    "topics in the past": read("Past.topics", lambda w, past: past.topics(), given=past_with_readers),
    "readers in the past": read("Past.readers", lambda w, past: past.readers(w.id), given=past_with_readers),
    "wait for a job": read(
        "Coordinator.wait_for_job",
        lambda w, _: w.coordinator.wait_for_job(w.id),
        given=claimed_by_bob,
        meanwhile=handed_in,
    ),
}


# Logs


class Listener:
    """Somebody who hears a log from its beginning, perhaps not in one go."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.heard: list[LogEntry] = []

    async def hear(self) -> None:
        async for entry in self.log:
            self.heard.append(entry)


def listen(covers: str, log: Callable[[World, int], Log]) -> Row:
    """Whoever goes on after a cancellation hears every entry once."""

    async def given(world: World) -> Listener:
        claim = await claimed(world)
        notes = [await claim.note({"number": number}) for number in range(3)]
        return Listener(log(world, notes[-1]))

    async def afterwards(world: World, listener: Listener, ended: Ended) -> None:
        await listener.hear()
        types = [entry.type for entry in listener.heard]
        assert types == ["job.added", "job.claimed", "job.noted", "job.noted", "job.noted"]
        assert await world.since() == []

    return Row(covers=covers.split(), given=given, ask=lambda w, listener: listener.hear(), afterwards=afterwards)


LOGS = {
    "log": listen("Coordinator.log Log.__anext__", lambda w, last: w.coordinator.log(job=w.id)),
    "log of the past": listen("Past.log Log.__anext__", lambda w, last: w.coordinator.at(last).log(job=w.id)),
}
