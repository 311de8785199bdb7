from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from coordinator.children import Supervised
from tests.processes.family import Family
from tests.processes.support import Pool, Team


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.end()


@pytest.fixture
def team(pool: Pool, database: Path, request: pytest.FixtureRequest) -> Iterator[Team]:
    """Worker processes on one file."""
    failed = request.session.testsfailed
    yield Team(pool, database)
    pool.take_back(healthy=request.session.testsfailed == failed)


@pytest.fixture
async def supervised() -> AsyncIterator[Supervised]:
    supervised = Supervised()
    yield supervised
    await supervised.close()


@pytest.fixture
def family(supervised: Supervised, tmp_path: Path) -> Family:
    return Family(supervised, tmp_path)
