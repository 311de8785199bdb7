"""Paths that a job reserves: checked, brought to one spelling, and each covered only once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final, cast
from unicodedata import category, normalize

from coordinator import limits
from coordinator.errors import BadPath
from projections.path_keys import keys_clash, path_key

_DRIVE: Final = re.compile(r"[A-Za-z]:(?:[/\\]|$)")
_PATTERN: Final = re.compile(r"[*?]")
# What shows as nothing although it is not in category Cf: Unicode's other Default_Ignorable_Code_Points.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_BAD_CATEGORY: Final = {
    "Cc": "a control character",
    "Cf": "a zero-width or format character",
    "Cs": "a lone surrogate",
    "Cn": "an unassigned code point",
    "Zl": "a line separator",
    "Zp": "a paragraph separator",
}
_INVISIBLE_HINT: Final = "reserve its folder instead, or rename the file"


def normalise(field: str, paths: object) -> tuple[str, ...]:
    """The paths to reserve, from a list of `str` or relative `Path`: sorted by key, none inside another.

    Raises:
        InvalidInput: `paths` is no list, or is too long.
        BadPath: one of them cannot be reserved; names it, `paths[3]`.
    """
    spelled: dict[str, str] = {}
    for index, path in enumerate(limits.listed(field, paths)):
        if index >= limits.PATHS_MAX:
            problem = f"has more than {limits.PATHS_MAX:,} entries"
            raise BadPath(field, problem, hint="reserve the folders that hold them")
        if type(path) is str and _is_ordinary(path):
            spelled.setdefault(path.lower(), path)
        else:
            path = _spell(f"{field}[{index}]", path)
            spelled.setdefault(path_key(path), path)
    return _uncovered(spelled)


def normalise_one(field: str, path: object) -> str:
    """One path in the spelling that `normalise` gives it."""
    return path if type(path) is str and _is_ordinary(path) else _spell(field, path)


def absorb(paths: Iterable[str]) -> tuple[str, ...]:
    """Normalised paths without those that another of them covers: `src` absorbs `src/x`. Sorted by key."""
    spelled: dict[str, str] = {}
    for path in paths:
        spelled.setdefault(path_key(path), path)
    return _uncovered(spelled)


def clashes(one: str, other: str) -> bool:
    """Whether two normalised paths cannot both be reserved: they are the same, or one lies inside the other."""
    return keys_clash(path_key(one), path_key(other))


def _uncovered(spelled: dict[str, str]) -> tuple[str, ...]:
    if len(spelled) < 2:
        return tuple(spelled.values())
    if "" in spelled:
        return (spelled[""],)
    if len(spelled) == 2:
        first, second = sorted(spelled)
        covered = second.startswith(first) and second[len(first)] == "/"
        return (spelled[first],) if covered else (spelled[first], spelled[second])
    kept: list[str] = []
    for key in sorted(spelled):
        end = key.rfind("/")
        while end >= 0 and key[:end] not in spelled:
            end = key.rfind("/", 0, end)
        if end < 0:
            kept.append(spelled[key])
    return tuple(kept)


def _is_ordinary(path: str) -> bool:
    """Printable ASCII in plain components; what fails here is looked at in `_spell`, and may still be good."""
    return (
        path.isascii()
        and path.isprintable()
        and 0 < len(path) <= limits.PATH_BYTES
        and path[0] != "/"
        and path[-1] != "/"
        and path[-1] != "."
        and "./" not in path
        and "//" not in path
        and "\\" not in path
        and "*" not in path
        and "?" not in path
        and ":" not in path
    )


def _spell(field: str, path: object) -> str:
    if isinstance(path, os.PathLike):
        path = cast("object", os.fspath(cast("os.PathLike[str]", path)))  # or of bytes
    if not isinstance(path, str):
        raise BadPath(field, f"must be a str or a relative Path, not {limits.kind(path)}")
    path = str.__str__(path)
    if not path:
        raise BadPath(field, "is empty", hint='"." is the whole workspace')
    if len(path) > limits.PATH_BYTES:
        raise BadPath(field, f"is over {limits.PATH_BYTES:,} bytes of UTF-8")
    _refuse_characters(field, path)
    path = normalize("NFC", path)
    if len(path.encode()) > limits.PATH_BYTES:
        raise BadPath(field, f"is over {limits.PATH_BYTES:,} bytes of UTF-8")
    if path[0] == "/" or _DRIVE.match(path):
        raise BadPath(field, "is absolute", hint="write it relative to the workspace")
    if "\\" in path:
        raise BadPath(field, "holds a backslash", hint='separate with "/"')
    if found := _PATTERN.search(path):
        raise BadPath(field, f'holds "{found[0]}"; patterns are not expanded', hint="reserve the folder")
    components = path.split("/")
    if ".." in components:
        raise BadPath(field, 'holds ".."', hint="write the path that it leads to, relative to the workspace")
    if components[-1] == "":
        raise BadPath(field, 'ends in "/"', hint="write it without the trailing slash")
    if "" in components:
        raise BadPath(field, "has an empty component", hint='write one "/" between two names')
    return "/".join(component for component in components if component != ".") or "."


def _refuse_characters(field: str, path: str) -> None:
    if path.isprintable() and not _UNSEEN.search(path):
        return
    for index, character in enumerate(path):
        what = _BAD_CATEGORY.get(category(character))
        if what is None and _UNSEEN.match(character):
            what = "a character that does not show"
        if what is not None:
            problem = f"holds {what} (U+{ord(character):04X}) at character {index}"
            raise BadPath(field, problem, hint=_INVISIBLE_HINT)
