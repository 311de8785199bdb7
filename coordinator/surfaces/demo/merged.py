"""All results as one index. It is larger than a result may be, so it stands in a file beside the database."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from coordinator.surfaces.demo.index import FileIndex, PieceIndex

MergedIndex = dict[str, FileIndex]


class Artifact(msgspec.Struct, frozen=True):
    """The last job's result: where the merged index is, and how to know it again."""

    file: str
    size: int
    sha256: str
    files: int
    definitions: int


def merge(pieces: Iterable[PieceIndex]) -> MergedIndex:
    return {path: index for piece in pieces for path, index in piece.files.items()}


def encode(index: MergedIndex) -> bytes:
    """The same bytes for the same index."""
    return msgspec.json.encode(index, order="sorted")


def artifact_path(database: Path) -> Path:
    return database.with_name(database.name + ".index.json")


def describe(database: Path, index: MergedIndex) -> Artifact:
    """What there is to say of the merged index."""
    data = encode(index)
    return Artifact(
        file=artifact_path(database).name,
        size=len(data),
        sha256=sha256(data).hexdigest(),
        files=len(index),
        definitions=count(index),
    )


def write(database: Path, index: MergedIndex, attempt: int) -> Artifact:
    """Put it there at once or not at all; each attempt writes a file of its own first."""
    path = artifact_path(database)
    part = path.with_name(f"{path.name}.{attempt}")
    part.write_bytes(encode(index))
    os.replace(part, path)
    return describe(database, index)


def count(index: MergedIndex) -> int:
    return sum(len(file.definitions) + file.unlisted for file in index.values())
