"""Opening and closing: what can be opened, what is refused, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coordinator import (
    Agent,
    Busy,
    Closed,
    Coordinator,
    CoordinatorError,
    InvalidInput,
    NewerFormat,
    NotAWorkspace,
    Unavailable,
    UnsupportedEventLoop,
)
from coordinator.testing import ManualClock, memory_coordinator
from tests.public.support import PATIENCE_S, Gate, claimed, entries, forever, turn_held

LeftRunning = Callable[[], list[threading.Thread]]


@pytest.fixture(autouse=True)
def left_running() -> Iterator[LeftRunning]:
    """The threads of this test, ours and aiosqlite's, that do not end. One that was told to may take a moment more."""
    before = set(threading.enumerate())

    def left_running() -> list[threading.Thread]:
        ours = [
            thread
            for thread in set(threading.enumerate()) - before
            if thread.name.startswith("coordinator-") or "_connection_worker_thread" in thread.name
        ]
        for thread in ours:
            thread.join(5)
        return [thread for thread in ours if thread.is_alive()]

    yield left_running
    assert left_running() == []


# What can be opened


async def test_a_workspace_is_created_where_there_is_none_and_readable_only_for_its_owner(database: Path):
    async with Coordinator.open(database) as coordinator:
        assert await coordinator.jobs() == []

    assert stat.S_IMODE(database.stat().st_mode) == 0o600


async def test_a_workspace_outlives_those_who_have_it_open(database: Path):
    async with Coordinator.open(database) as coordinator:
        claim = await claimed(coordinator.agent("ada"), payload={"size": 1})
        token = claim.token.reveal()

    async with Coordinator.open(database) as coordinator:
        assert (await coordinator.job("parser")).payload == {"size": 1}
        resumed = await coordinator.agent("ada").resume(token)
        assert (await resumed.submit()).state == "submitted"


@pytest.mark.parametrize(
    "name",
    ["work.db", "a b.db", "what?.db", "#1.db", "50%.db", "Ä 作業.db", os.fsdecode(b"\xff.db"), "sqlite", "x:y.db"],
)
async def test_a_file_may_have_any_name(name: str, tmp_path: Path):
    async with Coordinator.open(tmp_path / name) as coordinator:
        await coordinator.agent("ada").add_job("parser")

    assert (tmp_path / name).exists()
    async with Coordinator.open(str(tmp_path / name)) as coordinator:
        assert len(await coordinator.jobs()) == 1


@pytest.mark.parametrize("url", ["sqlite:{}", "sqlite://{}"])
async def test_a_file_may_be_named_by_a_url(url: str, database: Path):
    async with Coordinator.open(url.format(database)) as coordinator:
        await coordinator.agent("ada").add_job("parser")

    assert database.exists()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:a%20b%3F%23.db", b"a b?#.db"),
        ("sqlite:%FF.db", b"\xff.db"),
        ("SQLite:work.db", b"work.db"),
        ("./postgres:base", b"postgres:base"),
        (Path("postgres:base"), b"postgres:base"),
        (Path("memory:"), b"memory:"),
        ("c:work", b"c:work"),
        ("./:memory:", b":memory:"),
        (Path(":memory:"), b":memory:"),
    ],
)
async def test_a_url_names_exactly_the_file_that_it_says_and_a_path_is_no_url(
    url: str | Path, name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)

    async with Coordinator.open(url):
        pass

    assert sorted(os.listdir(os.fsencode(tmp_path))) == [name, name + b".turn"]


async def test_a_relative_path_is_one_of_the_folder_in_which_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    async with Coordinator.open("work.db") as coordinator:
        monkeypatch.chdir("/")
        await coordinator.agent("ada").add_job("parser")
        await coordinator.back_up(tmp_path / "copy.db")  # opens the file once more

    async with Coordinator.open(tmp_path / "copy.db") as coordinator:
        assert len(await coordinator.jobs()) == 1


async def test_two_coordinators_in_memory_know_nothing_of_each_other():
    async with memory_coordinator() as one, memory_coordinator() as other:
        await one.agent("ada").add_job("parser")

        assert await other.jobs() == []


async def test_two_coordinators_on_one_file_see_and_wake_each_other(database: Path):
    async with Coordinator.open(database) as one, Coordinator.open(database) as other:
        waiting = asyncio.create_task(anext(other.agent("bob").claims()))
        await asyncio.sleep(0)

        await one.agent("ada").add_job("parser")

        async with asyncio.timeout(PATIENCE_S):
            claim = await waiting
        assert claim.job.id == "parser"
        assert (await one.job("parser")).worker == "bob"


# What is refused


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes(text)")
        connection.execute("PRAGMA application_id=42")
        connection.commit()


def another_program_without_a_name(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes(text)")
        connection.commit()


def no_database(path: Path) -> None:
    path.write_bytes(b"Dear diary, today I was no database at all. " * 100)


def short_text(path: Path) -> None:
    path.write_bytes(b"hello")


def folder(path: Path) -> None:
    path.mkdir()


UNFIT: dict[str, Callable[[Path], None]] = {
    "another program's": another_program,
    "another program's without a name": another_program_without_a_name,
    "no database": no_database,
    "short text": short_text,
    "folder": folder,
}


@pytest.mark.parametrize("make", UNFIT.values(), ids=UNFIT)
async def test_what_is_no_workspace_is_refused_and_left_as_it_was(make: Callable[[Path], None], database: Path):
    make(database)
    before = database.read_bytes() if database.is_file() else None

    with pytest.raises(NotAWorkspace) as refused:
        await Coordinator.open(database).__aenter__()

    assert str(database) in str(refused.value)
    assert (database.read_bytes() if database.is_file() else None) == before


async def test_an_empty_file_becomes_a_workspace_and_private(database: Path):
    nothing(database)
    database.chmod(0o644)

    async with Coordinator.open(database) as coordinator:
        await coordinator.agent("ada").add_job("parser")

    assert stat.S_IMODE(database.stat().st_mode) == 0o600


async def test_what_newer_software_wrote_is_refused(database: Path):
    async with Coordinator.open(database):
        pass
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version=999")

    with pytest.raises(NewerFormat, match="install the newer version"):
        await Coordinator.open(database).__aenter__()


async def test_a_workspace_that_newer_software_takes_over_is_refused_from_then_on(database: Path):
    async with Coordinator.open(database) as coordinator:
        ada = coordinator.agent("ada")
        await ada.add_job("parser")
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("UPDATE head SET format = 999")
            connection.commit()

        with pytest.raises(NewerFormat):
            await ada.add_job("lexer")
        with pytest.raises(NewerFormat):
            await coordinator.job("parser")
        with pytest.raises(NewerFormat):
            await coordinator.at(1).job("parser")


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path):
    with pytest.raises(Unavailable, match="create the folder first"):
        await Coordinator.open(tmp_path / "nowhere" / "work.db").__aenter__()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    tmp_path.chmod(0o500)

    with pytest.raises(Unavailable, match="check the permissions"):
        await Coordinator.open(tmp_path / "work.db").__aenter__()


async def test_whoever_holds_the_turn_for_too_long_is_named(database: Path):
    async with Coordinator.open(database):
        pass

    with turn_held(database), pytest.raises(Busy, match=f"held by process {os.getpid()}"):
        await Coordinator.open(database, busy_timeout_s=0.05).__aenter__()


@pytest.mark.parametrize("place", ["memory:", "work.db"])
def test_without_asyncio_opening_says_that_it_is_needed(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As on trio: there is an event loop, but not one that asyncio knows of."""
    monkeypatch.chdir(tmp_path)
    entering: Coroutine[Any, Any, Coordinator] = Coordinator.open(place).__aenter__()

    with pytest.raises(UnsupportedEventLoop, match="run under asyncio"):
        entering.send(None)

    assert list(tmp_path.iterdir()) == []


async def test_what_could_not_be_opened_can_be_opened_later(database: Path):
    folder(database)
    coordinator = Coordinator.open(database)
    with pytest.raises(NotAWorkspace):
        await coordinator.__aenter__()

    database.rmdir()

    async with coordinator:
        await coordinator.agent("ada").add_job("parser")


# Before and after


@pytest.fixture(params=["memory", "sqlite"])
async def closed(request: pytest.FixtureRequest, database: Path) -> tuple[Coordinator, Agent, Any, Any]:
    """A coordinator that is closed, with an agent, a claim and a job of its time."""
    async with Coordinator.open("memory:" if request.param == "memory" else database) as coordinator:
        ada = coordinator.agent("ada")
        claim, job, past, log = await claimed(ada), await ada.add_job("other"), coordinator.at(1), coordinator.log()
    return coordinator, ada, claim, (job, past, log)


AFTERWARDS: dict[str, Callable[[Coordinator, Agent, Any, Any], Any]] = {
    "agent": lambda c, ada, claim, rest: c.agent("bob"),
    "at": lambda c, ada, claim, rest: c.at(1),
    "job": lambda c, ada, claim, rest: c.job("parser"),
    "jobs": lambda c, ada, claim, rest: c.jobs(),
    "reservations": lambda c, ada, claim, rest: c.reservations(),
    "log": lambda c, ada, claim, rest: anext(c.log()),
    "wait_for_job": lambda c, ada, claim, rest: c.wait_for_job("parser"),
    "back_up": lambda c, ada, claim, rest: c.back_up("copy.db"),
    "the past": lambda c, ada, claim, rest: rest[1].jobs(),
    "a log begun": lambda c, ada, claim, rest: anext(rest[2]),
    "add_job": lambda c, ada, claim, rest: ada.add_job("new"),
    "revise_job": lambda c, ada, claim, rest: ada.revise_job(rest[0], priority=1),
    "cancel_job": lambda c, ada, claim, rest: ada.cancel_job(rest[0]),
    "reopen_job": lambda c, ada, claim, rest: ada.reopen_job(rest[0]),
    "revoke": lambda c, ada, claim, rest: ada.revoke(rest[0], "why"),
    "accept": lambda c, ada, claim, rest: ada.accept(rest[0]),
    "reject": lambda c, ada, claim, rest: ada.reject(rest[0], "why"),
    "claim": lambda c, ada, claim, rest: ada.claim(rest[0]),
    "claim_next": lambda c, ada, claim, rest: ada.claim_next(),
    "claims": lambda c, ada, claim, rest: anext(ada.claims()),
    "resume": lambda c, ada, claim, rest: ada.resume(claim.token),
    "recall": lambda c, ada, claim, rest: ada.recall("r"),
    "renew": lambda c, ada, claim, rest: claim.renew(),
    "note": lambda c, ada, claim, rest: claim.note({}),
    "reserve": lambda c, ada, claim, rest: claim.reserve(["src"]),
    "submit": lambda c, ada, claim, rest: claim.submit(),
    "fail": lambda c, ada, claim, rest: claim.fail("why"),
    "release": lambda c, ada, claim, rest: claim.release(),
    "add_job of a claim": lambda c, ada, claim, rest: claim.add_job("new"),
    "working": lambda c, ada, claim, rest: claim.working().__aenter__(),
    "enter": lambda c, ada, claim, rest: c.__aenter__(),
}


@pytest.mark.parametrize("ask", AFTERWARDS.values(), ids=AFTERWARDS)
async def test_what_is_closed_answers_nothing(ask: Any, closed: tuple[Coordinator, Agent, Any, Any]):
    async def asked() -> None:
        await ask(*closed)

    with pytest.raises(Closed):
        await asked()


BEFORE = ["agent", "at", "job", "jobs", "reservations", "log", "wait_for_job", "back_up"]


@pytest.mark.parametrize("name", BEFORE)
async def test_what_was_not_entered_answers_nothing_and_says_how_to_enter(name: str, database: Path):
    coordinator: Any = Coordinator.open(database)

    async def asked() -> None:
        await AFTERWARDS[name](coordinator, coordinator, None, None)

    with pytest.raises(Closed, match="enter it: async with"):
        await asked()
    assert not database.exists()


@pytest.mark.both_stores
async def test_a_coordinator_can_be_entered_once(coordinator: Coordinator):
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(Closed, match="open another"):
            await coordinator.__aenter__()

        await coordinator.agent("ada").add_job("parser")


@pytest.mark.parametrize("place", ["memory:", "work.db"])
async def test_closing_twice_is_harmless(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    async with Coordinator.open(place) as coordinator:
        await coordinator.close()
        await asyncio.gather(coordinator.close(), coordinator.close())

    await coordinator.close()


async def test_closing_what_was_never_entered_is_harmless(database: Path):
    await Coordinator.open(database).close()

    assert not database.exists()


async def test_an_exception_in_the_block_goes_on_bare(database: Path):
    error = ValueError("boom")

    async def work() -> None:
        async with Coordinator.open(database):
            raise error

    with pytest.raises(ValueError, match="boom") as raised:
        await work()

    assert raised.value is error


# Closing in the middle


@pytest.mark.both_stores
async def test_closing_finishes_what_was_asked(coordinator: Coordinator, ada: Agent):
    tasks = [asyncio.create_task(ada.add_job(f"job-{number}")) for number in range(100)]
    await asyncio.sleep(0)

    await coordinator.close()

    assert [job.id for job in await asyncio.gather(*tasks)] == [f"job-{number}" for number in range(100)]


@pytest.mark.both_stores
async def test_closing_finishes_the_end_of_a_block_that_was_cancelled(
    coordinator: Coordinator, ada: Agent, database: Path, clock: ManualClock
):
    claim = await claimed(ada)

    async def work() -> None:
        async with claim.working():
            await forever()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    await coordinator.close()

    if database.exists():
        async with Coordinator.open(database, clock=clock) as again:
            assert (await again.job("parser")).reason == "cancelled"


async def test_commands_that_wait_for_a_turn_that_does_not_come_are_answered_when_it_is_closed(database: Path):
    async with Coordinator.open(database, busy_timeout_s=0.2) as coordinator:
        ada = coordinator.agent("ada")
        with turn_held(database):
            tasks = [asyncio.create_task(ada.add_job(f"job-{number}")) for number in range(3)]
            await asyncio.sleep(0)

            await coordinator.close()

        for task in tasks:
            with pytest.raises(Busy):
                await task

    async with Coordinator.open(database) as coordinator:
        assert await entries(coordinator) == []


@pytest.mark.parametrize("place", ["memory:", "work.db"])
async def test_closing_goes_to_its_end_although_its_caller_is_cancelled_twice(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_running: LeftRunning
):
    monkeypatch.chdir(tmp_path)
    entered = asyncio.Event()

    async def work() -> None:
        async with Coordinator.open(place) as coordinator:
            await coordinator.agent("ada").add_job("parser")
            entered.set()
            await forever()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    await asyncio.sleep(0)  # it is closing now
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_running() == []


async def test_opening_that_is_cancelled_leaves_nothing_behind(database: Path, left_running: LeftRunning):
    async with Coordinator.open(database):
        pass

    with turn_held(database):
        task = asyncio.create_task(Coordinator.open(database, busy_timeout_s=0.2).__aenter__())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises((asyncio.CancelledError, CoordinatorError)):
            await task

    assert left_running() == []
    async with Coordinator.open(database) as coordinator:
        await coordinator.agent("ada").add_job("parser")


async def test_opening_that_is_cancelled_when_it_is_nearly_done_leaves_nothing_behind(
    database: Path, left_running: LeftRunning
):
    for steps in range(30):
        task = asyncio.create_task(Coordinator.open(database).__aenter__())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        try:
            coordinator = await task
        except asyncio.CancelledError:
            assert left_running() == []
        else:
            await coordinator.close()


async def test_a_field_of_open_that_is_wrong_is_refused_before_anything_is_opened(database: Path):
    with pytest.raises(InvalidInput):
        Coordinator.open(database, busy_timeout_s=-1)

    assert not database.exists()


# Another loop, and no thread left

FROM_ANOTHER_LOOP: dict[str, Callable[[Coordinator], Coroutine[Any, Any, Any]]] = {
    "add_job": lambda c: c.agent("ada").add_job("lexer"),
    "claim": lambda c: c.agent("ada").claim("parser", version=1),
    "claim_next": lambda c: c.agent("ada").claim_next(),
    "claims": lambda c: c.agent("ada").claims().__anext__(),
    "recall": lambda c: c.agent("ada").recall("first"),
    "job": lambda c: c.job("parser"),
    "log": lambda c: c.log().__anext__(),
    "the past": lambda c: c.at(1).job("parser"),
    "wait_for_job": lambda c: c.wait_for_job("parser", "accepted"),
    "close": lambda c: c.close(),
}


@pytest.mark.both_stores
@pytest.mark.parametrize("ask", FROM_ANOTHER_LOOP.values(), ids=FROM_ANOTHER_LOOP)
async def test_a_call_from_another_loop_is_refused_and_applies_nothing(
    ask: Callable[[Coordinator], Coroutine[Any, Any, Any]], coordinator: Coordinator, ada: Agent
):
    await ada.add_job("parser")

    with pytest.raises(UnsupportedEventLoop, match="opened in another event loop"):
        await asyncio.to_thread(lambda: asyncio.run(ask(coordinator)))

    assert [entry.type for entry in await entries(coordinator)] == ["job.added"]
    await ada.add_job("index")


async def test_a_claim_is_not_used_from_another_loop(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    async def work() -> None:
        async with claim.working():
            raise AssertionError("the block was entered")

    for ask in (claim.submit, claim.renew, lambda: claim.note({"progress": 1}), work):
        with pytest.raises(UnsupportedEventLoop):
            await asyncio.to_thread(lambda ask=ask: asyncio.run(ask()))

    assert (await claim.submit()).state == "submitted"


async def test_a_reader_is_not_used_from_another_loop_while_it_reads(coordinator: Coordinator, ada: Agent, gate: Gate):
    await ada.send("builds", {})

    async with ada.reader("builds") as reader:
        gate.close()
        reading = asyncio.create_task(reader.read())
        await gate.drawn()
        for ask in (reader.read, lambda: anext(reader.pages())):
            with pytest.raises(UnsupportedEventLoop):
                await asyncio.to_thread(lambda ask=ask: asyncio.run(asyncio.wait_for(ask(), PATIENCE_S)))
        gate.open()

        assert [len(page) for page in await asyncio.gather(reading, reader.read(), reader.read())] == [1, 0, 0]


async def test_a_process_that_has_no_thread_left_says_so_and_works_again_when_it_has(
    database: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with Coordinator.open(database) as coordinator, Coordinator.open(database) as other:
        ada = coordinator.agent("ada")
        claim = await claimed(ada, lease_s=1)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            for ask in (coordinator.wait_for_job("parser", "accepted"), claim.working().__aenter__()):
                with pytest.raises(Unavailable, match="no thread could be started"):
                    await ask
            with pytest.raises(Unavailable, match="no thread could be started"):
                await Coordinator.open(database).__aenter__()

        waiting = asyncio.create_task(coordinator.wait_for_job("parser", "submitted"))
        await asyncio.sleep(0)
        await (await other.agent("ada").resume(claim.token)).submit()

        async with asyncio.timeout(PATIENCE_S):
            assert (await waiting).state == "submitted"


async def test_a_relative_path_in_a_folder_that_is_gone_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(Unavailable):
        await Coordinator.open("work.db").__aenter__()
