"""The turn: the right to write to a workspace, held by one process at a time.

SQLite's own lock would be enough to keep writers apart, but not to be fair to them: with it alone, one of eight
writers waited eight seconds. So whoever wants to write, open, checkpoint or close first takes an `flock` on a file
beside the database. The kernel frees it when its holder dies, however it dies. And as a lock goes to whoever looks in
the right moment, those who wait form a line: with chance alone, one of four writers got 0.88 of what another got.
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from coordinator.stores.interface import TurnTaken
from coordinator.stores.line import HEADER, SIZE, WAITING, Line

SHORTEST_PAUSE_S = 0.0001
LONGEST_PAUSE_S = 0.0006

GRACE_S = 0.005
"""So long a free turn is left to whoever is next; a process that is stopped or has died holds up the others once."""

# Each look costs some 30 µs of processor time, so only whoever is next looks often.
_SHORTEST_LOOK_S = 0.0001
_PAUSE_FOR_EACH_AHEAD_S = 0.0005
_LONGEST_PAUSE_S = 0.003

# What the processes tell each other lies in the file: the note, and behind it the line of those who wait.
_NOTE = struct.Struct("<QQ")
_LINE = _NOTE.size

_open_turns: weakref.WeakSet[Turn] = weakref.WeakSet()


class Turn:
    """One process's way to the turn of one workspace. Not for use by several threads at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = _open(path)
        self._place = self._line().draw_place()
        self._turns = 0
        _open_turns.add(self)

    def take(self, still_wanted: Callable[[], bool]) -> None:
        """Wait for the turn for as long as `still_wanted` says yes.

        A blocking `flock` cannot time out, so it is tried at short intervals, but only by whoever is next. Others try
        if that one does not come, and once more when their time is up.

        Raises:
            TurnTaken: it is not wanted any more; names the holder where that can be known.
        """
        if self._fd < 0:
            self._fd = _open(self.path)
        line = self._line()
        if line.waits_at(self._place):
            self._place = line.draw_place()  # somebody else waits there, or has died there
        if line.ahead_of(self._place) or not self._try():
            self._wait(still_wanted)
        while not os.fstat(self._fd).st_nlink:
            self._follow()
            self._wait(still_wanted)

    def give_back(self) -> None:
        """Let others have it. Harmless in a forked child, where the descriptor is gone."""
        if self._fd < 0:
            return
        self._turns = (self._turns + 1) % 256
        self._write_hint(bytes([self._place, self._turns]), _LINE)  # before it is free, so that all know who is next
        self._unlock()

    @contextmanager
    def held(self, still_wanted: Callable[[], bool]) -> Generator[None]:
        self.take(still_wanted)
        try:
            yield
        finally:
            self.give_back()

    def read_note(self) -> tuple[int, int]:
        """Two numbers that the processes share by way of the file; zeroes at first. Only for the holder."""
        found = self._read_hint(_NOTE.size, 0)
        return _NOTE.unpack(found) if len(found) == _NOTE.size else (0, 0)

    def write_note(self, first: int, second: int) -> None:
        self._write_hint(_NOTE.pack(first, second), 0)

    def holder(self) -> int | None:
        """The process that holds the turn now, where the system tells."""
        with suppress(OSError):
            return lock_holder("FLOCK", os.fstat(self._fd))
        return None

    def close(self) -> None:
        """Closing also gives the turn back."""
        fd, self._fd = self._fd, -1
        _open_turns.discard(self)
        if fd >= 0:
            os.close(fd)

    def _wait(self, still_wanted: Callable[[], bool]) -> None:
        """Stand in line until the turn has come."""
        before = self._line()
        moved_at = time.monotonic()
        try:
            while True:
                line, now = self._line(), time.monotonic()
                if line.moved_since(before):
                    before, moved_at = line, now
                if not line.waits_at(self._place):
                    self._mark(WAITING)
                ahead = line.ahead_of(self._place)
                wanted = still_wanted()
                if (not ahead or now - moved_at > GRACE_S or not wanted) and self._try():
                    if not ahead:
                        return
                    if not wanted or not self._line().moved_since(before):
                        self._pass_over(line)
                        return
                    self._unlock()  # it was given back in this moment: who is next has not failed to come
                if not wanted:
                    raise TurnTaken(self.holder())
                time.sleep(random.uniform(0.5, 1.5) * _pause_s(ahead, now - moved_at))
        finally:
            self._mark(0)

    def _line(self) -> Line:
        return Line.read(self._read_hint(SIZE, _LINE))

    def _mark(self, mark: int) -> None:
        self._write_hint(bytes([mark]), _LINE + HEADER + self._place)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _pass_over(self, line: Line) -> None:
        """Those ahead did not come; who is still there marks his place again."""
        for place in line.waiting_before(self._place):
            self._write_hint(bytes(1), _LINE + HEADER + place)

    def _follow(self) -> None:
        """Somebody removed the file: what others lock now is a new one, so lock that."""
        old, self._fd = self._fd, -1
        os.close(old)
        self._fd = _open(self.path)

    def _read_hint(self, size: int, offset: int) -> bytes:
        """What lies in the file. It is only hints, so that trouble with it must not stop a commit."""
        with suppress(OSError):
            return os.pread(self._fd, size, offset)
        return b""

    def _write_hint(self, hint: bytes, offset: int) -> None:
        with suppress(OSError):
            os.pwrite(self._fd, hint, offset)


def patience(seconds: float = 5.0) -> Callable[[], bool]:
    """Yes for a while: for the steps that have no caller who could say how long to wait."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() < until


def pause() -> None:
    """Between two tries."""
    time.sleep(random.uniform(SHORTEST_PAUSE_S, LONGEST_PAUSE_S))


def _pause_s(ahead: int, since_moved_s: float) -> float:
    """Until the next look: the longer it has lasted already, the less a part of it matters."""
    if ahead:
        return min(max(ahead * _PAUSE_FOR_EACH_AHEAD_S, since_moved_s / 4), _LONGEST_PAUSE_S)
    return min(max(since_moved_s / 16, _SHORTEST_LOOK_S), _LONGEST_PAUSE_S)


def lock_holder(kind: str, file: os.stat_result, byte: int | None = None) -> int | None:
    """Who holds a lock of this kind ("FLOCK", "POSIX") on the file, and on that byte of it; None if nobody knows.

    Only Linux has `/proc/locks`; elsewhere, and for a holder in another container, the answer is None.
    """
    try:
        with open("/proc/locks") as locks:
            found = [line.split() for line in locks]
    except OSError:
        return None
    device_and_inode = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    for words in found:
        if len(words) != 8 or words[1] != kind or words[5] != device_and_inode:
            continue
        if byte is not None and words[6] != str(byte):
            continue
        pid = int(words[4])
        return pid if pid > 0 else None
    return None


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _close_in_child() -> None:
    """A forked child inherits the descriptor and with it the lock, which would outlive the parent."""
    for turn in list(_open_turns):
        turn.close()


os.register_at_fork(after_in_child=_close_in_child)
