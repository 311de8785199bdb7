"""Rows as short as a test can read them, and the usual ways to write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from coordinator.stores.interface import Head, LogRow, Snapshot, Store, Transaction, ViewRow

T = TypeVar("T")


def event(
    position: int,
    *,
    stream: str = "job/a",
    type: str = "job.added",
    at: int = 0,
    actor: str = "ada",
    receipt: str | None = None,
) -> LogRow:
    return LogRow(
        position=position,
        at=at or position * 10,
        stream=stream,
        type=type,
        actor=actor,
        origin="host/1/2",
        context=None,
        receipt=receipt,
        fingerprint=None if receipt is None else b"\x00fingerprint",
        command=position,
        body=f'{{"n":{position}}}',
        digest=position.to_bytes(32, "big"),
    )


def row(key: str, *, view: str = "jobs", bucket: str = "ready", rank: int = 0, body: str = "{}") -> ViewRow:
    return ViewRow(view, key, bucket, rank, body)


class Reads(Protocol):
    """A store, or only a reader."""

    def read(self, work: Callable[[Snapshot], T]) -> T: ...


def once() -> bool:
    """Wanted enough for one try."""
    return False


def for_ever() -> bool:
    return True


def write(store: Store, work: Callable[[Transaction], T]) -> T:
    return store.write(work, still_wanted=for_ever)


def append(store: Store, *rows: LogRow) -> None:
    """Append the events, and move the head to the last of them."""
    write(store, lambda transaction: append_in(transaction, *rows))


def append_in(transaction: Transaction, *rows: LogRow) -> None:
    transaction.append(rows, head_at(transaction.head(), rows[-1]))


def put(store: Store, *rows: ViewRow) -> None:
    write(store, lambda transaction: transaction.put(rows))


def head_at(head: Head, last: LogRow) -> Head:
    return head._replace(position=last.position, digest=last.digest, at=last.at)


def positions(rows: Sequence[LogRow]) -> list[int]:
    return [found.position for found in rows]


def keys(rows: Sequence[ViewRow]) -> list[str]:
    return [found.key for found in rows]


def head_of(store: Reads) -> Head:
    return store.read(lambda snapshot: snapshot.head())


def log_of(store: Reads) -> list[int]:
    def work(snapshot: Snapshot) -> list[int]:
        return positions(snapshot.events(after=0, limit=1_000_000))

    return store.read(work)
