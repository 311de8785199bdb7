"""What the library wrote passes, wherever it lies and whoever writes on; and reading it leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings

from coordinator import Coordinator
from coordinator.auditing.audit import Anchor, audit
from coordinator.auditing.jobs import Jobs
from coordinator.auditing.messages import Messages
from coordinator.auditing.operations import Operations
from coordinator.auditing.paths import Paths
from coordinator.auditing.rule import Findings, readings_of
from coordinator.auditing.spilled import Spill, SpilledMap
from coordinator.auditing.violation import Violation
from events.envelope import Envelope
from tests.audit.story import Tampered, found
from tests.projections.histories import HISTORIES

TIMEOUT_S = 60

WRITER = """
import asyncio, sys
from coordinator import Coordinator

async def main():
    async with Coordinator.open(sys.argv[1]) as coordinator:
        ada, bob = coordinator.agent("ada"), coordinator.agent("bob")
        for number in range(1_000_000):
            claim = await bob.claim(await ada.add_job(f"more/{number}", paths=[f"more/{number}"]))
            await claim.send("more", {"n": number})
            await claim.submit()
            await ada.accept(await coordinator.job(f"more/{number}"))
            if number == 3:
                print("ready", flush=True)

asyncio.run(main())
"""


@pytest.fixture
def writer(database: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which writes for as long as the test lasts."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(database)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def contents(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def judged(history: list[Envelope]) -> list[Violation]:
    """What the rules that read events find in them."""
    findings = Findings()
    with closing(Spill()) as spill:
        jobs = Jobs(spill, findings)
        readings = readings_of([jobs, Paths(findings), Messages(spill, findings), Operations(spill, findings)])
        command = 0
        for envelope in history:
            if envelope.command != command:
                command = envelope.command
                jobs.command(command)
            for read in readings.get(type(envelope.event), ()):
                read(envelope.event, envelope)
        jobs.command(0)
    return findings.take()


def test_what_the_library_wrote_passes(database: Path) -> None:
    assert found(database) == []


@given(HISTORIES)
@settings(max_examples=60, deadline=None)
def test_whatever_the_decisions_let_happen_passes_the_rules(history: list[Envelope]) -> None:
    assert judged(history) == []


def test_a_log_passes_while_another_process_goes_on_writing_it(database: Path, writer: subprocess.Popen[str]) -> None:
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    ends: set[int] = set()

    while len(ends) < 3:
        assert writer.poll() is None
        read: list[int] = []
        assert list(audit(database, progress=lambda done, of: read.append(done))) == []  # noqa: B023
        ends.add(read[-1])

    assert min(ends) > 32


async def test_an_empty_workspace_and_a_copy_that_the_library_made_pass(database: Path, tmp_path: Path) -> None:
    async with Coordinator.open(database) as coordinator:
        await coordinator.back_up(tmp_path / "copy.db")
    async with Coordinator.open(tmp_path / "empty.db"):
        pass

    assert found(tmp_path / "copy.db") == []
    assert found(tmp_path / "empty.db") == []
    assert found(tmp_path / "empty.db", Anchor(0, "00" * 16)) == [("anchor", 0)]


async def test_an_audit_leaves_the_file_and_its_folder_as_they_were(story: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "work.db").write_bytes(story.read_bytes())
    before = contents(alone)

    assert found(alone / "work.db") == []

    assert contents(alone) == before


def test_a_log_that_is_left_beside_the_file_is_read_and_stays(database: Path, log: Tampered, tmp_path: Path) -> None:
    log.sql("PRAGMA wal_autocheckpoint=0")
    log.sql("UPDATE head SET position = position + 1")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for end in ("", "-wal"):
        (crashed / f"work.db{end}").write_bytes(Path(f"{database}{end}").read_bytes())
    before = contents(crashed)

    assert found(crashed / "work.db") == [("head", None)]

    after = contents(crashed)
    assert {name: after[name] for name in before} == before


def test_a_mapping_holds_what_was_set_however_little_of_it_is_in_memory() -> None:
    with closing(Spill()) as spill:
        small = SpilledMap[str](spill, "small", lambda value: ("", len(value), value), str, hot=3)
        plain: dict[str, str] = {}
        for number in range(200):
            key, value = f"k{number * 7 % 31:02}", "v" * (number % 5)
            assert small.get(key) == plain.get(key)
            if value:
                plain[key] = value
            else:
                plain.pop(key, None)
            small.set(key, value or None)

        assert dict(small.entries()) == {key: ("", len(value), value) for key, value in plain.items()}
        assert [key for key, _ in small.entries()] == sorted(plain)
