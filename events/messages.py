"""Topics and their readers, as the log tells it.

Messages of a topic are numbered 1, 2, 3 … A reader has two positions: `delivered`, the last message that was handed
out, and `acknowledged`, the last one that the reader has said it kept.
"""

from __future__ import annotations

from msgspec import Raw

from events.base import Event
from events.streams import reader_stream, topic_stream


class MessageSent(Event, frozen=True, kw_only=True, tag="message.sent"):
    """Somebody told all readers of the topic, present and future ones."""

    topic: str
    number: int
    body: Raw
    under: str | None = None  # the job under whose claim it was sent
    under_attempt: int | None = None

    @property
    def stream(self) -> str:
        return topic_stream(self.topic)


class ReaderEvent(Event, frozen=True, kw_only=True):
    topic: str
    reader: str
    session: int

    @property
    def stream(self) -> str:
        return reader_stream(self.topic, self.reader)


class ReaderOpened(ReaderEvent, frozen=True, kw_only=True, tag="reader.opened"):
    """A session began behind the acknowledged message; an earlier session of this reader is locked out."""

    holder: str
    acknowledged: int
    nonce: str
    token_digest: str


class MessagesDelivered(ReaderEvent, frozen=True, kw_only=True, tag="messages.delivered"):
    """The messages from `first` to `last` were handed out, perhaps not for the first time."""

    first: int
    last: int


class MessagesAcknowledged(ReaderEvent, frozen=True, kw_only=True, tag="messages.acknowledged"):
    """The reader has kept all messages up to `number`; they are not handed out again."""

    number: int
