"""What a reviewer has to say against a result: read from the files again, and by other means than the worker's.

The worker read syntax trees. Here Python's symbol tables say how many classes and functions a file has, and the text of
each line says whether the one that is claimed stands there.
"""

from __future__ import annotations

import re
import symtable
import warnings
from hashlib import sha256
from pathlib import Path
from typing import cast

from coordinator.surfaces.demo.index import Definition, FileIndex, Kind, PieceIndex
from coordinator.surfaces.demo.merged import Artifact, MergedIndex, artifact_path, describe
from coordinator.surfaces.demo.plan import Task

_KEYWORDS: dict[Kind, bytes] = {"class": b"class", "function": b"def", "async function": b"async"}
_BEGINNING = re.compile(rb"\s*(?P<keyword>class|def|async)(?:(?<=async)\s+def)?\s+(?P<name>\w+)")


def objection_to_piece(folder: Path, task: Task, result: PieceIndex) -> str | None:
    """Why the index of some files is wrong, or None."""
    if sorted(result.files) != sorted(task.files):
        return "it does not list the files that the job names"
    for path, index in result.files.items():
        objection = objection_to_file(folder / path, index)
        if objection is not None:
            return f"{path}: {objection}"
    return None


def objection_to_merged(database: Path, accepted: MergedIndex, result: Artifact) -> str | None:
    """Why the merged index is wrong, or None."""
    if result != describe(database, accepted):
        return "it is not what the accepted results add up to"
    try:
        data = artifact_path(database).read_bytes()
    except OSError as error:
        return f"its file cannot be read: {error.strerror}"
    return None if sha256(data).hexdigest() == result.sha256 else "its file holds something else"


def objection_to_file(file: Path, index: FileIndex) -> str | None:
    """Why the index of one file is wrong, or None."""
    counted: int | None = None
    source = b""
    try:
        source = file.read_bytes()
        with warnings.catch_warnings(action="ignore"):  # bytes are taken too, and read as the compiler reads them
            counted = _count(symtable.symtable(cast("str", source), file.name, "exec"))
    except SyntaxError:
        pass  # it may parse all the same: a `nonlocal` in a module does
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return None if index.problem is not None else f"it cannot be read: {type(error).__name__}"
    listed = len(index.definitions) + index.unlisted
    if counted is not None and index.problem is not None:
        return f"it can be read, although the index says {index.problem}"
    if counted is not None and counted != listed:
        return f"it has {counted} definitions, not {listed}"
    lines = source.removeprefix(b"\xef\xbb\xbf").splitlines()
    for definition in index.definitions:
        if not _stands(definition, lines):
            return f"line {definition.line} does not define {definition.name}"
    return None


def _count(table: symtable.SymbolTable) -> int:
    """Scopes of classes and functions. Lambdas and comprehensions are functions too, but have no name to index."""
    count = 0
    waiting = [table]
    while waiting:
        children = waiting.pop().get_children()
        count += sum(1 for child in children if _is_definition(child))
        waiting += children
    return count


def _is_definition(table: symtable.SymbolTable) -> bool:
    if isinstance(table, symtable.Function):
        return table.get_name() != "lambda" and ".0" not in table.get_parameters()
    return isinstance(table, symtable.Class)


def _stands(definition: Definition, lines: list[bytes]) -> bool:
    """Whether the line begins with the definition's keyword, and goes on with its name where that is ASCII."""
    if not 0 < definition.line <= len(lines):
        return False
    line = lines[definition.line - 1]
    found = _BEGINNING.match(line)
    name = definition.name.rpartition(".")[2].encode()
    if found is None or not name.isascii() or line.endswith(b"\\"):  # spelled otherwise, or goes on in the next line
        return line.lstrip().startswith(_KEYWORDS[definition.kind])
    return (found["keyword"], found["name"]) == (_KEYWORDS[definition.kind], name)
