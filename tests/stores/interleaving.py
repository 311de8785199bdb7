"""Stopping a checkpoint in its middle, in whatever SQLite this Python uses.

Between reading the state of the log and going by it, a checkpoint whose view was out of date calls `xUnfetch` of the
database's file. The file's methods stand in a table, so that one of them can be replaced: it says "stopped", and goes
on when it hears something. This works with any SQLite since 3.7.17; nothing of SQLite is changed.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
from collections.abc import Callable
from typing import Any

_FILE_POINTER = 7  # SQLITE_FCNTL_FILE_POINTER
_METHODS = (
    "xClose xRead xWrite xTruncate xSync xFileSize xLock xUnlock xCheckReservedLock xFileControl xSectorSize xDevChar "
    "xShmMap xShmLock xShmBarrier xShmUnmap xFetch xUnfetch"
).split()

_kept: list[Any] = []
"""What SQLite points to must stay."""


class _Methods(ctypes.Structure):
    _fields_ = [("iVersion", ctypes.c_int), *((name, ctypes.c_void_p) for name in _METHODS)]


class _File(ctypes.Structure):
    _fields_ = [("pMethods", ctypes.POINTER(_Methods))]


_Unfetch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_void_p)


def stop_in_the_middle_of_a_checkpoint(connection: sqlite3.Connection, stopped: Callable[[], None]) -> None:
    """Have the connection's next checkpoint whose view is out of date call `stopped` before it goes by that view."""
    file = _file_of(connection)
    original = file.pMethods.contents
    unfetch = _Unfetch(original.xUnfetch)
    calls: list[None] = []

    def stop(of: int, offset: int, page: int | None) -> int:
        if not page and not calls:
            calls.append(None)
            stopped()
        return unfetch(of, offset, page)

    methods = _Methods.from_buffer_copy(original)
    hook = _Unfetch(stop)
    methods.xUnfetch = ctypes.cast(hook, ctypes.c_void_p)
    file.pMethods = ctypes.pointer(methods)
    _kept.extend((methods, hook, unfetch))


def _file_of(connection: sqlite3.Connection) -> _File:
    """SQLite's own handle stands first behind the head of Python's object."""
    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))  # finds the functions of what it is linked with, too
    handle = ctypes.c_void_p.from_address(id(connection) + object.__basicsize__)
    file = ctypes.c_void_p()
    failed = library.sqlite3_file_control(handle, b"main", _FILE_POINTER, ctypes.byref(file))
    assert not failed, failed
    return ctypes.cast(file, ctypes.POINTER(_File)).contents
