"""An ordering system, made once for all tests that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.reorder.warehouse import create


@pytest.fixture(scope="session")
def new_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody has it open, so it may be copied."""
    database = tmp_path_factory.mktemp("warehouse") / "warehouse.db"
    create(database, pause_s=0)
    return database
