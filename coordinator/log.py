"""The log as readers see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from coordinator import limits
from coordinator.clock import to_datetime, to_us
from coordinator.envelopes import reading
from coordinator.errors import InvalidInput
from coordinator.payloads import JsonValue, decode
from coordinator.sentences import Narrator
from coordinator.stores.interface import LogRow
from events.codec import decode as decode_event
from events.streams import job_stream, operation_stream, topic_stream
from events.union import AnyEvent

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One event, with what the log keeps beside it.

    Attributes:
        position: 1, 2, 3 … without gaps.
        at: log time.
        stream: what it is about, such as `job/parser`.
        type: what happened, such as `job.claimed`.
        actor: who asked; None for what the store found out itself (a lapse).
        origin: host/pid/start of the process that wrote it.
        context: what the caller gave as `context=`.
        receipt: the command's idempotency key, on its first event.
        fingerprint: SHA-256 of the command in hex, on its first event.
        command: position of the command's first event.
        digest: SHA-256 in hex over the previous digest and this entry.
    """

    position: int
    at: datetime
    stream: str
    type: str
    actor: str | None
    origin: str | None
    context: str | None
    receipt: str | None
    fingerprint: str | None
    command: int
    digest: str
    _body: str = field(repr=False)

    @property
    def body(self) -> Mapping[str, JsonValue]:
        """The event's own fields."""
        with reading():
            return decode(msgspec.Raw(self._body.encode()))

    @property
    def sentence(self) -> str:
        """What happened, for people. It knows this entry alone; `timeline` also tells who held something before."""
        return Narrator().tell(self.position, to_us(self.at), event_of(self), self.context)


def event_of(entry: LogEntry) -> AnyEvent:
    with reading():
        return decode_event(entry._body)  # pyright: ignore[reportPrivateUsage]


def entry_of(row: LogRow) -> LogEntry:
    return LogEntry(
        position=row.position,
        at=to_datetime(row.at),
        stream=row.stream,
        type=row.type,
        actor=row.actor,
        origin=row.origin,
        context=row.context,
        receipt=row.receipt,
        fingerprint=None if row.fingerprint is None else row.fingerprint.hex(),
        command=row.command,
        digest=row.digest.hex(),
        _body=row.body,
    )


def stream_of(job: str | None, topic: str | None, operation: str | None) -> str | None:
    """The stream that is asked for, or None for all.

    Raises:
        InvalidInput: more than one is named, or a name is none.
    """
    named = [
        make(limits.name(field, name))
        for field, name, make in (
            ("job", job, job_stream),
            ("topic", topic, topic_stream),
            ("operation", operation, operation_stream),
        )
        if name is not None
    ]
    if len(named) > 1:
        raise InvalidInput("job", "is not all that is named", hint="name one job, one topic or one operation")
    return named[0] if named else None


class Log:
    """An asynchronous iterator over the log, a page at a time.

    Args:
        page: reads up to so many rows after a position.
        after: begin behind this position.
        ends: a page that is not full is the last one. Else `page` waits until there is at least one row.
    """

    def __init__(self, page: Callable[[int, int], Awaitable[list[LogRow]]], after: int, *, ends: bool = True) -> None:
        self._page = page
        self._after = after
        self._ends = ends
        self._rows: list[LogRow] = []  # the rest of the page, the next one last
        self._ended = False

    def __aiter__(self) -> Log:
        return self

    async def __anext__(self) -> LogEntry:
        while not self._rows:
            if self._ended:
                raise StopAsyncIteration
            after = self._after
            rows = await self._page(after, _PAGE)
            if self._after != after:
                continue  # another task has got this page meanwhile
            self._ended = self._ends and len(rows) < _PAGE
            if rows:
                self._rows = rows[::-1]
                self._after = rows[-1].position
        return entry_of(self._rows.pop())
