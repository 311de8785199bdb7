"""One story, written once, and a copy of it for each test to break."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audit.story import Tampered, tampering, tell


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "work.db"
    asyncio.run(tell(path))
    return path


@pytest.fixture
def database(story: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(story, tmp_path / "work.db"))


@pytest.fixture
def log(database: Path) -> Iterator[Tampered]:
    yield from tampering(database)
