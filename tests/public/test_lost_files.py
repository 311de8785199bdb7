"""Somebody moves, removes or replaces the files of a workspace while agents work: they hear of it, and lose nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator import Agent, Coordinator, Unavailable
from coordinator.stores import open_files
from tests.public.support import PATIENCE_S, story, turn_held


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is just closing the workspace."""
    monkeypatch.setattr(open_files, "_PATIENCE_S", 0)


@pytest.fixture
async def coordinator(tmp_path: Path) -> AsyncIterator[Coordinator]:
    """In a folder that can be moved."""
    (tmp_path / "folder").mkdir()
    async with Coordinator.open(tmp_path / "folder" / "work.db", busy_timeout_s=0.1) as coordinator:
        await coordinator.agent("ada").add_job("parser")
        yield coordinator


@pytest.mark.parametrize("name", ["folder", "folder/work.db", "folder/work.db-wal", "folder/work.db-shm"])
async def test_while_a_file_is_away_nothing_is_answered_and_when_it_is_back_all_goes_on(
    name: str, coordinator: Coordinator, ada: Agent, tmp_path: Path
):
    (tmp_path / name).rename(tmp_path / "elsewhere")

    for asking in (ada.add_job("lexer"), coordinator.jobs(), coordinator.at(1).jobs()):
        with pytest.raises(Unavailable, match=name):
            await asking

    (tmp_path / "elsewhere").rename(tmp_path / name)
    await ada.add_job("lexer")
    assert await story(coordinator) == ["job.added", "job.added"]


async def test_a_folder_that_was_removed_is_named(coordinator: Coordinator, ada: Agent, tmp_path: Path):
    shutil.rmtree(tmp_path / "folder")

    for asking in (ada.add_job("lexer"), coordinator.jobs(), coordinator.back_up(tmp_path / "copy.db")):
        with pytest.raises(Unavailable, match=r"work\.db.*(No such file|unable to open)"):
            await asking


async def test_a_backup_that_was_put_in_place_of_a_workspace_in_use_is_not_written_to(
    coordinator: Coordinator, ada: Agent, tmp_path: Path
):
    await coordinator.back_up(tmp_path / "copy.db")
    (tmp_path / "copy.db").replace(tmp_path / "folder" / "work.db")

    for asking in (ada.add_job("lexer"), coordinator.jobs()):
        with pytest.raises(Unavailable, match="replaced by another file"):
            await asking


async def test_a_command_that_waits_while_the_file_is_away_is_done_when_it_is_back(database: Path):
    elsewhere = database.with_name("elsewhere")
    async with Coordinator.open(database, busy_timeout_s=PATIENCE_S) as coordinator:
        with turn_held(database):
            adding = asyncio.create_task(coordinator.agent("ada").add_job("parser"))
            await asyncio.sleep(0)
            database.rename(elsewhere)
        with pytest.raises(Unavailable):
            await coordinator.jobs()

        elsewhere.rename(database)

        assert (await adding).position == 1


@pytest.mark.parametrize("name", ["work.db", "work.db-shm"])
async def test_who_waits_hears_that_a_file_is_gone(name: str, coordinator: Coordinator, tmp_path: Path):
    waiting = asyncio.create_task(coordinator.wait_for_job("parser"))
    await asyncio.sleep(0)
    await coordinator.jobs()  # reads are answered in order, so it has looked

    os.unlink(tmp_path / "folder" / name)

    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(Unavailable, match=name):
            await waiting


async def test_a_backup_of_a_workspace_whose_log_is_gone_is_refused_and_makes_no_new_log(
    coordinator: Coordinator, tmp_path: Path
):
    log = tmp_path / "folder" / "work.db-wal"
    log.rename(tmp_path / "elsewhere")

    with pytest.raises(Unavailable, match=r"work\.db-wal"):
        await coordinator.back_up(tmp_path / "copy.db")

    assert not log.exists()
    assert not (tmp_path / "copy.db").exists()
    (tmp_path / "elsewhere").rename(log)


async def test_what_was_answered_before_the_log_was_removed_is_there_when_it_is_opened_again(tmp_path: Path):
    database = tmp_path / "work.db"
    async with Coordinator.open(database, busy_timeout_s=0.1) as coordinator:
        for number in range(10):
            await coordinator.agent("ada").add_job(f"job-{number}")
        os.unlink(f"{database}-wal")
        os.unlink(f"{database}-shm")
        with pytest.raises(Unavailable, match="was removed"):
            await coordinator.agent("ada").add_job("lost")

    async with Coordinator.open(database) as coordinator:
        assert len(await coordinator.jobs()) == 10
