"""The finished workspace, read anew and from nothing: its log, the chain of digests, and the rows it should have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coordinator.envelopes import envelope_of
from coordinator.stores.interface import LogRow, Snapshot
from coordinator.stores.sqlite import SqliteReader
from events.codec import chain
from events.envelope import Envelope
from projections.registry import PROJECTIONS
from projections.replay import Difference, Stored, compare, replay

_PAGE = 2_000


@dataclass(frozen=True, slots=True)
class Workspace:
    """What reading it gave.

    Attributes:
        envelopes: the log.
        broken_at: the first position that is missing, or whose digest does not follow from the one before it.
        rows: how many rows the stored views have.
        differences: rows that folding the log from nothing makes otherwise.
    """

    envelopes: list[Envelope]
    broken_at: int | None
    rows: int
    differences: list[Difference]


def read_workspace(database: Path) -> Workspace:
    reader = SqliteReader(database)
    try:
        return reader.read(lambda snapshot: _read(snapshot, reader.workspace))
    finally:
        reader.close()


def _read(snapshot: Snapshot, workspace: bytes) -> Workspace:
    rows = list(_log(snapshot))
    envelopes = [envelope_of(row) for row in rows]
    stored = dict(_stored(snapshot))
    differences = list(compare(replay(envelopes), stored))
    return Workspace(envelopes, _broken_at(rows, workspace, snapshot), len(stored), differences)


def _log(snapshot: Snapshot) -> Iterator[LogRow]:
    after = 0
    while page := snapshot.events(after=after, limit=_PAGE):
        yield from page
        after = page[-1].position


def _broken_at(rows: list[LogRow], workspace: bytes, snapshot: Snapshot) -> int | None:
    digest = workspace
    for position, row in enumerate(rows, 1):
        digest = chain(digest, row[:-1])
        if row.position != position or row.digest != digest:
            return position
    head = snapshot.head()
    return None if (head.position, head.digest) == (len(rows), digest) else len(rows) + 1


def _stored(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str], Stored]]:
    for projection in PROJECTIONS:
        low = ""
        while page := snapshot.range(projection.name, low, None, limit=_PAGE):
            for row in page:
                yield (row.view, row.key), (row.bucket, row.rank, row.body)
            low = page[-1].key + "\0"
