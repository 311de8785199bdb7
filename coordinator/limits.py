"""How large things may be, and the checks that say so: each returns the value or raises `InvalidInput`.

The ordinary value (a short `str` of printable ASCII, an `int` in range) passes on the first line of its check; only
what is odd is looked at closely.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeVar, cast

from coordinator.errors import InvalidInput

T = TypeVar("T")

NAME_BYTES: Final = 256
REASON_BYTES: Final = 1_024
PAYLOAD_BYTES: Final = 256 * 1024
PAYLOAD_DEPTH: Final = 64
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1

LEASE_MIN_S: Final = 1
LEASE_MAX_S: Final = 86_400
LEASE_DEFAULT_S: Final = 60
WAIT_MAX_S: Final = 86_400

BATCH: Final = 256
PAGE_MAX: Final = 1_000
PAGE_BYTES: Final = 8 * 1024 * 1024
PATH_BYTES: Final = 4_096
PATHS_MAX: Final = 1_000
DEPENDENCIES_MAX: Final = 10_000
PRIORITY_MIN: Final = -32_767
PRIORITY_MAX: Final = 32_767
ATTEMPTS_MIN: Final = 1
ATTEMPTS_MAX: Final = 1_000_000
ATTEMPTS_DEFAULT: Final = 5

_US: Final = 1_000_000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_BUT_LINES: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def name(field: str, value: object) -> str:
    """A name, an id, a receipt: 1 to 256 bytes of UTF-8 without control characters."""
    if type(value) is str and 0 < len(value) <= NAME_BYTES and value.isascii() and value.isprintable():
        return value
    return _text(field, value, NAME_BYTES, _CONTROL)


def context(field: str, value: object) -> str | None:
    """What the caller wants written beside each event (a trace id): like a name, or None."""
    return None if value is None else name(field, value)


def reason(field: str, value: object) -> str:
    """Why somebody did something: up to 1,024 bytes, may run over several lines."""
    text = _text(field, value, REASON_BYTES, _CONTROL_BUT_LINES)
    if text.isspace():
        raise InvalidInput(field, "is blank", hint="say why in a few words")
    return text


def fitting_reason(text: str) -> str:
    """Any text (an exception's message) as a reason that passes: odd characters replaced, the end cut off."""
    text = text.replace("\r\n", "\n")[: REASON_BYTES + 1]
    text = _SURROGATE.sub("\ufffd", _CONTROL_BUT_LINES.sub("\ufffd", text))
    data = text.encode()
    if len(data) > REASON_BYTES:
        text = data[: REASON_BYTES - 3].decode(errors="ignore") + "…"
    return text if text.strip() else "no reason given"


def words_of(error: BaseException) -> str:
    """What kind of exception it is and what it says, also of one that cannot say it."""
    try:
        said = str(error)
    except Exception as another:
        said = f"its text could not be had ({type(another).__name__})"
    return f"{type(error).__name__}: {said}"


def lease_us(field: str, seconds: object) -> int:
    """The length of a lease: seconds in, microseconds out."""
    if (type(seconds) is int or type(seconds) is float) and LEASE_MIN_S <= seconds <= LEASE_MAX_S:
        return round(seconds * _US)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise InvalidInput(field, f"must be a number of seconds, not {kind(seconds)}")
    if not LEASE_MIN_S <= seconds <= LEASE_MAX_S:
        problem = f"must be from {LEASE_MIN_S} to {LEASE_MAX_S:,} seconds, not {_brief(seconds)}"
        raise InvalidInput(field, problem, hint="a claim is renewed while its work goes on")
    return round(float(seconds) * _US)


def seconds(field: str, value: object, low: float, high: float) -> float:
    """A duration in seconds, whole or not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, f"must be a number of seconds, not {kind(value)}")
    if not low <= value <= high:
        raise InvalidInput(field, f"must be {low:g} to {high:,.0f} seconds, not {_brief(value)}")
    return float(value)


def whole(field: str, value: object, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, f"must be a whole number (int), not {kind(value)}")
    if not low <= value <= high:
        raise InvalidInput(field, f"must be from {low:,} to {high:,}, not {_brief(value)}")
    return int(value)


def choice(field: str, value: object, allowed: Collection[T], *, hint: str = "") -> T:
    """One of the words in `allowed`; what comes back is the member of `allowed`."""
    if isinstance(value, str):
        for candidate in allowed:
            if value == candidate:
                return candidate
    words = ", ".join(repr(str(candidate)) for candidate in allowed)
    given = _brief(value) if isinstance(value, str) else kind(value)
    raise InvalidInput(field, f"must be one of {words}, not {given}", hint=hint)


def choices(field: str, values: Iterable[object], allowed: Collection[T], *, example: str) -> list[T]:
    """Words in `allowed` that were passed one by one, as the example shows; a list of them is a common slip."""
    hint = f"name them one by one: {example}"
    return [
        choice(field, value, allowed, hint=hint if isinstance(value, (list, tuple, set, frozenset)) else "")
        for value in values
    ]


def names(field: str, values: object, *, most: int = DEPENDENCIES_MAX) -> tuple[str, ...]:
    """A list of ids, in its order, each once."""
    found: dict[str, None] = {}
    for index, value in enumerate(listed(field, values)):
        if index >= most:
            raise InvalidInput(field, f"has more than {most:,} entries")
        if not (type(value) is str and 0 < len(value) <= NAME_BYTES and value.isascii() and value.isprintable()):
            value = _text(f"{field}[{index}]", value, NAME_BYTES, _CONTROL)
        found[value] = None
    return tuple(found)


def listed(field: str, values: object) -> Iterable[object]:
    """`values` if it can be gone through as a list of things; a single text is no list of its letters.

    A set comes in another order in each process, and equal requests must be equal everywhere, so it is sorted.
    """
    if type(values) is list or type(values) is tuple:
        return cast("Iterable[object]", values)
    if isinstance(values, str):
        raise InvalidInput(field, "is a single str", hint=f"pass a list: {field}=[…]")
    if not isinstance(values, Iterable) or isinstance(values, (bytes, bytearray, memoryview, Mapping)):
        raise InvalidInput(
            field, f"must be a list of str, not {kind(cast('object', values))}", hint=f"pass a list: {field}=[…]"
        )
    if isinstance(values, (set, frozenset)):
        return sorted(cast("set[object]", values), key=str)
    return cast("Iterable[object]", values)


def kind(value: object) -> str:
    """What a value is, in words for a message: its type, never its content."""
    return "None" if value is None else type(value).__name__


def _text(field: str, value: object, limit: int, forbidden: re.Pattern[str]) -> str:
    if not isinstance(value, str):
        hint = "decode it first" if isinstance(value, (bytes, bytearray)) else ""
        raise InvalidInput(field, f"must be text (str), not {kind(value)}", hint=hint)
    value = str.__str__(value)  # a StrEnum, or another subclass, as the plain text it is
    if not value:
        raise InvalidInput(field, "is empty")
    if found := _SURROGATE.search(value):
        problem = f"holds a lone surrogate (U+{ord(found[0]):04X}) at character {found.start()}"
        raise InvalidInput(field, problem, hint="it has no UTF-8 form; decode the bytes with their true encoding")
    size = len(value) if len(value) > limit else len(value.encode())
    if size > limit:
        raise InvalidInput(field, f"is over {limit:,} bytes of UTF-8", hint="keep long text in the payload")
    if found := forbidden.search(value):
        raise InvalidInput(field, f"holds a control character (U+{ord(found[0]):04X}) at character {found.start()}")
    return value


def _brief(value: object) -> str:
    """A value for a message, cut short; a very long int has no text at all."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"
