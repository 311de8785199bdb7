"""What a Python file defines: the name, kind and line of each class and function in it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

_LISTED_BYTES = 160 * 1024  # of one file's definitions; a generated file with more is listed in part
_LINE_BYTES = 32

Kind = Literal["class", "function", "async function"]


class Definition(msgspec.Struct, frozen=True, array_like=True):
    """A class or function. `name` holds those around it too: `Parser.read`."""

    name: str
    kind: Kind
    line: int


class FileIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """All definitions of a file in the order of its lines; or why there are none to be had.

    `unlisted` counts the definitions at the end of a very long list, which would not fit into a job's result.
    """

    definitions: list[Definition] = []
    unlisted: int = 0
    problem: str | None = None


class PieceIndex(msgspec.Struct, frozen=True):
    """A job's result: the files of its piece by path."""

    files: dict[str, FileIndex]


def index_files(folder: Path, paths: Iterable[str]) -> PieceIndex:
    return PieceIndex({path: index_file(folder / path) for path in paths})


def index_file(file: Path) -> FileIndex:
    """The index of one file. One that cannot be read or parsed is indexed as such."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        return FileIndex(problem=f"SyntaxError in line {error.lineno}: {error.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return FileIndex(problem=type(error).__name__)
    found = sorted(_definitions(tree), key=lambda definition: (definition.line, definition.name))
    listed = list(_that_fit(found))
    return FileIndex(definitions=listed, unlisted=len(found) - len(listed))


def _definitions(tree: ast.Module) -> Iterator[Definition]:
    """Only statements are walked, since an expression defines nothing with a name of its own."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, around = waiting.pop()
        for child in _statements(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = around + child.name
                yield Definition(name, _KINDS[type(child)], child.lineno)
                waiting.append((child, name + "."))
            else:
                waiting.append((child, around))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner: object = getattr(node, field, None)
        if isinstance(inner, list):
            yield from inner


def _that_fit(found: list[Definition]) -> Iterator[Definition]:
    size = 0
    for definition in found:
        size += len(definition.name.encode()) + _LINE_BYTES
        if size > _LISTED_BYTES:
            return
        yield definition


_KINDS: dict[type[ast.stmt], Kind] = {
    ast.ClassDef: "class",
    ast.FunctionDef: "function",
    ast.AsyncFunctionDef: "async function",
}
