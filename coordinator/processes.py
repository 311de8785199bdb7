"""Processes as the supervisor and its keepers see them: who is below whom, who has ended, and how one talks to them.

The supervisor imports it, and has to start fast: so nothing beyond the standard library, and little of that.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

ENDED = "ZX"  # states of processes that do nothing any more
_SET_CHILD_SUBREAPER = 36
_LENGTH = 4


def frame(message: dict[str, Any]) -> bytes:
    """The message with its length before it, as `Frames` reads it."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(_LENGTH, "big") + body


class Frames:
    """Messages, as they arrive in pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        self._rest += data
        while len(self._rest) >= _LENGTH:
            end = _LENGTH + int.from_bytes(self._rest[:_LENGTH], "big")
            if len(self._rest) < end:
                return
            message = json.loads(self._rest[_LENGTH:end])
            del self._rest[:end]
            yield message


class Waiting:
    """Waits for what is said on a socket, and for the end of any child of this process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control.fileno()
        self._reading, self._writing = os.pipe()
        self._poll = select.poll()
        for descriptor in (self._reading, self._writing):
            os.set_blocking(descriptor, False)
        for descriptor in (self._control, self._reading):
            self._poll.register(descriptor, select.POLLIN)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def wait(self, at_most_us: int | None) -> bool:
        """Whether something was said."""
        ready = dict(self._poll.poll(None if at_most_us is None else max(0, at_most_us) / 1_000))
        with suppress(BlockingIOError):
            os.read(self._reading, 4096)
        return self._control in ready

    def hear_no_more(self) -> None:
        self._poll.unregister(self._control)

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._reading)
        os.close(self._writing)


SEES_PROCESSES = sys.platform == "linux" and os.path.exists("/proc/self/stat")


def adopt_orphans() -> bool:
    """Become the parent of all descendants whose parents end. False where that, or finding them, can't be done."""
    if not SEES_PROCESSES:
        return False
    import ctypes

    try:
        return ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


class Process(NamedTuple):
    pid: int
    state: str
    parent: int
    group: int


def processes() -> Iterator[Process]:
    """All processes that this one may see. Linux only."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", encoding="latin-1") as file:
                # The name, which stands before it in parentheses, may hold anything.
                state, parent, group = file.read().rpartition(")")[2].split()[:3]
                yield Process(int(name), state, int(parent), int(group))


def descendants(root: int, spared: frozenset[int] = frozenset()) -> list[Process]:
    """All processes below `root`, without those spared and what is below them."""
    below: dict[int, list[Process]] = {}
    for process in processes():
        if process.pid not in spared:
            below.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    roots = [root]
    while roots:
        children = below.pop(roots.pop(), [])
        found += children
        roots += [child.pid for child in children]
    return found


def reap() -> tuple[dict[int, int], bool]:
    """The statuses of all children that have ended since; and whether no child is left."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
        return ended, False
    return ended, True


def send(kill: Callable[[int, int], None], target: int, *numbers: int) -> None:
    """Send signals by `os.kill` or `os.killpg`; whoever is gone or somebody else's does not get them."""
    for number in numbers:
        with suppress(ProcessLookupError, PermissionError):
            kill(target, number)
