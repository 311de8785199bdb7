"""The key by which paths are compared: equal for spellings that a file system may take for one another.

Unicode's canonical caseless matching (definition D145): decompose, fold the case, decompose again. `SRC/Äpfel`, written
with one code point or two, and `src/äpfel` have one key. Components stay joined by `/`; the root `.` has the key "".

Keys are ordered by code point, which is also the binary order of their UTF-8. In that order `0` comes right after `/`,
so all that lies under `src` is what stands from `src/` up to, not including, `src0`.
"""

from __future__ import annotations

from unicodedata import normalize

LOWEST = "\x01"  # no path holds a control character, so this is below every key but the root's


def path_key(path: str) -> str:
    """The key of a normalised path. A key is its own key."""
    if path.isascii():
        return "" if path == "." else path.lower()
    return normalize("NFD", normalize("NFD", path).casefold())


def parents(key: str) -> list[str]:
    """Every proper ancestor of `key`, from the root "" down to the nearest; the root has none."""
    if not key:
        return []
    found = [""]
    end = key.find("/")
    while end >= 0:
        found.append(key[:end])
        end = key.find("/", end + 1)
    return found


def children_range(key: str) -> tuple[str, str | None]:
    """Bounds (low, high) such that exactly the proper descendants of `key` have `low <= k < high`; None is no bound."""
    if not key:
        return LOWEST, None
    return key + "/", key + "0"


def keys_clash(one: str, other: str) -> bool:
    """Whether two keys are the same, or one is an ancestor of the other."""
    if len(one) > len(other):
        one, other = other, one
    return not one or (other.startswith(one) and (len(one) == len(other) or other[len(one)] == "/"))
