"""A workspace that somebody tampered with, or that a disk has damaged: said plainly, whatever is asked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coordinator import Claim, Coordinator, CoordinatorError, NewerFormat, NotAWorkspace, Unavailable
from coordinator.stores.interface import FORMAT
from projections.registry import FOLDS_VERSION
from tests.public.support import PATIENCE_S, Polls, claimed

RESTORE = "restore a backup"

NOTICED_AT_OPENING = {
    "no head": "DELETE FROM head",
    "no secret": "DELETE FROM secret",
    "no id": "DELETE FROM workspace",
    "two ids": "INSERT INTO workspace SELECT * FROM workspace",
    "short secret": "UPDATE secret SET key = x'00'",
    "empty id": "UPDATE workspace SET id = x''",
    "nothing said of streams": "DELETE FROM sorted",
    "no table of events": "DROP TABLE events",
    "no table of views": "DROP TABLE views",
    "no table of the head": "DROP TABLE head",
    "no table of secrets": "DROP TABLE secret",
    "no index of receipts": "DROP INDEX events_receipt",
    "no index of views": "DROP INDEX views_key",
    "a head behind the log": "UPDATE head SET position = 1",
    "a head before the log": "UPDATE head SET position = 9",
    "another digest": "UPDATE head SET digest = x'00'",
    "no events": "DELETE FROM events",
}

NOTICED_IN_USE = {
    "a row that is no JSON": "UPDATE views SET body = 'garbage'",
    "a row of another shape": "UPDATE views SET body = '{}'",
    "an event that is no JSON": "UPDATE events SET body = 'garbage' WHERE position <= 2",
    "an event that nobody knows": """UPDATE events SET body = '{"type":"job.exploded"}' WHERE position <= 2""",
    "a row that is no text": "UPDATE views SET body = CAST(x'7bff7d' AS TEXT)",
    "an event that is no text": "UPDATE events SET body = CAST(x'7bff7d' AS TEXT) WHERE position <= 2",
    "missing events": "DELETE FROM events WHERE position <= 2",
}

ASKED: dict[str, Callable[[Coordinator, Claim], Any]] = {
    "add_job": lambda c, claim: c.agent("ada").add_job("new"),
    "claim_next": lambda c, claim: c.agent("ada").claim_next(),
    "submit": lambda c, claim: claim.submit(),
    "job": lambda c, claim: c.job("parser"),
    "jobs": lambda c, claim: c.jobs(),
    "log": lambda c, claim: anext(c.log()),
    "log of a job": lambda c, claim: anext(c.log(job="parser")),
    "the past": lambda c, claim: c.at(2).jobs(),
    "recall": lambda c, claim: c.agent("ada").recall("first"),
    "wait_for_job": lambda c, claim: c.wait_for_job("parser", "claimed", "submitted"),
}


def tamper(database: Path, sql: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(sql)


async def written(coordinator: Coordinator) -> Claim:
    """Two jobs, one of them claimed, in three events or more."""
    await coordinator.agent("ada").add_job("lexer", receipt="first")
    return await claimed(coordinator.agent("ada"))


async def complaints(coordinator: Coordinator, claim: Claim) -> dict[str, str]:
    """What is said to those who ask, and by what kind of error. It must be one of ours."""
    said: dict[str, str] = {}
    for name, ask in ASKED.items():
        try:
            async with asyncio.timeout(PATIENCE_S):
                await ask(coordinator, claim)
        except StopAsyncIteration:
            continue
        except CoordinatorError as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


@pytest.mark.parametrize("sql", NOTICED_AT_OPENING.values(), ids=NOTICED_AT_OPENING)
async def test_what_every_workspace_has_is_looked_for_when_it_is_opened(sql: str, database: Path):
    async with Coordinator.open(database) as coordinator:
        await written(coordinator)
    tamper(database, sql)

    with pytest.raises(NotAWorkspace, match=f"{database.name} is damaged: .*{RESTORE}"):
        await Coordinator.open(database).__aenter__()


@pytest.mark.parametrize("sql", [*NOTICED_AT_OPENING.values(), *NOTICED_IN_USE.values()])
async def test_damage_to_a_workspace_in_use_is_said_plainly_to_whoever_meets_it(sql: str, database: Path):
    async with Coordinator.open(database, busy_timeout_s=0.01) as coordinator:
        claim = await written(coordinator)
        tamper(database, sql)

        said = await complaints(coordinator, claim)

        assert all("damaged" in text or "tampered" in text or "unknown" in text for text in said.values()), said


@pytest.mark.parametrize("sql", NOTICED_IN_USE.values(), ids=NOTICED_IN_USE)
async def test_what_cannot_be_read_is_called_damaged(sql: str, database: Path):
    async with Coordinator.open(database) as coordinator:
        await written(coordinator)
    tamper(database, sql)

    async with Coordinator.open(database, busy_timeout_s=0.01) as coordinator:
        with pytest.raises(Unavailable, match=f"the workspace is damaged: .*{RESTORE}"):
            await coordinator.job("lexer")
        with pytest.raises(Unavailable, match=f"the workspace is damaged: .*{RESTORE}"):
            await coordinator.agent("bob").claim("lexer", version=1)


async def test_a_body_that_cannot_be_read_is_called_damaged_when_it_is_looked_at(database: Path):
    async with Coordinator.open(database) as coordinator:
        await written(coordinator)
        tamper(database, NOTICED_IN_USE["an event that is no JSON"])

        entry = await anext(coordinator.log())

        with pytest.raises(Unavailable, match="damaged"):
            print(entry.body)


async def test_a_message_that_nobody_sent_is_called_damaged(database: Path):
    async with Coordinator.open(database) as coordinator:
        ada = coordinator.agent("ada")
        await ada.send("builds", {"n": 1})
        tamper(database, "UPDATE events SET actor = NULL WHERE position = 1")

        async with ada.reader("builds") as reader:
            with pytest.raises(Unavailable, match=f"the workspace is damaged: message 1 of 'builds' .*{RESTORE}"):
                await reader.read()


# Newer software beside a process that runs already


async def test_newer_software_that_changes_the_tables_under_a_process_ends_its_reading_writing_and_waiting(
    database: Path,
):
    async with Coordinator.open(database, busy_timeout_s=0.01) as coordinator:
        claim = await written(coordinator)
        waiting = asyncio.create_task(coordinator.wait_for_job("parser"))
        await asyncio.sleep(0)
        await coordinator.jobs()  # reads are answered in order, so it has looked

        tamper(database, f"ALTER TABLE head RENAME COLUMN folds TO fold; PRAGMA user_version = {FORMAT + 1}")

        said = await complaints(coordinator, claim)
        assert {text.partition(":")[0] for text in said.values()} == {"NewerFormat"}
        assert said.keys() == ASKED.keys()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(NewerFormat, match="install the newer version"):
                await waiting


@pytest.mark.parametrize("change", [f"folds = {FOLDS_VERSION + 1}", f"format = {FORMAT + 1}"])
async def test_what_newer_software_has_taken_over_is_neither_read_nor_written_any_more(
    change: str, database: Path, monkeypatch: pytest.MonkeyPatch
):
    polls = Polls(monkeypatch)
    async with Coordinator.open(database, busy_timeout_s=0.01) as coordinator:
        claim = await written(coordinator)
        waiting = asyncio.create_task(coordinator.wait_for_job("parser"))
        await asyncio.sleep(0)
        await polls.have_seen(coordinator)  # who waits must be woken, although nothing is appended

        tamper(database, f"UPDATE head SET {change}")

        said = await complaints(coordinator, claim)
        assert {text.partition(":")[0] for text in said.values()} == {"NewerFormat"}
        assert said.keys() == ASKED.keys()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(NewerFormat):
                await waiting

    for _ in range(2):
        with pytest.raises(NewerFormat):
            await Coordinator.open(database).__aenter__()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (3,)


async def test_a_job_that_cannot_be_read_is_called_damaged_to_those_who_wait_for_work(database: Path):
    """One search reads for all of them, and not inside their commands."""
    async with Coordinator.open(database) as coordinator:
        ada, bob = coordinator.agent("ada"), coordinator.agent("bob")
        await ada.add_job("waits", paths=["src"])
        await claimed(ada, "held", paths=["src"])
        tamper(database, "UPDATE views SET body = 'garbage' WHERE key = 'waits'")

        with pytest.raises(Unavailable, match=f"the workspace is damaged: .*{RESTORE}"):
            await anext(bob.claims())


async def test_an_event_that_cannot_be_read_is_called_damaged_when_views_are_made_anew(database: Path):
    async with Coordinator.open(database) as coordinator:
        await written(coordinator)
    tamper(database, "UPDATE head SET folds = folds - 1; " + NOTICED_IN_USE["an event that is no JSON"])

    with pytest.raises(Unavailable, match=f"the workspace is damaged: .*{RESTORE}"):
        await Coordinator.open(database).__aenter__()


async def test_each_attempt_to_open_says_why_it_failed(database: Path):
    async with Coordinator.open(database) as coordinator:
        await written(coordinator)
    tamper(database, f"UPDATE head SET folds = {FOLDS_VERSION + 1}")
    again = Coordinator.open(database)
    with pytest.raises(NewerFormat):
        await again.__aenter__()
    database.rename(database.with_name("away.db"))
    database.mkdir()

    with pytest.raises(NotAWorkspace):
        await again.__aenter__()
