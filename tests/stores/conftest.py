from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from coordinator.stores.interface import Store
from coordinator.stores.memory import MemoryStore
from coordinator.stores.sqlite import SqliteStore
from coordinator.stores.sqlite_file import CONNECT, prepare, uri_of
from tests.stores.children import Child
from tests.stores.failing import FailingConnection
from tests.stores.rows import once


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a workspace may be created."""
    return tmp_path / "work.db"


@pytest.fixture
def sqlite(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore.open(path)) as store:
        yield store


@pytest.fixture
def connection(path: Path) -> FailingConnection:
    """What the store of the fixture `failing` runs on."""
    prepare(path, once)
    return sqlite3.connect(uri_of(str(path)), factory=FailingConnection, **CONNECT)


@pytest.fixture
def failing(path: Path, connection: FailingConnection) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, connection)) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each engine in turn."""
    if request.param == "memory":
        yield MemoryStore()
    else:
        yield request.getfixturevalue("sqlite")


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    """Starts other processes, and ends those that still run."""
    with ExitStack() as stack:
        yield lambda script, *arguments, **more: stack.enter_context(Child(script, *arguments, **more))
