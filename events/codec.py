"""Between events and the text in the log, and the chain of digests over the rows.

The tag stands in the body too (`"type":"job.claimed"`), so that a body tells its own story. Old bodies stay readable
for ever: `tests/golden/` holds one of every shape that was ever stored.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from events.messages import MessageSent
from events.union import AnyEvent

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyEvent).decode
_decode_message = msgspec.json.Decoder(MessageSent).decode
_pack = msgspec.msgpack.Encoder().encode

Columns = tuple[
    int, int, str, str, str | None, str | None, str | None, str | None, bytes | None, int, str
]  # position, at, stream, type, actor, origin, context, receipt, fingerprint, command, body


def encode(event: AnyEvent) -> str:
    """The body to store: JSON text."""
    return _encode(event).decode()


def decode(body: str | bytes) -> AnyEvent:
    """The event of a stored body.

    Raises:
        msgspec.DecodeError: the text is not JSON (msgspec.ValidationError: not an event that we know).
    """
    return _decode(body)


def decode_message(body: str | bytes) -> MessageSent:
    """The same where it must be a message, of which many are read at a time."""
    return _decode_message(body)


def type_of(event: AnyEvent) -> str:
    """The tag of an event, such as `job.claimed`."""
    return TAGS[type(event)]


def chain(previous: bytes, columns: Columns) -> bytes:
    """SHA-256 over the previous digest and all columns of one row.

    The encoding is MessagePack of the array [previous, position, …, body] in its shortest form, which is unambiguous
    and can be written again in any language. Before event 1 stands the workspace id.
    """
    return sha256(_pack((previous, *columns))).digest()


TAGS: dict[type[AnyEvent], str] = {
    event: str(event.__struct_config__.tag)
    for event in AnyEvent.__args__  # type: ignore[attr-defined]
}
