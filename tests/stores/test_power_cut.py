"""Power cuts at random moments: what was flushed is there, of the rest anything may be, also in pieces."""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator.stores.sqlite import SqliteStore
from tests.stores.children import Child, preloaded
from tests.stores.rows import log_of

CUTS = 60
SECTOR = 512

COMMITS = """
import ctypes
from coordinator.stores import checkpoint
checkpoint._FIRST_ROWS = checkpoint._FEWEST_ROWS = checkpoint._MOST_ROWS = 150
checkpoint._TOO_MANY_PAGES = 100  # so that the log is started anew now and then
note = ctypes.CDLL(None).note
store = SqliteStore.open(path)
random.seed(7)
position = 0
while position < 250:
    new = range(position + 1, position + 1 + random.randrange(1, 9))
    def work(transaction):
        append_in(transaction, *(event(n, stream=f"job/{n % 7}", receipt=f"{n * 7919 % 1000}") for n in new))
        transaction.put([row(f"{n * 31 % 97}", rank=n, body="x" * random.randrange(3000)) for n in new])
    write(store, work)
    position = new[-1]
    note(ctypes.c_longlong(position))
store.close()
say("done")
"""


class Record(NamedTuple):
    kind: str
    file: str
    offset: int
    data: bytes


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs Linux and a C compiler")
def test_no_power_cut_loses_an_acknowledged_commit_or_damages_the_file(
    tmp_path: Path, child: Callable[..., Child]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    environment = {"RECORDED_FOLDER": str(disk), "RECORD": str(tmp_path / "record")}
    process = child(
        "import random" + COMMITS,
        disk / "work.db",
        environment={**environment, **preloaded("recorded_writes.c", tmp_path)},
    )
    assert process.hear() == "done"
    records = [found for found in read_records(tmp_path / "record") if found.file != "work.db-shm"]
    created = next(index for index, found in enumerate(records) if found.kind == "n")
    assert {found.file for found in records if found.kind == "s"} >= {"work.db", "work.db-wal"}
    chance = random.Random(1)

    for cut in sorted(chance.sample(range(created, len(records)), CUTS)):
        acknowledged = max(found.offset for found in records[: cut + 1] if found.kind == "n")
        left = tmp_path / f"cut-{cut}"
        left.mkdir()
        leave_disk(left, records[: cut + 1], chance)

        with closing(SqliteStore.open(left / "work.db")) as store:
            log = log_of(store)
        with closing(sqlite3.connect(left / "work.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert log == list(range(1, len(log) + 1))
        assert len(log) >= acknowledged, f"cut behind record {cut}"
        shutil.rmtree(left)


def read_records(file: Path) -> Iterator[Record]:
    with open(file, "rb") as record:
        while line := record.readline():
            kind, name, offset, length = line.decode().split()
            yield Record(kind, name, int(offset), record.read(int(length)))


def leave_disk(folder: Path, records: Sequence[Record], chance: random.Random) -> None:
    """What may be left of these writes: all that was flushed, and of the rest nothing, all, some or pieces."""
    files: dict[str, bytearray] = {}
    waiting: dict[str, list[Record]] = {}
    for record in records:
        match record.kind:
            case "w" | "t":
                files.setdefault(record.file, bytearray())
                waiting.setdefault(record.file, []).append(record)
            case "s":
                for each in waiting.pop(record.file, []):
                    apply(each, files[record.file])
            case "u":
                files.pop(record.file, None)
                waiting.pop(record.file, None)
            case _:
                pass
    style = chance.choice(["nothing", "all", "some", "pieces"])
    for name, unflushed in waiting.items():
        for record in unflushed:
            for piece in pieces(record) if style == "pieces" else [record]:
                if style == "all" or (style != "nothing" and chance.random() < 0.5):
                    apply(piece, files[name])
    for name, contents in files.items():
        (folder / name).write_bytes(contents)


def apply(record: Record, contents: bytearray) -> None:
    if record.kind == "t":
        del contents[record.offset :]
        contents.extend(bytes(record.offset - len(contents)))
    else:
        contents.extend(bytes(max(0, record.offset + len(record.data) - len(contents))))
        contents[record.offset : record.offset + len(record.data)] = record.data


def pieces(record: Record) -> list[Record]:
    if record.kind == "t":
        return [record]
    return [
        record._replace(offset=record.offset + begin, data=record.data[begin : begin + SECTOR])
        for begin in range(0, len(record.data), SECTOR)
    ]
