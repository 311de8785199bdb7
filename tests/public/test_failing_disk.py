"""A disk that is full, or that fails at a commit: what callers hear, what stays, and how work goes on."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator import Agent, Coordinator, OutcomeUnknown, Unavailable
from coordinator.stores.checkpoint import Checkpoints
from coordinator.stores.hosted import HostedConnection
from coordinator.stores.sqlite import SqliteStore
from tests.disks import fill, small_disk
from tests.processes.support import run_program
from tests.public.support import PATIENCE_S, Records, entries, story

NO_ROOM = r"full \(free some space on the disk\)"
PAYLOAD = {"text": "x" * 3_000}


class FailingCommit:
    """Has the next COMMIT fail as it does when the disk does, before or after it took effect."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.armed = False
        self.done_first = False
        execute = sqlite3.Connection.execute

        def execute_or_fail(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
            if sql != "COMMIT" or not self.armed:
                return execute(connection, sql, parameters)
            self.armed = False
            if self.done_first:
                execute(connection, sql)
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error

        monkeypatch.setattr(HostedConnection, "execute", execute_or_fail, raising=False)


@pytest.fixture
def commit(monkeypatch: pytest.MonkeyPatch) -> FailingCommit:
    return FailingCommit(monkeypatch)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 1_000) as folder:
        yield folder


# A commit whose outcome nobody knows


@pytest.mark.parametrize(("done_first", "outcome"), [(False, "ok"), (True, "repeated")])
async def test_whether_a_failed_commit_took_effect_is_found_out_by_its_receipt(
    done_first: bool, outcome: str, commit: FailingCommit, database: Path, records: Records
):
    async with Coordinator.open(database, observe=records) as coordinator:
        commit.armed, commit.done_first = True, done_first

        job = await coordinator.agent("ada").add_job("parser")

        assert not commit.armed
        assert (job.id, job.position) == ("parser", 1)
        assert await story(coordinator) == ["job.added"]
        assert [record.outcome for record in records.of("add_job")] == [outcome]


async def test_a_failed_commit_of_many_commands_applies_each_of_them_once(commit: FailingCommit, database: Path):
    async with Coordinator.open(database) as coordinator:
        ada = coordinator.agent("ada")
        commit.armed = commit.done_first = True

        await asyncio.gather(*(ada.add_job(f"job-{number}") for number in range(20)))

        assert sorted(entry.stream for entry in await entries(coordinator)) == sorted(f"job/job-{n}" for n in range(20))


@pytest.mark.parametrize("done_first", [False, True])
async def test_only_where_the_store_cannot_be_asked_again_the_outcome_is_unknown_and_repeating_the_call_tells(
    done_first: bool, commit: FailingCommit, database: Path, monkeypatch: pytest.MonkeyPatch
):
    async with Coordinator.open(database, busy_timeout_s=0.1) as coordinator:
        ada = coordinator.agent("ada")
        commit.armed, commit.done_first = True, done_first
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoints, "run", lambda checkpoints: False)

            with pytest.raises(OutcomeUnknown, match="a reader is in the way") as unknown:
                await ada.add_job("parser")
            with pytest.raises(Unavailable, match="a reader is in the way"):
                await ada.add_job("lexer")

        job = await ada.add_job("parser", receipt=unknown.value.receipt)
        assert job.position == 1
        assert await story(coordinator) == ["job.added"]


async def test_how_long_opening_anew_is_tried_follows_from_the_commands_that_wait(
    commit: FailingCommit, database: Path, monkeypatch: pytest.MonkeyPatch
):
    async with Coordinator.open(database, busy_timeout_s=0.1) as coordinator:
        patience: list[tuple[float, ...]] = []
        monkeypatch.setattr("coordinator.stores.sqlite.patience", lambda *s: lambda: patience.append(s))
        monkeypatch.setattr(Checkpoints, "run", lambda checkpoints: False)
        commit.armed = True

        with pytest.raises(OutcomeUnknown):
            await coordinator.agent("ada").add_job("parser")

        assert patience == []


# No room


async def add_until_there_is_no_room(agent: Agent) -> list[str]:
    """Ids of the jobs whose adding was answered."""
    answered: list[str] = []
    while True:
        try:
            answered.append((await agent.add_job(f"job-{len(answered)}", PAYLOAD)).id)
        except Unavailable as error:
            if re.search(NO_ROOM, str(error)):
                return answered
            raise


async def test_who_writes_on_a_full_disk_hears_of_it_and_nothing_that_was_answered_is_lost(disk: Path):
    async with Coordinator.open(disk / "work.db", busy_timeout_s=0.1) as coordinator:
        ada = coordinator.agent("ada")
        await ada.add_job("first", PAYLOAD)
        filler = fill(disk)

        answered = ["first", *await add_until_there_is_no_room(ada)]
        with pytest.raises(Unavailable, match=NO_ROOM):
            await ada.add_job("another", PAYLOAD)
        assert sorted(job.id for job in await coordinator.jobs()) == sorted(answered)

        filler.unlink()
        answered.append((await ada.add_job("last", PAYLOAD)).id)
        assert sorted(job.id for job in await coordinator.jobs()) == sorted(answered)

    async with Coordinator.open(disk / "work.db") as coordinator:
        assert sorted(job.id for job in await coordinator.jobs()) == sorted(answered)


async def test_commands_that_wait_while_the_disk_is_full_are_done_when_there_is_room(
    disk: Path, monkeypatch: pytest.MonkeyPatch
):
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()
    write = SqliteStore.write

    def write_and_tell(store: SqliteStore, work: Any, **how: Any) -> Any:
        try:
            return write(store, work, **how)
        except Unavailable:
            loop.call_soon_threadsafe(failed.set)
            raise

    async with Coordinator.open(disk / "work.db", busy_timeout_s=PATIENCE_S) as coordinator:
        ada = coordinator.agent("ada")
        filler = fill(disk)
        monkeypatch.setattr(SqliteStore, "write", write_and_tell)
        adding = [asyncio.create_task(ada.add_job(f"job-{number}", PAYLOAD)) for number in range(30)]
        async with asyncio.timeout(PATIENCE_S):
            await failed.wait()

        filler.unlink()

        await asyncio.gather(*adding)
        assert len(await coordinator.jobs()) == 30


async def test_a_database_that_may_not_grow_takes_nothing_more_until_it_may(
    database: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same with SQLite's own limit, which needs no disk."""
    pages = 100
    write = SqliteStore.write

    def write_with_limit(store: SqliteStore, work: Any, **how: Any) -> Any:
        store._connection.execute(f"PRAGMA max_page_count={pages}")
        return write(store, work, **how)

    monkeypatch.setattr(SqliteStore, "write", write_with_limit)
    async with Coordinator.open(database, busy_timeout_s=0.1) as coordinator:
        ada = coordinator.agent("ada")

        answered = await add_until_there_is_no_room(ada)
        assert len(answered) == len(await coordinator.jobs())

        pages = 1_000
        await ada.add_job("last", PAYLOAD)
        assert len(answered) + 1 == len(await coordinator.jobs())


LIMITED = """
import asyncio, resource, sys
from coordinator import Coordinator, CoordinatorError

UNLIMITED = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

async def main():
    async with Coordinator.open(sys.argv[1], busy_timeout_s=0.1) as coordinator:
        ada = coordinator.agent("ada")
        answered, failed = [], []
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, UNLIMITED))
        while len(failed) < 3:
            receipt = f"receipt {len(answered) + len(failed)}"
            try:
                answered.append((await ada.add_job(receipt, {"text": "x" * 3000}, receipt=receipt)).id)
            except CoordinatorError as error:
                failed.append(receipt)
                assert "whether it is full" in str(error), error
        assert len(await coordinator.jobs()) == len(answered) > 3
        resource.setrlimit(resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
        for receipt in failed:
            answered.append((await ada.add_job(receipt, {"text": "x" * 3000}, receipt=receipt)).id)
    async with Coordinator.open(sys.argv[1]) as coordinator:
        assert sorted(job.id for job in await coordinator.jobs()) == sorted(answered)
    print("done")

asyncio.run(main())
"""


def test_a_process_that_may_not_write_larger_files_keeps_what_was_answered_and_goes_on_when_it_may(tmp_path: Path):
    """Unlike a full disk this is an error of the disk to SQLite, and the outcome of a commit unknown."""
    ended = run_program(LIMITED, "work.db", cwd=tmp_path)

    assert ended.stdout == "done\n", ended.stderr
