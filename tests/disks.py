"""File systems of their own for tests: small ones that fill up, and ones that cannot be written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size_kb: int) -> Iterator[Path]:
    """A file system of that size in a new folder; the test is skipped where none can be mounted."""
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def mount(*arguments: object) -> None:
    try:
        done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs the program mount")
    if done.returncode != 0:
        pytest.skip(f"needs a file system of its own, which cannot be mounted here: {done.stderr.strip()}")


def fill(folder: Path) -> Path:
    """Use up all that is left of a small disk; removing the file that is returned makes room again."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file:
        while left := _left(folder):
            try:
                file.write(bytes(left))
            except OSError:
                break
    return filler


def _left(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
