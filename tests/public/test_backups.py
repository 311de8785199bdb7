"""Copies of a workspace in use."""

import os
import stat
from pathlib import Path

import pytest

from coordinator import Coordinator, InvalidInput, Unavailable
from coordinator.testing import memory_coordinator


async def test_a_backup_is_a_workspace_of_its_own_in_which_old_tokens_hold(tmp_path: Path) -> None:
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        ada = coordinator.agent("ada")
        claim = await ada.claim(await ada.add_job("parser", paths=["src"]))
        await coordinator.back_up(tmp_path / "copy.db")
        await claim.submit()

    async with Coordinator.open(tmp_path / "copy.db") as copy:
        resumed = await copy.agent("ada").resume(claim.token)
        left = await resumed.submit()

    assert left.state == "submitted"


async def test_a_backup_is_private_and_leaves_nothing_else_behind(tmp_path: Path) -> None:
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        (tmp_path / "copies").mkdir()

        await coordinator.back_up(tmp_path / "copies" / "copy.db")

    assert os.listdir(tmp_path / "copies") == ["copy.db"]
    assert stat.S_IMODE((tmp_path / "copies" / "copy.db").stat().st_mode) == 0o600


async def test_a_backup_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("something else")

    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        with pytest.raises(Unavailable, match="exists already"):
            await coordinator.back_up(tmp_path / "copy.db")

    assert (tmp_path / "copy.db").read_text() == "something else"


async def test_a_backup_never_replaces_a_file_that_appears_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copy.db").write_text("something else")
    monkeypatch.setattr("coordinator.stores.backup.os.path.lexists", lambda path: False)

    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        with pytest.raises(Unavailable):
            await coordinator.back_up(tmp_path / "copy.db")

    assert (tmp_path / "copy.db").read_text() == "something else"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".unfinished")]


async def test_a_backup_into_a_missing_folder_says_so_and_work_goes_on(tmp_path: Path) -> None:
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        with pytest.raises(Unavailable, match="missing"):
            await coordinator.back_up(tmp_path / "missing" / "copy.db")
        with pytest.raises(InvalidInput, match="target"):
            await coordinator.back_up("")

        added = await coordinator.agent("ada").add_job("parser")

    assert added.state == "ready"


async def test_a_workspace_in_memory_has_nothing_to_back_up() -> None:
    async with memory_coordinator() as coordinator:
        with pytest.raises(Unavailable, match="memory"):
            await coordinator.back_up("copy.db")


@pytest.mark.parametrize("name", ["work.db-journal", "other.db-wal", "work.db-shm", "work.db.turn"])
async def test_a_backup_cannot_have_a_name_that_belongs_beside_a_database(name: str, tmp_path: Path) -> None:
    """SQLite takes a copy called `work.db-journal` for its own, and removes it when it opens `work.db`."""
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        before = sorted(os.listdir(tmp_path))

        with pytest.raises(InvalidInput, match="belongs beside a database"):
            await coordinator.back_up(tmp_path / name)

        assert sorted(os.listdir(tmp_path)) == before


async def test_a_backup_may_have_any_other_name(tmp_path: Path) -> None:
    target = tmp_path / os.fsdecode(b"copy?#%41 \xff.db")
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        await coordinator.agent("ada").add_job("parser")

        await coordinator.back_up(target)

    async with Coordinator.open(target) as copy:
        assert [job.id for job in await copy.jobs()] == ["parser"]
