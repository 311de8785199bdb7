"""The log in words: a line for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from coordinator.clock import to_datetime, to_us
from coordinator.log import LogEntry, event_of
from coordinator.printable import printable
from coordinator.sentences import Narrator, subject_of
from events.envelope import Envelope


class TimelineLine(NamedTuple):
    """One line of a timeline; nothing in its texts can touch a terminal.

    Attributes:
        position: of the event in the log.
        at: log time.
        actor: who asked; None for what the store found out itself (a lapse).
        subject: what it is about: the name of a job, or a stream such as `operation/order-7`.
        sentence: what happened.
    """

    position: int
    at: datetime
    actor: str | None
    subject: str
    sentence: str


def timeline(entries: Iterable[LogEntry | Envelope]) -> Iterator[TimelineLine]:
    """A line for each event, such as `submit_job was refused: this is attempt 1's token; attempt 2 is bob's`.

        for line in timeline([entry async for entry in coordinator.log(job="parser")]):
            print(line.position, line.actor, line.sentence)

    Args:
        entries: in the order of the log. Who held something, and since when, is told only if they begin before that.
    """
    narrator = Narrator()
    for entry in entries:
        event, at = (event_of(entry), to_us(entry.at)) if isinstance(entry, LogEntry) else (entry.event, entry.at)
        yield TimelineLine(
            position=entry.position,
            at=to_datetime(at),
            actor=None if entry.actor is None else printable(entry.actor),
            subject=subject_of(event.stream),
            sentence=narrator.tell(entry.position, at, event, entry.context),
        )
