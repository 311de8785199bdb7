"""Work that reads a lot, step by step: a read that takes long keeps the write-ahead log from being checkpointed.

Such work is a generator. It yields what it wants to ask of a snapshot, and is sent the answer; who drives it decides
how the store is read, and whether an event loop goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any, TypeVar

from coordinator.stores.interface import LogRow, Snapshot

T = TypeVar("T")

Question = Callable[[Snapshot], Any]
Steps = Generator[Question, Any, T]

PAGE = 2_000


def drive(steps: Steps[T], read: Callable[[Question], Any]) -> T:
    """What the work comes to, each step a read of its own."""
    answer: Any = None
    while True:
        try:
            question = steps.send(answer)
        except StopIteration as end:
            return end.value
        answer = read(question)


async def drive_async(steps: Steps[T], read: Callable[[Question], Awaitable[Any]]) -> T:
    """The same, without holding up the event loop."""
    answer: Any = None
    while True:
        try:
            question = steps.send(answer)
        except StopIteration as end:
            return end.value
        answer = await read(question)


def rows_of(stream: str, until: int, each: Callable[[LogRow], None]) -> Steps[None]:
    """Look at each event of a stream up to a position."""
    after = 0
    while after < until:
        page: list[LogRow] = yield _events(after, stream)
        for row in page:
            if row.position > until:
                return
            each(row)
        if len(page) < PAGE:
            return
        after = page[-1].position


def _events(after: int, stream: str) -> Question:
    return lambda snapshot: snapshot.events(after=after, limit=PAGE, stream=stream)


def command_of(first: int) -> Steps[list[LogRow]]:
    """All events of the command that begins at a position; they follow each other."""
    found: list[LogRow] = []
    while True:
        page: list[LogRow] = yield _page(first - 1 + len(found))
        rows = list(_beginning(page, first))
        found += rows
        if len(rows) < PAGE:
            return found


def _page(after: int) -> Question:
    return lambda snapshot: snapshot.events(after=after, limit=PAGE)


def _beginning(page: list[LogRow], command: int) -> Iterator[LogRow]:
    for row in page:
        if row.command != command:
            return
        yield row
