from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
