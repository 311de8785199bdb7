"""A child's stdin, stdout and stderr, seen from an event loop: fed and drained throughout, in bounded memory.

Each wake moves a bounded piece, so that a child that floods its output starves nothing else on the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from io import FileIO
from socket import socket
from typing import Final, Protocol

log = logging.getLogger("coordinator")

MAX_LINE: Final = 1024 * 1024
TAIL: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_LINES_A_TURN: Final = 256
_MOST_AT_THE_END: Final = 4 * MAX_LINE  # more than any pipe holds


class Sink(Protocol):
    def feed(self, data: bytes) -> None: ...

    def work(self) -> bool:
        """Do a bounded part of what was fed; whether there is more to do."""
        ...

    def end(self) -> None: ...


class Lines:
    """Cuts what it is fed into lines, and calls `line` for each, without its newline."""

    def __init__(self, line: Callable[[bytes], None], limit: int = MAX_LINE) -> None:
        self._line = line
        self._limit = limit
        self._rest = bytearray()
        self._searched = 0
        self._skipping = False  # the rest of a line that was cut
        self.last = b""  # the last line that is not blank
        self.cut = False  # whether any line was longer than the limit

    def feed(self, data: bytes) -> None:
        self._rest += data

    def work(self) -> bool:
        for _ in range(_LINES_A_TURN):
            end = self._rest.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._rest)
                if self._skipping or self._searched > self._limit:
                    self._take(self._searched)
                    self._skipping = True
                return False
            self._take(end)
            del self._rest[:1]
            self._skipping = False
        return True

    def end(self) -> None:
        """What no newline ends is a line too."""
        if self._rest:
            self._take(len(self._rest))

    def _take(self, length: int) -> None:
        line = bytes(self._rest[: min(length, self._limit)])
        del self._rest[:length]
        self._searched = 0
        if self._skipping:
            return
        self.cut = self.cut or length > self._limit
        if line.strip():
            self.last = line
        try:
            self._line(line)
        except Exception:
            log.exception("a line of a subprocess's output could not be handled")


class Tail:
    """Keeps the end of what it is fed."""

    def __init__(self, length: int = TAIL) -> None:
        self._length = length
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        self._kept += data
        del self._kept[: -self._length]

    def work(self) -> bool:
        return False

    def end(self) -> None:
        pass

    def kept(self) -> bytes:
        return bytes(self._kept)


class Drain:
    """Reads a pipe into a sink until it ends, or after `finish` until it is empty."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: FileIO, sink: Sink, ended: Callable[[], None]) -> None:
        self._loop = loop
        self._pipe = pipe
        self._sink = sink
        self._ended = ended
        self._at_end = False
        self._budget: int | None = None  # bytes still to be read once `finish` was called
        self._waiting = False  # for the pipe; otherwise a turn of ours is on its way
        os.set_blocking(pipe.fileno(), False)
        self._wait()

    def finish(self) -> None:
        """Nobody of ours writes any more: take what is there, and do not wait for who else may hold the other end."""
        self._budget = _MOST_AT_THE_END
        if self._waiting:
            self._stop_waiting()
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._pipe.fileno(), _PIECE)
        except BlockingIOError:
            if self._budget is not None:
                self._end()
            return
        except OSError:
            data = b""
        if data:
            self._sink.feed(data)
            if self._budget is not None:
                self._budget -= len(data)
        else:
            self._at_end = True
        self._work()

    def _work(self) -> None:
        if self._sink.work():
            self._stop_waiting()
            self._loop.call_soon(self._work)
        elif self._at_end or (self._budget is not None and self._budget <= 0):
            self._end()
        elif self._budget is not None:
            self._loop.call_soon(self._read)
        else:
            self._wait()

    def _end(self) -> None:
        self._stop_waiting()
        self._sink.end()
        self._pipe.close()
        self._ended()

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_reader(self._pipe.fileno(), self._read)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_reader(self._pipe.fileno())


class Feed:
    """Writes all of `data`, as fast as the other side reads, or until it reads no more."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, end: FileIO | socket, data: bytes, ended: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._end = end
        self._rest = memoryview(data)
        self._ended = ended
        self._open = True
        os.set_blocking(end.fileno(), False)
        loop.add_writer(end.fileno(), self._write)

    def stop(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_writer(self._end.fileno())
            self._rest = memoryview(b"")
            self._ended()

    def _write(self) -> None:
        try:
            written = os.write(self._end.fileno(), self._rest[:_PIECE])
        except BlockingIOError:
            return
        except OSError:
            written = len(self._rest)  # it reads no more
        self._rest = self._rest[written:]
        if not self._rest:
            self.stop()
