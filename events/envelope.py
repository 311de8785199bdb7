"""An event with the circumstances that the log keeps beside it."""

from __future__ import annotations

import msgspec

from events.union import AnyEvent


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """One entry of the log.

    Attributes:
        position: 1, 2, 3 … without gaps.
        at: log time, µs UTC; never runs back.
        actor: who asked; None for what the store itself found out (a lapse).
        origin: host/pid/start of the process that appended it.
        context: what the caller wanted to be kept with it (a traceparent, a run id).
        receipt: the idempotency key of the command; only on its first event.
        fingerprint: SHA-256 of the command; only on its first event.
        command: position of the command's first event.
        event: the fact.
    """

    position: int
    at: int
    actor: str | None
    origin: str | None
    context: str | None
    receipt: str | None
    fingerprint: bytes | None
    command: int
    event: AnyEvent
