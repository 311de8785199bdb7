"""The streams of the log: each is one thing that events are about, named by its kind and its own name.

job/parser · topic/builds · reader/builds/bob · operation/4711
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

JOBS: Final = "job/"
TOPICS: Final = "topic/"
READERS: Final = "reader/"
OPERATIONS: Final = "operation/"

EVERYTHING: Final = frozenset({""})
"""All streams, for whoever waits for them. A whole kind of them is named by how they begin, such as `JOBS`."""


def job_stream(job: str) -> str:
    return JOBS + job


def topic_stream(topic: str) -> str:
    return TOPICS + topic


def reader_stream(topic: str, reader: str) -> str:
    """No two readers share a stream, whatever they are called."""
    return f"{READERS}{escaped(topic)}/{escaped(reader)}"


def operation_stream(operation: str) -> str:
    return OPERATIONS + operation


def name_in(stream: str) -> str:
    """The name of a job, a topic or an operation, without its kind."""
    return stream[stream.find("/") + 1 :]


def is_kind(stream: str) -> bool:
    """Whether this stands for many streams: all of them, or those of one kind."""
    return stream.find("/") == len(stream) - 1


def keys(streams: Iterable[str]) -> set[str]:
    """What those wait for whom one of these streams concerns: the streams, their kinds, and what stands for all."""
    return {key for stream in streams for key in ("", stream[: stream.find("/") + 1], stream)}


def escaped(name: str) -> str:
    """A name as one part among others: a "/" inside it is written `%2F`, a "%" `%25`."""
    return name.replace("%", "%25").replace("/", "%2F")


def in_words(stream: str) -> str:
    """What a stream is about, for people."""
    kind, _, name = stream.partition("/")
    if kind + "/" in (JOBS, TOPICS, OPERATIONS):
        return f"{kind} {name!r}"
    if kind + "/" == READERS:
        topic, _, reader = map(_unescaped, name.partition("/"))
        return f"reader {reader!r} of {topic!r}"
    return stream


def _unescaped(name: str) -> str:
    return name.replace("%2F", "/").replace("%25", "%")
