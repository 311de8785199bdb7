"""Text that agents wrote, made fit for a terminal: what would steer it, turn it round or not show is written out."""

from __future__ import annotations

import json
from typing import Final
from unicodedata import category, combining, east_asian_width

_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_ESCAPED: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_JSON: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def printable(text: str) -> str:
    """The same text on one line, with control, bidi, zero-width and unassigned characters written as `\\x1b`.

    What it gives has no such characters any more, so that printing it can only show it.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written_out(character) if _is_unsafe(character) else character for character in text)


def printable_json(text: str) -> str:
    """The same JSON, with those characters as `\\u001b`; in JSON they can only stand inside strings."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "".join(f"\\u{unit:04x}" for unit in _units(character)) if _is_unsafe(character) else character
        for character in text
    )


def json_line(value: object) -> str:
    """A value as JSON on one line, in which no character can touch a terminal."""
    return printable_json(json.dumps(value, ensure_ascii=False))


def cut(text: str, most: int) -> str:
    """At most so many characters; what is left out is marked."""
    return text if len(text) <= most else text[: most - 1] + "…"


def columns(text: str) -> int:
    """How many columns of a terminal a printable text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def pad(text: str, width: int) -> str:
    """Filled up with spaces to so many columns."""
    return text + " " * (width - columns(text))


def _width(character: str) -> int:
    if combining(character) or category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in ("W", "F") else 1


def _is_unsafe(character: str) -> bool:
    return category(character) in _ESCAPED or character in _UNSEEN or "\ufe00" <= character <= "\ufe0f"


def _written_out(character: str) -> str:
    point = ord(character)
    if character in _JSON:
        return _JSON[character]
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _units(character: str) -> tuple[int, ...]:
    """UTF-16, as JSON counts."""
    point = ord(character)
    if point < 0x10000:
        return (point,)
    return 0xD800 + (point - 0x10000 >> 10), 0xDC00 + (point - 0x10000 & 0x3FF)
