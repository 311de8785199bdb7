"""What every event is: a frozen struct with a hand-written tag, and the stream that it belongs to."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True, gc=False):
    """A fact in the log, in the past tense.

    A field that is added later must have a default of None, False, 0 or (), so that older bodies stay readable.
    """

    @property
    def stream(self) -> str:
        """The one subject that this event is about, such as `job/parser`."""
        raise NotImplementedError
