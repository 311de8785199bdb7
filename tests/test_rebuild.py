"""Views that other folds made: rebuilt where they are older than ours, refused where they are newer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Raw

from coordinator import Coordinator, NewerFormat
from coordinator.commands import AddJob, ClaimNext
from coordinator.rebuild import bring_up_to_date
from coordinator.stores.interface import Store, Transaction, ViewRow
from coordinator.stores.memory import MemoryStore
from coordinator.stores.sqlite import SqliteStore
from projections.registry import FOLDS_VERSION
from tests.support import Workspace

OTHER_ROW = ViewRow("jobs", "left over", "ready", 1, "{}")


@pytest.fixture(params=["memory", "sqlite"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workspace]:
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore.open(tmp_path / "work.db")
    workspace = Workspace(store)
    for name in ("parser", "index"):
        job = AddJob(job=name, payload=Raw(b"{}"), paths=(name,), priority=0, max_attempts=5, review="other")
        workspace.do("ada", job)
    workspace.do("ada", ClaimNext(lease_us=60_000_000))
    yield workspace
    store.close()


def leave_as(store: Store, folds: int) -> None:
    """Leave the views as software with other folds would: with other rows, and its version."""

    def work(transaction: Transaction) -> None:
        transaction.clear_views()
        transaction.put([OTHER_ROW])
        transaction.append([], transaction.head()._replace(folds=folds))

    store.write(work, still_wanted=lambda: True)


def test_views_of_older_folds_are_made_anew_from_the_log(workspace: Workspace) -> None:
    rows = workspace.rows()
    leave_as(workspace.store, FOLDS_VERSION - 1)

    bring_up_to_date(workspace.store, patience_s=5)

    assert workspace.rows() == rows
    workspace.check()


def test_a_rebuild_raises_the_generation_and_what_was_remembered_is_forgotten(workspace: Workspace) -> None:
    leave_as(workspace.store, FOLDS_VERSION - 1)
    bring_up_to_date(workspace.store, patience_s=5)

    head = workspace.store.read(lambda snapshot: snapshot.head())
    second = workspace.do("bob", ClaimNext(lease_us=60_000_000))

    assert (head.generation, head.folds) == (1, FOLDS_VERSION)
    assert second.job.id == "index"
    workspace.check()


def test_a_second_rebuild_has_nothing_to_do(workspace: Workspace) -> None:
    leave_as(workspace.store, FOLDS_VERSION - 1)
    bring_up_to_date(workspace.store, patience_s=5)

    bring_up_to_date(workspace.store, patience_s=5)

    assert workspace.store.read(lambda snapshot: snapshot.head()).generation == 1


def test_nothing_is_written_over_views_of_older_folds(workspace: Workspace) -> None:
    leave_as(workspace.store, FOLDS_VERSION - 1)

    with pytest.raises(NewerFormat):
        workspace.ask("bob", ClaimNext(lease_us=60_000_000))

    assert workspace.rows() == {("jobs", "left over"): ("ready", 1, "{}")}


def test_views_of_newer_folds_are_refused_by_a_process_that_was_already_running(workspace: Workspace) -> None:
    leave_as(workspace.store, FOLDS_VERSION + 1)

    with pytest.raises(NewerFormat):
        workspace.ask("bob", ClaimNext(lease_us=60_000_000))
    with pytest.raises(NewerFormat):
        bring_up_to_date(workspace.store, patience_s=5)


async def test_opening_rebuilds_views_of_older_folds(tmp_path: Path) -> None:
    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        await coordinator.agent("ada").add_job("parser")
    store = SqliteStore.open(tmp_path / "work.db")
    leave_as(store, FOLDS_VERSION - 1)
    store.close()

    async with Coordinator.open(tmp_path / "work.db") as coordinator:
        jobs = await coordinator.jobs()

    assert [job.id for job in jobs] == ["parser"]


async def test_opening_refuses_views_of_newer_folds(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "work.db")
    leave_as(store, FOLDS_VERSION + 1)
    store.close()

    with pytest.raises(NewerFormat):
        async with Coordinator.open(tmp_path / "work.db"):
            pytest.fail("it was opened")
