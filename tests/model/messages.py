"""The rules of topics, readers and receipts once more, on plain lists, written apart from the decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordinator import commands as ask
from coordinator.commands import AnyCommand
from tests.model.reference import Expected, No

Name = tuple[str, str]  # topic, reader


@dataclass
class Reader:
    sessions: list[tuple[str, str]] = field(default_factory=list)  # actor, digest; "" until it is known
    delivered: int = 0
    acknowledged: int = 0


@dataclass
class Messages:
    topics: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)  # sender, body
    readers: dict[Name, Reader] = field(default_factory=dict)
    receipts: dict[tuple[str, str], tuple[AnyCommand, Expected]] = field(default_factory=dict)

    def ask(self, actor: str, receipt: str, command: AnyCommand) -> Expected:
        used = self.receipts.get((actor, receipt))
        if used is not None:
            return used[1]._replace(repeated=True) if used[0] == command else Expected("receipt_conflict")
        try:
            answer = self._decide(actor, command)
        except No as no:
            return Expected(str(no))
        if answer is None:
            return Expected()
        self.receipts[actor, receipt] = command, Expected(answer=answer)
        return Expected(answer=answer)

    def granted(self, name: Name, session: int, digest: str) -> None:
        actor, _ = self.readers[name].sessions[session - 1]
        self.readers[name].sessions[session - 1] = actor, digest

    def last(self, topic: str) -> int:
        return len(self.topics.get(topic, ()))

    def _decide(self, actor: str, command: AnyCommand) -> tuple[Any, ...] | None:
        match command:
            case ask.SendMessage():
                if command.shown is not None:
                    raise No("token_unknown")
                self.topics.setdefault(command.topic, []).append((actor, bytes(command.body)))
                return "sent", self.last(command.topic)
            case ask.OpenReader():
                reader = self.readers.setdefault((command.topic, command.reader), Reader())
                reader.sessions.append((actor, ""))
                return "session", len(reader.sessions), reader.acknowledged
            case ask.ReadMessages():
                return self._read(self._held(actor, command), command)
            case ask.AcknowledgeMessages():
                reader = self._held(actor, command)
                if command.number > reader.delivered:
                    raise No("not_delivered")
                if command.number <= reader.acknowledged:
                    return None
                reader.acknowledged = command.number
                return "kept", command.number
            case _:
                raise AssertionError(f"nobody foretold {command}")

    def _read(self, reader: Reader, command: ask.ReadMessages) -> tuple[Any, ...] | None:
        if command.after > reader.delivered:
            raise No("not_delivered")
        begin = max(command.after, reader.acknowledged)
        sent = self.topics.get(command.topic, [])[begin : begin + command.limit]
        if not sent:
            return None
        reader.delivered = max(reader.delivered, begin + len(sent))
        return "page", tuple((begin + index, *message) for index, message in enumerate(sent, start=1))

    def _held(self, actor: str, command: ask.SessionCommand) -> Reader:
        reader = self.readers.get((command.topic, command.reader), Reader())
        if (actor, command.token_digest) not in reader.sessions:
            raise No("token_unknown")
        if reader.sessions[-1] != (actor, command.token_digest):
            raise No("reader_superseded")
        return reader
