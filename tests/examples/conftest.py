"""Ordering systems to spoil: each test's own, copied from one that is made once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.reorder.warehouse import create
from tests.examples.support import Shop


@pytest.fixture(scope="session")
def new_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody has it open, so it may be copied."""
    database = tmp_path_factory.mktemp("warehouse") / "warehouse.db"
    create(database, pause_s=0)
    return database


@pytest.fixture
def shop(new_warehouse: Path, tmp_path: Path) -> Iterator[Shop]:
    (tmp_path / "artifacts").mkdir()
    shop = Shop(Path(shutil.copy(new_warehouse, tmp_path)), tmp_path / "artifacts")
    yield shop
    shop.close()
