"""Some of the events of a file: the same as whoever looks at each of them would choose, also of a damaged file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import msgspec
import pytest

from coordinator.clock import ManualClock
from coordinator.commands import AcceptJob, AddJob, ClaimJob, OpenReader, SendMessage, SubmitJob
from coordinator.errors import Busy
from coordinator.stores.interface import LogRow, Transaction
from coordinator.stores.selection import SelectedRows, Selection, Unreadable
from coordinator.stores.sqlite import SqliteStore
from coordinator.stores.sqlite_rows import SqliteTransaction
from tests.story import added
from tests.support import Workspace

JOBS = 700  # more than a page of each kind of event


def sort_streams(transaction: Transaction) -> None:
    assert isinstance(transaction, SqliteTransaction)
    transaction.sort_streams()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs, one topic with two readers, refusals and receipts; the last events are not in the index of streams."""
    path = tmp_path_factory.mktemp("selection") / "work.db"
    with closing(SqliteStore.open(path)) as store:
        workspace = Workspace(store, ManualClock())
        for first in range(0, JOBS, 100):
            jobs = [added(f"job {n}", task="t") for n in range(first, first + 100)]
            workspace.batch(*(workspace.request("ada", job, f"add {job.job}") for job in jobs))
            workspace.clock.advance(10)
        sent = SendMessage(topic="news", body=msgspec.Raw(b"{}"))
        workspace.batch(*(workspace.request("bob", sent) for _ in range(JOBS)))
        workspace.clock.advance(10)
        for reader in ("a/b", "b"):
            workspace.do("bob", OpenReader(topic="news", reader=reader))
        workspace.ask("carol", AcceptJob(job="job 5", version=1), "accept it")
        workspace.batch(*(workspace.request("bob", sent) for _ in range(JOBS)))
    break_rows(path, "DELETE FROM streams WHERE position > 1400", "UPDATE sorted SET up_to = 1400")
    return path


@pytest.fixture
def rows(built: Path) -> Iterator[SelectedRows]:
    with closing(SelectedRows(built)) as rows:
        yield rows


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    """One that may be broken."""
    target = tmp_path / "copy.db"
    with closing(sqlite3.connect(built)) as connection, closing(sqlite3.connect(target)) as other:
        connection.backup(other)
    return target


def readable(found: Iterator[LogRow | Unreadable]) -> list[LogRow]:
    listed = list(found)
    assert not [row for row in listed if isinstance(row, Unreadable)]
    return [row for row in listed if isinstance(row, LogRow)]


AT = 1_767_225_600_000_000 + 30_000_000

CHOICES: list[tuple[Selection, Callable[[LogRow], bool]]] = [
    (Selection(), lambda row: True),
    (Selection(stream="job/job 5"), lambda row: row.stream == "job/job 5"),
    (Selection(stream="topic/news"), lambda row: row.stream == "topic/news"),
    (Selection(stream="reader/news/a%2Fb"), lambda row: row.stream == "reader/news/a%2Fb"),
    (Selection(readers="b"), lambda row: row.stream == "reader/news/b"),
    (Selection(actors=("carol", "ada")), lambda row: row.actor in ("carol", "ada")),
    (Selection(types=("job.*", "reader.opened")), lambda row: fnmatchcase(row.type, "job.*") or "opened" in row.type),
    (Selection(refusals=True), lambda row: row.type == "command.refused"),
    (Selection(since=AT), lambda row: row.at >= AT),
    (Selection(until=AT), lambda row: row.at <= AT),
    (Selection(since=AT, until=AT), lambda row: row.at == AT),
    (Selection(first=50, last=1_300), lambda row: 50 <= row.position <= 1_300),
    (
        Selection(stream="topic/news", first=900, last=1_500),
        lambda row: row.type == "message.sent" and 900 <= row.position <= 1_500,
    ),
    (Selection(receipt="add job 7"), lambda row: row.receipt == "add job 7"),
    (Selection(receipt="accept it"), lambda row: row.type == "command.refused"),
    (Selection(body=lambda body: '"job 12' in body), lambda row: '"job 12' in row.body),
    (
        Selection(since=AT, actors=("ada",), types=("job.added",), first=350),
        lambda row: row.type == "job.added" and row.at >= AT and row.position >= 350,
    ),
]


@pytest.mark.parametrize(("selection", "fits"), CHOICES)
def test_what_is_selected_is_what_fits(
    rows: SelectedRows, selection: Selection, fits: Callable[[LogRow], bool]
) -> None:
    everything = readable(rows.selected(Selection()))

    found = readable(rows.selected(selection))

    assert len(everything) == 3 * JOBS + 3
    assert found
    assert found == [row for row in everything if fits(row)]


@pytest.mark.parametrize(("selection", "fits"), CHOICES)
@pytest.mark.parametrize("count", [1, 3, 10_000])
def test_the_last_so_many_are_the_end_of_all(
    rows: SelectedRows, selection: Selection, fits: Callable[[LogRow], bool], count: int
) -> None:
    everything = readable(rows.selected(selection))

    after = rows.start_of_last(selection, count)

    assert readable(rows.selected(selection, after)) == everything[-count:]


def test_the_events_of_a_command_are_found_by_its_receipt(tmp_path: Path) -> None:
    with closing(SqliteStore.open(tmp_path / "work.db")) as store:
        workspace = Workspace(store)
        first = added("first", task="t")
        workspace.do("ada", AddJob(job="first", payload=first.payload, priority=0, max_attempts=5, review="none"))
        waiting = AddJob(
            job="second", payload=first.payload, depends_on=("first",), priority=0, max_attempts=5, review="other"
        )
        workspace.do("ada", waiting)
        token = workspace.do("bob", claim("first")).token.digest
        workspace.do("bob", submit("first", token), "submit it")
    with closing(SelectedRows(tmp_path / "work.db")) as rows:
        found = readable(rows.selected(Selection(receipt="submit it")))

    assert [row.type for row in found] == ["job.submitted", "job.accepted", "job.unblocked"]


def claim(job: str) -> ClaimJob:
    return ClaimJob(job=job, version=1, lease_us=60_000_000)


def submit(job: str, digest: str) -> SubmitJob:
    return SubmitJob(job=job, token_digest=digest, result=msgspec.Raw(b"{}"))


def test_the_latest_grants_of_a_stream_before_a_position_are_found_wherever_they_are_sorted(copy: Path) -> None:
    with closing(SqliteStore.open(copy)) as store:
        workspace = Workspace(store)
        workspace.do("ada", OpenReader(topic="news", reader="b"))
        store.write(sort_streams, still_wanted=lambda: True)
        workspace.do("bob", OpenReader(topic="news", reader="b"))
    with closing(SelectedRows(copy)) as rows:
        last = rows.last_position()

        found = [rows.granted("reader/news/b", before) for before in (last + 1, last)]

    assert [[row.actor for row in each] for each in found] == [["bob", "ada", "bob"], ["ada", "bob"]]


def break_rows(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    "selection",
    [Selection(), Selection(types=("job.added",)), Selection(stream="job/job 599"), Selection(last=650)],
)
def test_rows_that_cannot_be_read_are_named_and_the_others_are_found(copy: Path, selection: Selection) -> None:
    break_rows(
        copy, "UPDATE events SET actor = CAST(x'c3' AS TEXT) WHERE position BETWEEN 600 AND 602 OR position = 610"
    )

    with closing(SelectedRows(copy)) as rows:
        found = list(rows.selected(selection))

    unreadable = [row for row in found if isinstance(row, Unreadable)]
    if selection.stream is None:
        assert [(row.position, row.last) for row in unreadable] == [(600, 602), (610, 610)]
        expected = {Selection(): 3 * JOBS + 3, Selection(types=("job.added",)): JOBS}.get(selection, 650)
        assert len(found) == expected - 4 + 2
    else:
        assert [(row.position, row.last) for row in unreadable] == [(600, 600)]
        assert len(found) == 1
    assert all("UTF-8" in row.problem for row in unreadable)


def test_rows_that_are_missing_are_named_where_all_are_asked_for(copy: Path) -> None:
    break_rows(copy, "DELETE FROM events WHERE position BETWEEN 3 AND 5 OR position = 700 OR position > 2100")

    with closing(SelectedRows(copy)) as rows:
        found = list(rows.selected(Selection()))
        some = list(rows.selected(Selection(actors=("ada",))))

    missing = [(row.position, row.last) for row in found if isinstance(row, Unreadable)]
    assert missing == [(3, 5), (700, 700), (2101, 2103)]
    assert [row for row in some if isinstance(row, Unreadable)] == []


def test_a_page_of_the_file_that_is_lost_hides_only_what_stood_there(copy: Path) -> None:
    content = bytearray(copy.read_bytes())
    lost = content.index(b'"job":"job 350"') // 4096 * 4096
    content[lost : lost + 4096] = bytes(4096)
    copy.write_bytes(content)

    with closing(SelectedRows(copy)) as rows:
        found = list(rows.selected(Selection()))
        of_job = list(rows.selected(Selection(stream="job/job 5")))

    (unreadable,) = [row for row in found if isinstance(row, Unreadable)]
    assert unreadable.position <= 351 <= unreadable.last
    assert unreadable.last - unreadable.position < 50
    assert len(found) == 3 * JOBS + 3 - (unreadable.last - unreadable.position)
    assert len(of_job) == 2


def test_where_the_index_of_streams_is_lost_the_events_of_a_stream_are_found_without_it(copy: Path) -> None:
    break_rows(copy, "DROP TABLE streams")

    with closing(SelectedRows(copy)) as rows:
        found = readable(rows.selected(Selection(stream="job/job 5")))
        after = rows.start_of_last(Selection(stream="job/job 5"), 1)

    assert [row.type for row in found] == ["job.added", "command.refused"]
    assert after == found[-1].position - 1


def test_a_file_that_is_locked_is_not_opened_as_if_nobody_could_change_it(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_rows(copy, "PRAGMA journal_mode=DELETE")
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))
    with closing(sqlite3.connect(copy, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(Busy):
            SelectedRows(copy)


def test_a_page_that_is_locked_is_busy_and_not_unreadable(copy: Path) -> None:
    break_rows(copy, "PRAGMA journal_mode=DELETE")
    with closing(SelectedRows(copy)) as rows, closing(sqlite3.connect(copy, isolation_level=None)) as other:
        rows._connection.execute("PRAGMA busy_timeout=0")  # pyright: ignore[reportPrivateUsage]
        other.execute("BEGIN EXCLUSIVE")

        for read in (rows.head, partial(rows.page, 0, 10), rows.views, rows.damage):
            with pytest.raises(Busy):
                read()


def test_a_file_that_another_program_keeps_locked_is_busy_and_not_damaged(
    copy: Path,
) -> None:
    break_rows(copy, "PRAGMA journal_mode=DELETE")
    with closing(SelectedRows(copy)) as rows, closing(sqlite3.connect(copy, isolation_level=None)) as other:
        rows._connection.execute("PRAGMA busy_timeout=0")  # pyright: ignore[reportPrivateUsage]
        other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(Busy):
            list(rows.selected(Selection(last=10)))
