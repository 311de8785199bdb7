"""Sending to a topic, and reading from it with two positions."""

from __future__ import annotations

from coordinator import limits
from coordinator.commands import AcknowledgeMessages, OpenReader, ReadMessages, SendMessage, SessionCommand
from coordinator.decisions.lookup import hold, hold_shown
from coordinator.decisions.moment import Moment
from coordinator.refusals import NotDelivered, ReaderSuperseded
from coordinator.views import Views
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.union import AnyEvent
from projections.leases import LeaseRow
from projections.readers import ReaderRow, reader_key
from projections.topics import TopicRow


def send_message(command: SendMessage, views: Views, moment: Moment) -> list[AnyEvent]:
    under = hold_shown(command.shown, views, moment)
    topic = views.topics.get(command.topic)
    return [
        MessageSent(
            topic=command.topic,
            number=1 if topic is None else topic.last + 1,
            body=command.body,
            under=None if command.shown is None else command.shown.job,
            under_attempt=None if under is None else under.attempt,
        )
    ]


def open_reader(command: OpenReader, views: Views, moment: Moment) -> list[AnyEvent]:
    lease, row = views.leases.get(command.subject), _positions(command.topic, command.reader, views)
    nonce = moment.granted()
    return [
        ReaderOpened(
            topic=command.topic,
            reader=command.reader,
            session=1 if lease is None else lease.attempt + 1,
            holder=moment.actor,
            acknowledged=row.acknowledged,
            nonce=nonce.value,
            token_digest=nonce.token_digest,
        )
    ]


def read_messages(command: ReadMessages, views: Views, moment: Moment) -> list[AnyEvent]:
    session, row = _held(command, views, moment)
    if command.after > row.delivered:
        raise NotDelivered(command.topic, command.reader, number=command.after, delivered=row.delivered)
    after = max(command.after, row.acknowledged)  # a session that is asked for again begins where it once began
    topic = views.topics.get(command.topic)
    last = 0 if topic is None else min(after + min(command.limit, _most(topic)), topic.last)
    if last <= after:
        return []
    return [
        MessagesDelivered(
            topic=command.topic, reader=command.reader, session=session.attempt, first=after + 1, last=last
        )
    ]


def _most(topic: TopicRow) -> int:
    """How many messages a page may hold, so that it stays small enough even if all are as large as the largest."""
    return limits.PAGE_BYTES // max(topic.largest, 1)


def acknowledge_messages(command: AcknowledgeMessages, views: Views, moment: Moment) -> list[AnyEvent]:
    session, row = _held(command, views, moment)
    if command.number > row.delivered:
        raise NotDelivered(command.topic, command.reader, number=command.number, delivered=row.delivered)
    if command.number <= row.acknowledged:
        return []
    return [
        MessagesAcknowledged(topic=command.topic, reader=command.reader, session=session.attempt, number=command.number)
    ]


def _held(command: SessionCommand, views: Views, moment: Moment) -> tuple[LeaseRow, ReaderRow]:
    lease = hold(command.subject, command.token_digest, views, moment, ReaderSuperseded)
    return lease, _positions(command.topic, command.reader, views)


def _positions(topic: str, reader: str, views: Views) -> ReaderRow:
    return views.readers.get(reader_key(topic, reader)) or ReaderRow(topic=topic, reader=reader)
