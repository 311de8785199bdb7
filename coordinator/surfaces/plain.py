"""What others wrote, so that it cannot touch a terminal."""

from __future__ import annotations

import re
import unicodedata

_ORDINARY = re.compile(r"[ -~]*")
_NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def plain(text: object) -> str:
    """A line of text: whatever controls a terminal, turns the direction of text or does not show is written out."""
    text = str(text)
    if _ORDINARY.fullmatch(text):
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _NOT_SHOWN:
        return character
    return ascii(character)[1:-1]
