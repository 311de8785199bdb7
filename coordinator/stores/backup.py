"""A copy of a workspace that is in use: whole, durable, and there only when it is complete."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from typing import Final
from urllib.parse import quote

from coordinator.errors import InvalidInput, Unavailable
from coordinator.stores.sqlite_file import connect, locate, reaching
from coordinator.stores.sqlite_rows import hint_for

_BESIDE_A_DATABASE: Final = ("-journal", "-wal", "-shm", ".turn")
"""SQLite would take a copy of such a name for what it has left itself, and remove it; so would we."""


def back_up(path: str, target: str) -> None:
    """Copy the workspace at `path`, as one snapshot of it, to the new file `target`.

    SQLite writes the copy (nothing else may open the file of a workspace in use), under another name in the same
    folder. Only when it has reached the disk does it get its name. It holds the workspace's secret, and so is as
    private as the workspace.

    Raises:
        InvalidInput: the target has a name that belongs beside a database.
        Unavailable: the target exists, or cannot be written.
    """
    target = locate(target)
    if target.endswith(_BESIDE_A_DATABASE):
        raise InvalidInput("target", "has a name that belongs beside a database", hint="name a new file of its own")
    if os.path.lexists(target):
        raise Unavailable(f"{target} exists already", hint="name a new file")
    unfinished = f"{target}.{secrets.token_hex(4)}.unfinished"
    with reaching(target):
        try:
            os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            _copy(path, unfinished)
            _flush(unfinished)
            os.link(unfinished, target)  # unlike a rename, it never replaces what somebody put there meanwhile
            _flush(os.path.dirname(target))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)


def _copy(path: str, unfinished: str) -> None:
    try:
        with closing(connect(path)) as connection:
            # As a URI, because a name need not be UTF-8.
            connection.execute("VACUUM INTO ?", (f"file:{quote(os.fsencode(unfinished))}",))
    except sqlite3.Error as error:
        raise Unavailable(f"{path} could not be copied: {error}", hint=hint_for(error)) from error


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
