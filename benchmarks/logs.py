"""Large logs, made quickly: the journey's own function with thousands of commands in each transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Raw

from coordinator.answers import ClaimGranted, PageDelivered, SessionOpened, expect
from coordinator.clock import SystemClock, origin
from coordinator.commands import (
    AcceptJob,
    AcknowledgeMessages,
    AddJob,
    AnyCommand,
    ClaimJob,
    NoteProgress,
    OpenReader,
    ReadMessages,
    SendMessage,
    SubmitJob,
)
from coordinator.execute import Journal, commit
from coordinator.receipts import generate
from coordinator.request import Request
from coordinator.stores.sqlite import SqliteStore
from coordinator.stores.turn import patience

JOURNEY = 5
"""Events of a job from adding to accepting."""

TOPIC = "news"
READER = "reader"

_MESSAGE = Raw(b'{"from":"teller","text":"What one agent tells all others in a line or two, as it comes."}')
_DAY_US = 86_400_000_000
_BATCH = 1_000
_WAITING_MOST = 1_000


def waiting_ids(events: int) -> list[str]:
    """The jobs of `finished` that are still ready, from all over the log."""
    return [f"waiting/{n}" for n in range(min(events // 10, _WAITING_MOST))]


def finished(path: Path, events: int) -> None:
    """A log of so many events: jobs that went the whole way, and every now and then one that waits to be claimed."""
    waiting = waiting_ids(events)
    jobs = (events - len(waiting)) // JOURNEY
    with closing(Writer(path)) as writer:
        done = 0
        for first in range(0, jobs, _BATCH):
            last = min(first + _BATCH, jobs)
            writer.finish([f"done/{n}" for n in range(first, last)])
            due = len(waiting) * last // jobs
            writer.ask("planner", [_added(id) for id in waiting[done:due]])
            done = due


def ready(path: Path, jobs: int) -> None:
    """A log of jobs that are all ready, with paths of their own."""
    with closing(Writer(path)) as writer:
        _add_ready(writer, jobs)


def clashing(path: Path, jobs: int) -> None:
    """A log of ready jobs of which none can be claimed, because one claim holds the folder of all their paths."""
    with closing(Writer(path)) as writer:
        writer.ask("planner", [_added("holder", path="src")])
        writer.ask("holder", [ClaimJob(job="holder", version=1, lease_us=_DAY_US)])
        _add_ready(writer, jobs)


def topic(path: Path, messages: int) -> None:
    """A log of so many messages of one topic, `TOPIC`."""
    with closing(Writer(path)) as writer:
        for first in range(0, messages, _BATCH):
            writer.tell(min(_BATCH, messages - first))


def read_topic(path: Path, messages: int) -> None:
    """The same, and a reader `READER` that has read and acknowledged all of them."""
    topic(path, messages)
    named = {"topic": TOPIC, "reader": READER}
    with closing(Writer(path)) as writer:
        (opened,) = writer.ask(READER, [OpenReader(**named)])
        digest, done = expect(SessionOpened, opened).token.digest, 0
        while done < messages:
            read = ReadMessages(**named, token_digest=digest, after=done, limit=_BATCH)
            (page,) = writer.ask(READER, [read])
            done = expect(PageDelivered, page).messages[-1].number
            writer.ask(READER, [AcknowledgeMessages(**named, token_digest=digest, number=done)])


def _add_ready(writer: Writer, jobs: int) -> None:
    for first in range(0, jobs, _BATCH):
        ids = [f"ready/{n}" for n in range(first, min(first + _BATCH, jobs))]
        writer.ask("planner", [_added(id) for id in ids])


def _added(id: str, path: str | None = None) -> AddJob:
    payload = Raw(b'{"file":"' + id.encode() + b'","task":"parse"}')
    paths = (path or f"src/{id}/module.py",)
    return AddJob(job=id, payload=payload, paths=paths, priority=0, max_attempts=5, review="other")


class Writer:
    """Writes to a workspace from outside, as another process would, many commands in each transaction."""

    def __init__(self, path: Path) -> None:
        self._store = SqliteStore.open(path)
        self._clock = SystemClock()
        self._journal = Journal(self._clock, origin())

    def finish(self, ids: Sequence[str]) -> None:
        """Take these jobs the whole way."""
        self.ask("planner", [_added(id) for id in ids])
        claimed = self.ask("worker", [ClaimJob(job=id, version=1, lease_us=_DAY_US) for id in ids])
        tokens = [expect(ClaimGranted, answer).token.digest for answer in claimed]
        held = list(zip(ids, tokens, strict=True))
        self.ask("worker", [NoteProgress(job=id, token_digest=it, note=Raw(b'{"progress":0.5}')) for id, it in held])
        self.ask("worker", [SubmitJob(job=id, token_digest=it, result=Raw(b'{"lines":12}')) for id, it in held])
        self.ask("reviewer", [AcceptJob(job=id, version=3) for id in ids])

    def tell(self, messages: int) -> None:
        """Send so many to `TOPIC`, in one transaction."""
        self.ask("teller", [SendMessage(topic=TOPIC, body=_MESSAGE)] * messages)

    def ask(self, actor: str, commands: Sequence[AnyCommand]) -> list[Any]:
        """The answers to these commands of one actor, asked in one transaction; none may fail."""
        requests = [
            Request(actor=actor, command=command, receipt=generate(self._clock.wall()), generated=True)
            for command in commands
        ]
        outcomes = commit(self._store, lambda: requests, self._journal, still_wanted=patience())
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        return [outcome.answer for outcome in outcomes]

    def close(self) -> None:
        self._store.close()
