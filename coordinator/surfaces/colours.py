"""Colours for a terminal that wants them."""

from __future__ import annotations

import os
from typing import Final, Literal, TextIO

When = Literal["auto", "always", "never"]

_CODES: Final = {"dim": "2", "red": "31", "yellow": "33", "green": "32", "cyan": "36", "bold": "1"}
_OF_TYPES: Final = {
    "command.refused": "red",
    "job.lapsed": "yellow",
    "job.revoked": "yellow",
    "job.failed": "yellow",
    "job.rejected": "yellow",
    "operation.failed": "yellow",
    "operation.lapsed": "yellow",
    "operation.stopped": "yellow",
    "job.submitted": "cyan",
    "job.accepted": "green",
    "operation.succeeded": "green",
}


class Colours:
    """Paints, or leaves texts as they are."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted

    def paint(self, text: str, colour: str | None) -> str:
        return text if not self._wanted or colour is None or not text else f"\x1b[{_CODES[colour]}m{text}\x1b[0m"

    def of_type(self, text: str, type: str) -> str:
        """In the colour of a type of event."""
        return self.paint(text, _OF_TYPES.get(type))


def colours_for(out: TextIO, when: When) -> Colours:
    """Unless it is said otherwise: on a terminal, unless NO_COLOR is set (https://no-color.org) or it is a dumb one."""
    automatic = out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Colours(automatic if when == "auto" else when == "always")
