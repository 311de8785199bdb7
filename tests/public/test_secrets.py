"""Tokens and bodies stay out of everything that people read: logs, errors, `repr`, the events themselves."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

from coordinator import Agent, Claim, ClaimLost, Coordinator, InvalidInput, LogEntry, NotSubmitted, Refused, Token
from coordinator.testing import ManualClock
from tests.public.support import Records, at_work, claimed, entries, forever
from tests.support import secret_of

SECRET = "hunter2"
BODY = {"password": SECRET}


async def a_whole_story(
    coordinator: Coordinator, clock: ManualClock, records: Records
) -> tuple[list[Claim], list[Any]]:
    """Nearly everything that can happen; the claims that were granted, and all objects that were met on the way."""
    ada, bob = coordinator.agent("ada"), coordinator.agent("bob")
    met: list[Any] = [coordinator, ada, bob]

    first = await ada.claim(await ada.add_job("parser", BODY, paths=["src"]), receipt="ada-1")
    await first.renew()
    await first.note(BODY)
    await first.reserve(["docs"])
    met += await coordinator.reservations()
    met += [await first.add_job("lexer", BODY), first.working(), ada.claims(), coordinator.log(), coordinator.at(1)]
    for late in (bob.resume(first.token), bob.claim(first.job), ada.resume("1-" + "ab" * 32)):
        with pytest.raises(Refused) as refused:
            await late
        met.append(refused.value)
    clock.advance(60)
    second = await bob.claim(await coordinator.job("parser"))
    for late in (first.submit(BODY), first.renew(), ada.resume(first.token)):
        with pytest.raises(ClaimLost) as lost:
            await late
        met.append(lost.value)

    async def half_the_lease() -> None:
        clock.advance(30)
        await records.until("renew_claim", count=3)

    with pytest.raises(NotSubmitted) as left:
        await at_work(second, half_the_lease)
    met.append(left.value)
    third = await ada.claim(await coordinator.job("parser"))
    task = asyncio.create_task(third.working().__aenter__())
    await task
    met += [task, await third.submit(BODY)]
    fourth = await bob.claim_next()
    assert fourth is not None
    claims = [first, second, third, fourth]
    with pytest.raises(InvalidInput) as invalid:
        await ada.resume(first.token.reveal() + "!")
    met += [invalid.value, *claims, *[claim.token for claim in claims], *[claim.job for claim in claims]]
    met += await coordinator.jobs()
    met += await entries(coordinator)
    met += [await ada.recall("ada-1"), *records.all]
    return claims, met


@pytest.mark.both_stores
async def test_no_log_line_of_any_library_shows_a_token_or_a_body(
    coordinator: Coordinator, clock: ManualClock, records: Records, caplog: pytest.LogCaptureFixture
):
    asyncio.get_running_loop().set_debug(True)
    asyncio.get_running_loop().slow_callback_duration = 0  # asyncio shows each callback with its arguments
    for name in (None, "coordinator", "aiosqlite", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)

    claims, _ = await a_whole_story(coordinator, clock, records)
    await coordinator.close()

    said = caplog.text + "".join(repr(record.args) for record in caplog.records)
    assert any(record.name == "asyncio" for record in caplog.records)
    assert SECRET not in said
    for claim in claims:
        assert secret_of(claim.token) not in said
        assert secret_of(claim.token).upper() not in said


@pytest.mark.both_stores
async def test_no_public_object_shows_a_token_or_a_body(coordinator: Coordinator, clock: ManualClock, records: Records):
    claims, met = await a_whole_story(coordinator, clock, records)
    secrets = [SECRET, *[secret_of(claim.token) for claim in claims]]

    for thing in met:
        texts = [repr(thing), str(thing), f"{thing}", f"{thing!r:>100}", ascii(thing)]
        if isinstance(thing, BaseException):
            texts += traceback.format_exception(thing)
            texts += [repr(thing.args), repr(vars(thing))]
        for secret in secrets:
            assert not any(secret in text for text in texts), type(thing)


async def test_the_story_meets_every_public_class_that_holds_something(
    coordinator: Coordinator, clock: ManualClock, records: Records
):
    _, met = await a_whole_story(coordinator, clock, records)

    kinds = {type(thing).__name__ for thing in met}
    assert kinds >= set(
        "Agent Claim Claims CommandRecord Coordinator Job JobRef Log LogEntry Past Reservation Token Working".split()
    )


@pytest.mark.both_stores
async def test_no_event_holds_a_token(coordinator: Coordinator, clock: ManualClock, records: Records):
    claims, met = await a_whole_story(coordinator, clock, records)

    written = [repr((entry, entry.body)) for entry in met if isinstance(entry, LogEntry)]

    assert any(claims[0].token.digest in text for text in written)
    for claim in claims:
        assert not any(secret_of(claim.token) in text for text in written)


async def test_the_file_of_a_workspace_holds_no_token(tmp_path: Path, clock: ManualClock, records: Records):
    async with Coordinator.open(tmp_path / "work.db", clock=clock, observe=records) as coordinator:
        claims, _ = await a_whole_story(coordinator, clock, records)

    found = b"".join(file.read_bytes() for file in tmp_path.iterdir())

    assert SECRET.encode() in found
    for claim in claims:
        assert claim.token.digest.encode() in found
        assert secret_of(claim.token).encode() not in found
        assert bytes.fromhex(secret_of(claim.token)) not in found


async def test_a_token_shows_itself_only_when_asked_to_reveal(ada: Agent):
    token = (await claimed(ada)).token

    assert repr(token) == str(token) == f"{token}" == "Token(…)"
    assert f"{token:>10}" == "  Token(…)"
    assert len(secret_of(token)) == 64
    assert Token.parse("token", token.reveal()) == token
    with pytest.raises(TypeError, match="reveal"):
        pickle.dumps(token)
    assert copy.deepcopy(token) is token


async def test_two_tokens_are_equal_only_if_their_secrets_are(ada: Agent):
    one, other = (await claimed(ada, "a")).token, (await claimed(ada, "b")).token

    assert one != other
    assert one == Token.parse("token", one.reveal())
    assert one != one.reveal()
    assert len({one, other, Token.parse("token", one.reveal())}) == 2


async def test_a_body_is_shown_where_it_is_asked_for_and_only_there(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, payload=BODY)
    await claim.submit(BODY)

    job = await coordinator.job("parser")

    assert SECRET not in repr(job)
    assert job.payload == job.result == BODY


async def test_leaving_a_block_when_everything_is_closed_logs_no_secret(
    coordinator: Coordinator, ada: Agent, caplog: pytest.LogCaptureFixture
):
    claim = await claimed(ada, payload=BODY)

    async def work() -> None:
        async with claim.working():
            await forever()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await coordinator.close()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert "left to lapse" in caplog.text
    assert secret_of(claim.token) not in caplog.text
    assert SECRET not in caplog.text
