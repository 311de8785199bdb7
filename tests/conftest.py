"""Fixtures for tests of the running coordinator, and a limit of time for each of those tests."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from types import FrameType

import pytest

from coordinator import Agent, Coordinator
from coordinator.testing import ManualClock
from tests.processes.support import LONGER
from tests.public.support import Gate, Looks, Polls, Records

HERE = Path(__file__).parent
BOUNDED = (HERE / "public", HERE / "processes")
LIMIT_S = 60 * LONGER

# A shell that starts a job in the background has it ignore Ctrl-C, and so would every program that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_stores: runs with the coordinator in memory, and again on a SQLite file")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("both_stores") is not None:
        metafunc.parametrize("coordinator", ["memory", "sqlite"], indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that hangs fails; while it still hangs, once more every few seconds."""
    if not any(item.path.is_relative_to(folder) for folder in BOUNDED):
        return (yield)

    def too_late(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"not done after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S, 5)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the coordinator's SQLite file is, if it has one."""
    return tmp_path / "work.db"


@pytest.fixture
def records() -> Records:
    """What `coordinator` tells its observer."""
    return Records()


@pytest.fixture
async def coordinator(
    request: pytest.FixtureRequest, clock: ManualClock, database: Path, records: Records
) -> AsyncIterator[Coordinator]:
    """Open, on a clock that stands still; in memory, unless the test asks for `both_stores` or for "sqlite"."""
    place = database if getattr(request, "param", "memory") == "sqlite" else "memory:"
    async with Coordinator.open(place, clock=clock, observe=records) as opened:
        yield opened


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Where a test can hold up the writer."""
    gate = Gate(monkeypatch)
    yield gate
    gate.open()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> Polls:
    return Polls(monkeypatch)


@pytest.fixture
def ada(coordinator: Coordinator) -> Agent:
    return coordinator.agent("ada")


@pytest.fixture
def bob(coordinator: Coordinator) -> Agent:
    return coordinator.agent("bob")
