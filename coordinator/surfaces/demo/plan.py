"""Which jobs there are: one for each top-level package or module of a folder, large packages in several pieces."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import msgspec

from coordinator.errors import InvalidInput
from coordinator.paths import normalise

MERGE = "index/all"
"""The last job. No top-level name holds a "/", and pieces are called NAME/1of2: no other job has this id."""

PIECES_MIN = 3
"""One job for the worker that stalls, one for the worker that is killed, one for the same worker started anew."""

LEFT_OUT = ("site-packages", "dist-packages", "__pycache__")
"""Folders that are left out wherever they are; so are hidden ones, which begin with a dot."""

_PIECE_BYTES = 96 * 1024  # a piece's index is a part of that, and a result may have 256 KiB
_PIECE_FILES = 250
_PIECES_ENOUGH = 8
_NAME_BYTES = 200  # of a top-level name, which goes into an id


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job's payload: the files to index, by their paths below the folder, or to merge what was accepted."""

    files: list[str] = []
    merge: bool = False


@dataclass(frozen=True, slots=True)
class File:
    path: str
    size: int

    @property
    def top(self) -> str:
        return self.path.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Piece:
    """One job: an id, and files that are no other job's."""

    id: str
    files: tuple[File, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files]


@dataclass(frozen=True, slots=True)
class Plan:
    """All pieces of a folder.

    Attributes:
        left_out: names of the folders that are left out on purpose.
        unusable: files and folders that cannot be read, or reserved by their names.
    """

    folder: Path
    pieces: tuple[Piece, ...]
    left_out: tuple[str, ...]
    unusable: tuple[str, ...]

    @property
    def files(self) -> list[str]:
        return sorted(path for piece in self.pieces for path in piece.paths)


def standard_library() -> Path:
    """The default folder."""
    return Path(sysconfig.get_path("stdlib"))


def plan(folder: Path, *, without: tuple[str, ...] = ()) -> Plan:
    """The jobs for a folder.

    Args:
        without: names right below the folder that are left out too.
    """
    unusable: list[str] = []
    files = sorted(_python_files(folder, without, unusable), key=lambda file: file.path)
    pieces = list(_pieces(files, _PIECE_BYTES))
    if len(pieces) < _PIECES_ENOUGH:
        pieces = list(_pieces(files, 0))
    return Plan(folder, tuple(pieces), (*without, *LEFT_OUT), tuple(unusable))


def printable(path: str | Path) -> str:
    """A path for people: what has no UTF-8 form is written as its bytes."""
    return str(path).encode(errors="backslashreplace").decode()


def _python_files(folder: Path, without: tuple[str, ...], unusable: list[str]) -> Iterator[File]:
    def below(path: str) -> str:
        return os.path.relpath(path, folder).replace(os.sep, "/")

    def unreadable(error: OSError) -> None:
        unusable.append(printable(below(os.fsdecode(error.filename))))

    for where, folders, names in os.walk(folder, onerror=unreadable):
        left_out = (*LEFT_OUT, *without) if Path(where) == folder else LEFT_OUT
        folders[:] = sorted(name for name in folders if name not in left_out and not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(where, name)
            if not name.endswith(".py") or not os.path.isfile(path):
                continue
            if _can_be_reserved(below(path)):
                yield File(below(path), os.path.getsize(path))
            else:
                unusable.append(printable(below(path)))


def _can_be_reserved(path: str) -> bool:
    try:
        normalise("paths", [path])
    except InvalidInput:
        return False
    return len(path.partition("/")[0].encode()) <= _NAME_BYTES


def _pieces(files: list[File], most_bytes: int) -> Iterator[Piece]:
    """Files of one top-level name together, unless they are too many; never less than one file."""
    for top, group in groupby(sorted(files, key=lambda file: file.top), key=lambda file: file.top):
        parts: list[list[File]] = []
        size = 0
        for file in group:
            if not parts or size + file.size > most_bytes or len(parts[-1]) == _PIECE_FILES:
                parts.append([])
                size = 0
            parts[-1].append(file)
            size += file.size
        for number, part in enumerate(parts, 1):
            yield Piece(top if len(parts) == 1 else f"{top}/{number}of{len(parts)}", tuple(part))
