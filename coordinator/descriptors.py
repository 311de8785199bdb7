"""Pipes and sockets that a forked child closes at once.

They are not inherited over exec, but a bare fork copies them; and an end that a forgotten child holds open would keep
the other end from ever hearing that its peer is gone.
"""

from __future__ import annotations

import os
import socket
import threading
from io import FileIO
from typing import Self, TypeVar
from weakref import WeakSet

End = TypeVar("End", FileIO, socket.socket)

_open: WeakSet[FileIO | socket.socket] = WeakSet()
_opening = threading.RLock()  # no fork between opening and noting it; a signal's handler may fork in the midst of it


def open_pipe() -> tuple[FileIO, FileIO]:
    """The reading and the writing end of a new pipe."""
    with _opening:
        reading, writing = os.pipe()
        ends = FileIO(reading, "r"), FileIO(writing, "w")
        _open.update(ends)
    return ends


def open_sockets() -> tuple[socket.socket, socket.socket]:
    """The two ends of a new connection."""
    with _opening:
        ends = socket.socketpair()
        _open.update(ends)
    return ends


class Ends:
    """Ends that are closed together when a block is left, unless they were kept."""

    def __init__(self) -> None:
        self.ends: list[FileIO | socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for end in self.ends:
            end.close()

    def take(self, ends: tuple[End, End], others: Ends) -> End:
        """Take the first of two ends, and leave the second to others."""
        self.ends.append(ends[0])
        others.ends.append(ends[1])
        return ends[0]

    def keep(self) -> None:
        """Whoever has them now closes them."""
        self.ends.clear()


def _close_in_child() -> None:
    _opening.release()
    for end in list(_open):
        end.close()


if hasattr(os, "register_at_fork"):  # elsewhere opening a coordinator is refused, but importing must not fail
    os.register_at_fork(before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_close_in_child)
