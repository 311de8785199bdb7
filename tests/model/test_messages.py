"""Whoever sends, reads, loses pages, dies and opens readers anew: the library and a simple model say the same, and no
message is skipped. `test_model.py` says how to try more.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw

from coordinator import commands as ask
from coordinator.answers import MessageNumbered, MessagesKept, PageDelivered, SessionOpened
from coordinator.clock import ManualClock
from coordinator.commands import AnyCommand, Shown
from coordinator.payloads import encode
from coordinator.refusals import Refused
from coordinator.request import Outcome, Request
from coordinator.stores.interface import Store
from coordinator.stores.memory import MemoryStore
from coordinator.stores.sqlite import SqliteStore
from projections.readers import READERS
from tests.model.messages import Messages, Name
from tests.model.reference import Expected
from tests.model.test_model import examples
from tests.support import Workspace

ACTORS = st.sampled_from(["ada", "bob"])
TOPICS = st.sampled_from(["a", "a/b"])
NAMES = st.sampled_from(["night", "b/night"])
LIMITS = st.sampled_from([1, 2, 10, 63, 64, 65, 1_000])
COUNTS = st.sampled_from([1, 1, 2, 3, 40])
PICK = st.integers(0, 7)  # 0 is the newest
LATEST = st.sampled_from([True, True, True, True, False])  # or a session that may be superseded
WHEN = st.sampled_from(["now", "now", "now", "by the other writer", "later"])  # later: with what is asked next


@dataclass
class Handle:
    """What a program knows of its session."""

    name: Name
    actor: str
    digest: str
    cursor: int


class Machine(RuleBasedStateMachine):
    """Two writers take turns on one store; each remembers rows that the other may have changed."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.stores = self.open()
        self.writers = [Workspace(store, self.clock) for store in self.stores]
        self.writer = 0
        self.model = Messages()
        self.waiting: list[tuple[Request, Handle | None]] = []  # with the handle that hears the answer
        self.asked: list[tuple[str, str, AnyCommand, Handle | None]] = []
        self.handles: list[Handle] = []
        self.kept: dict[Name, set[int]] = {}  # by somebody who was handed them
        self.first: dict[tuple[str, str], Outcome] = {}

    def open(self) -> list[Store]:
        raise NotImplementedError

    # What can happen

    @initialize(topic=TOPICS, count=st.sampled_from([3, 70, 130]), reader=NAMES)
    def something_is_sent_and_read(self, topic: str, count: int, reader: str) -> None:
        self.send("ada", topic, count, "later")
        self.open_reader("bob", topic, reader, "now")

    @rule()
    def time_passes(self) -> None:
        self.commit()
        self.clock.advance(1)

    @rule(actor=ACTORS, topic=TOPICS, count=COUNTS, when=WHEN)
    def send(self, actor: str, topic: str, count: int, when: str) -> None:
        for number in range(count):
            body = Raw(encode("body", {"n": len(self.asked)}))
            self.ask(actor, ask.SendMessage(topic=topic, body=body), "later" if number < count - 1 else when)

    @rule(actor=ACTORS, topic=TOPICS, when=WHEN)
    def send_without_a_right_to(self, actor: str, topic: str, when: str) -> None:
        """The refusal stands in the topic's stream, among the messages."""
        shown = Shown(job="none", token_digest="none")
        self.ask(actor, ask.SendMessage(topic=topic, body=Raw(b"{}"), shown=shown), when)

    @rule(actor=ACTORS, topic=TOPICS, reader=NAMES, when=WHEN)
    def open_reader(self, actor: str, topic: str, reader: str, when: str) -> None:
        self.ask(actor, ask.OpenReader(topic=topic, reader=reader), when)

    @precondition(lambda self: self.handles)
    @rule(pick=PICK, latest=LATEST, limit=LIMITS, arrives=st.sampled_from([True, True, False]), when=WHEN)
    def read(self, pick: int, latest: bool, limit: int, arrives: bool, when: str) -> None:
        handle = self.a_handle(pick, latest)
        topic, reader = handle.name
        command = ask.ReadMessages(
            topic=topic, reader=reader, token_digest=handle.digest, after=handle.cursor, limit=limit
        )
        self.ask(handle.actor, command, when, handle=handle if arrives else None)

    @precondition(lambda self: self.handles)
    @rule(pick=PICK, latest=LATEST, less=st.sampled_from([0, 0, 0, 1, 50]), when=WHEN)
    def acknowledge(self, pick: int, latest: bool, less: int, when: str) -> None:
        handle = self.a_handle(pick, latest)
        self.acknowledge_up_to(max(handle.cursor - less, 0), handle, when)

    @precondition(lambda self: self.handles)
    @rule(pick=PICK, latest=LATEST, limit=LIMITS, when=WHEN)
    def read_and_acknowledge(self, pick: int, latest: bool, limit: int, when: str) -> None:
        handle = self.a_handle(pick, latest)
        self.read(self.handles[::-1].index(handle), False, limit, True, "now")
        self.acknowledge_up_to(handle.cursor, handle, when)

    @precondition(lambda self: self.handles)
    @rule(pick=PICK, count=st.integers(1, 3), limit=LIMITS)
    def read_what_is_sent_in_the_same_batch(self, pick: int, count: int, limit: int) -> None:
        """And a page more that begins among it, as if another process knew that it was handed out."""
        self.commit()
        handle = self.a_handle(pick, latest=True)
        topic, reader = handle.name
        first = self.model.last(topic) + 1
        for _ in range(count):
            self.send("ada", "a", 1, "later")
            self.send("bob", "a/b", 1, "later")
        self.read(self.handles[::-1].index(handle), False, 1_000, False, "later")
        command = ask.ReadMessages(topic=topic, reader=reader, token_digest=handle.digest, after=first, limit=limit)
        self.ask(handle.actor, command, "now", receipt=f"ahead {len(self.asked)}")

    @precondition(lambda self: self.handles)
    @rule(pick=PICK, more=st.integers(1, 3))
    def claim_what_is_not_so(self, pick: int, more: int) -> None:
        """A number that nobody was handed, and a session of somebody else's."""
        self.commit()
        handle = self.a_handle(pick, latest=True)
        beyond = self.model.readers[handle.name].delivered + more
        receipts = (f"never used {len(self.first)} {number}" for number in range(3))  # nobody asks again with them
        self.acknowledge_up_to(beyond, handle, "later", next(receipts))
        skipping = Handle(handle.name, handle.actor, handle.digest, beyond)
        foreign = Handle(handle.name, "mallory", handle.digest, 0)
        for other in (skipping, foreign):
            topic, reader = other.name
            command = ask.ReadMessages(
                topic=topic, reader=reader, token_digest=other.digest, after=other.cursor, limit=1
            )
            self.ask(other.actor, command, "now", receipt=next(receipts))

    @precondition(lambda self: self.asked)
    @rule(pick=st.integers(0, 30), how=st.sampled_from(["", "", "", "", "other request"]), when=WHEN)
    def ask_again(self, pick: int, how: str, when: str) -> None:
        """As a program does that never heard the answer, or was started anew."""
        actor, receipt, command, handle = self.asked[-1 - pick % len(self.asked)]
        if how:
            command = ask.SendMessage(topic="a", body=Raw(b'{"other":true}'))
        self.ask(actor, command, when, receipt=receipt, handle=handle)

    # How it is asked

    def a_handle(self, pick: int, latest: bool) -> Handle:
        live = [handle for handle in self.handles if self.is_latest(handle)] if latest else []
        handles = live or self.handles
        return handles[-1 - pick % len(handles)]

    def is_latest(self, handle: Handle) -> bool:
        return self.model.readers[handle.name].sessions[-1] == (handle.actor, handle.digest)

    def acknowledge_up_to(self, number: int, handle: Handle, when: str, receipt: str | None = None) -> None:
        topic, reader = handle.name
        digest = handle.digest
        command = ask.AcknowledgeMessages(topic=topic, reader=reader, token_digest=digest, number=number)
        self.ask(handle.actor, command, when, receipt=receipt)

    def ask(
        self, actor: str, command: AnyCommand, when: str, *, receipt: str | None = None, handle: Handle | None = None
    ) -> None:
        request = self.writers[self.writer].request(actor, command, receipt or f"receipt {len(self.asked)}")
        if receipt is None:
            self.asked.append((actor, request.receipt, command, handle))
        self.waiting.append((request, handle))
        if when != "later":
            self.commit()
        if when == "by the other writer":
            self.writer = 1 - self.writer

    def commit(self) -> None:
        """Have all that waits run in one batch, and hear from the model what must come of it."""
        asked, self.waiting = self.waiting, []
        requests = [request for request, _ in asked]
        before = len(self.writers[self.writer].log())

        outcomes = self.writers[self.writer].batch(*requests)

        expected = [self.model.ask(request.actor, request.receipt, request.command) for request in requests]
        assert [told(outcome) for outcome in outcomes] == expected
        for (request, handle), outcome in zip(asked, outcomes, strict=True):
            self.remember(request, handle, outcome)
        if all(outcome.repeated or outcome == Outcome() for outcome in outcomes):
            assert len(self.writers[self.writer].log()) == before

    def remember(self, request: Request, handle: Handle | None, outcome: Outcome) -> None:
        if outcome.answer is None:
            return
        first = self.first.setdefault((request.actor, request.receipt), outcome)
        assert (outcome.answer, outcome.position) == (first.answer, first.position)  # with the same token
        command = request.command
        if isinstance(outcome.answer, SessionOpened) and isinstance(command, ask.OpenReader):
            name, opened = (command.topic, command.reader), outcome.answer
            self.model.granted(name, opened.session, opened.token.digest)
            self.handles.append(Handle(name, request.actor, opened.token.digest, opened.acknowledged))
        elif isinstance(outcome.answer, PageDelivered) and handle is not None:
            self.keep(handle, [message.number for message in outcome.answer.messages])

    def keep(self, handle: Handle, page: list[int]) -> None:
        """The page has arrived."""
        kept = self.kept.setdefault(handle.name, set())
        assert page == list(range(page[0], page[-1] + 1))
        assert set(range(1, page[0])) <= kept, "messages were skipped"
        kept.update(page)
        handle.cursor = max(handle.cursor, page[-1])

    # What always holds

    @invariant()
    def the_log_explains_every_row(self) -> None:
        if not self.waiting:
            self.writers[1 - self.writer].check()

    @invariant()
    def readers_stand_where_the_model_says_and_nothing_was_skipped(self) -> None:
        if self.waiting:
            return
        rows = self.writers[self.writer].rows()
        readers = [READERS.decode(body) for (view, _), (_, _, body) in rows.items() if view == "readers"]

        assert {(row.topic, row.reader): (row.delivered, row.acknowledged) for row in readers} == {
            name: (reader.delivered, reader.acknowledged) for name, reader in self.model.readers.items()
        }
        for row in readers:
            assert row.acknowledged <= row.delivered <= self.model.last(row.topic)
            assert set(range(1, row.acknowledged + 1)) <= self.kept.get((row.topic, row.reader), set())

    def teardown(self) -> None:
        try:
            self.commit()
            self.the_log_explains_every_row()
            self.every_message_comes_to_be_kept()
        finally:
            for store in self.stores:
                store.close()

    def every_message_comes_to_be_kept(self) -> None:
        """Whatever happened before, whoever opens a reader now is handed all that is not acknowledged."""
        for name in list(self.model.readers):
            self.open_reader("ada", *name, when="now")
            handle = self.handles[-1]
            while handle.cursor < self.model.last(name[0]):
                before = handle.cursor
                self.read(0, True, 64, True, "now")
                assert handle.cursor > before
            assert set(range(1, handle.cursor + 1)) == self.kept.get(name, set())


def told(outcome: Outcome) -> Expected:
    """An outcome in the words of the model."""
    answer: tuple[Any, ...]
    match outcome:
        case Outcome(error=Refused() as refusal):
            return Expected(code=refusal.code)
        case Outcome(error=None, answer=None):
            return Expected()
        case Outcome(answer=MessageNumbered(number)):
            answer = "sent", number
        case Outcome(answer=SessionOpened() as opened):
            answer = "session", opened.session, opened.acknowledged
        case Outcome(answer=PageDelivered(messages)):
            page = [(message.number, message.sender, encode("body", message.body)) for message in messages]
            answer = "page", tuple(page)
        case Outcome(answer=MessagesKept(number)):
            answer = "kept", number
        case _:
            raise AssertionError(f"nobody foretold {outcome}")
    return Expected(answer=answer, repeated=outcome.repeated)


class InMemory(Machine):
    def open(self) -> list[Store]:
        store = MemoryStore()
        return [store, store]


class OnSqlite(Machine):
    def open(self) -> list[Store]:
        self.folder = tempfile.mkdtemp(prefix="model-")
        path = Path(self.folder, "work.db")
        return [SqliteStore.open(path), SqliteStore.open(path)]

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.folder)


TestInMemory = InMemory.TestCase
TestInMemory.settings = examples(80)

TestOnSqlite = OnSqlite.TestCase
TestOnSqlite.settings = examples(15)
