"""Subprocesses that never outlive their deadline: the asyncio side of `supervisor.py`.

A child is the leader of a session of its own; its parent is a keeper, which ends it with all it started when it is
asked to, when the deadline passes unrenewed, or when this process is gone, killed or only its loop hung. Deadlines are
those of `SystemClock.boot()`. Umask and limits of resources are those that this process had when it started its first
child. What the protection can't do stands in `supervisor.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import Any, Literal

from coordinator.certain import certainly
from coordinator.descriptors import Ends, open_pipe, open_sockets
from coordinator.errors import Closed, Unavailable
from coordinator.pipes import Drain, Feed, Lines, Tail
from coordinator.processes import ENDED, SEES_PROCESSES, Frames, frame, processes
from coordinator.supervision import Supervision

_TRIES_TO_KILL = 100
_KILL_AGAIN_S = 0.01

How = Literal["itself", "asked", "deadline", "abandoned"]


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended, and the last it said.

    Attributes:
        returncode: as `subprocess` has it: minus the signal's number if one killed it; None if nobody could tell.
        how: "itself", or why it was stopped: it was "asked" to end, its "deadline" passed, or it was "abandoned" by
            this process or by its keeper.
        killed: whether SIGKILL was needed, for the child or for what it left behind.
        left: how many processes could not be ended; they belong to somebody else, or hang in the system.
        last_line: the last line of stdout that is not blank, whether or not a newline ended it.
        line_cut: whether a line of stdout was too long, and lost its end.
        stderr: its last 64 KiB.
    """

    returncode: int | None
    how: How
    killed: bool
    left: int
    last_line: bytes
    line_cut: bool
    stderr: bytes


class Child:
    """A subprocess that was started. `renew` and `stop` may be called from any thread, and do no harm after its end."""

    def __init__(
        self,
        control: socket.socket,
        stdin: FileIO,
        stdout: FileIO,
        stderr: FileIO,
        data: bytes,
        line: Callable[[bytes], None],
    ) -> None:
        self.pid = 0
        self._loop = loop = asyncio.get_running_loop()
        self._control = control
        self._sending = threading.Lock()  # so that no other thread writes to a number that somebody else now has
        self._frames = Frames()
        self._started: asyncio.Future[int] = loop.create_future()
        self._ended: asyncio.Future[Exit] = loop.create_future()
        self._asked = False
        self._report: dict[str, Any] | None = None
        self._lines = Lines(line)
        self._tail = Tail()
        self._draining = 2
        self._stdout = Drain(loop, stdout, self._lines, self._drained)
        self._stderr = Drain(loop, stderr, self._tail, self._drained)
        self._stdin = Feed(loop, stdin, data, stdin.close)
        control.setblocking(False)
        loop.add_reader(control.fileno(), self._hear)

    async def wait(self) -> Exit:
        """Its end, and the end of what it started. Cancelling this does not stop it."""
        await asyncio.wait([self._ended])
        return self._ended.result()

    def renew(self, deadline: int) -> None:
        """It may run until `boot()` reaches `deadline`."""
        self._say({"renew": deadline})

    def stop(self) -> None:
        """End it with all it started: SIGTERM, and SIGKILL after the grace."""
        self._asked = True
        if not self._say({"stop": True}):
            self.abandon()

    def abandon(self) -> None:
        """As `stop`, also while its keeper does not read what it is told."""
        with self._sending, suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def when_ended(self, call: Callable[[Child], object]) -> None:
        self._ended.add_done_callback(lambda _: call(self))

    async def begin(self, request: dict[str, Any]) -> None:
        """Have its keeper start it; returns when the program runs.

        Raises:
            OSError: it could not be started.
            Unavailable: its keeper has ended.
        """
        Feed(self._loop, self._control, frame(request), lambda: None)
        self.pid = await self._started

    def _say(self, message: dict[str, Any]) -> bool:
        """Whether its keeper will read it, or has gone."""
        data = frame(message)
        with self._sending:
            try:
                if self._control.send(data) < len(data):  # half a message cannot be taken back; Linux sends all or none
                    self._control.shutdown(socket.SHUT_WR)
            except BlockingIOError:
                return False
            except OSError:
                pass
        return True

    def _hear(self) -> None:
        try:
            data = self._control.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for message in self._frames.feed(data):
            if "started" in message:
                self.pid = message["started"]
                self._settle_start(None)
            elif "failed" in message:
                self._settle_start(OSError(message["failed"], message["text"], message["file"]))
                self._end({"exited": None, "how": "abandoned", "killed": False, "left": 0})
            else:
                shut_off = self._asked and message["how"] == "abandoned"  # as it had no room for the request
                self._end({**message, "how": "asked"} if shut_off else message)
        if not data and self._report is None:
            self._lose()

    def _lose(self) -> None:
        """Its keeper was killed. Then the supervisor kills what it kept, and here at least its group is killed."""
        self._settle_start(Unavailable("the keeper of a subprocess ended before it had started it"))
        self._close_control()
        self._kill(_TRIES_TO_KILL)

    def _kill(self, tries: int) -> None:
        left = _kill_group(self.pid) if self.pid else 0
        if left and tries:
            self._loop.call_later(_KILL_AGAIN_S, self._kill, tries - 1)
        else:
            self._end({"exited": None, "how": "abandoned", "killed": self.pid != 0, "left": left})

    def _settle_start(self, error: Exception | None) -> None:
        if self._started.done():
            return
        if error is None:
            self._started.set_result(self.pid)
        else:
            self._started.set_exception(error)

    def _end(self, report: dict[str, Any]) -> None:
        self._report = report
        self._close_control()
        self._stdin.stop()
        self._stdout.finish()
        self._stderr.finish()
        self._settle_end()

    def _close_control(self) -> None:
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control.fileno())
            self._loop.remove_writer(self._control.fileno())
            with self._sending:
                self._control.close()

    def _drained(self) -> None:
        """Called by both drains, each at its end: which may come long before the child's."""
        self._draining -= 1
        self._settle_end()

    def _settle_end(self) -> None:
        if self._draining or self._report is None or self._ended.done():
            return
        self._ended.set_result(
            Exit(
                returncode=self._report["exited"],
                how=self._report["how"],
                killed=self._report["killed"],
                left=self._report["left"],
                last_line=self._lines.last,
                line_cut=self._lines.cut,
                stderr=self._tail.kept(),
            )
        )


class Supervised:
    """The subprocesses of one coordinator process. Its supervisor is started with the first child."""

    def __init__(self) -> None:
        self._supervision = Supervision()
        self._starting: set[asyncio.Task[Child]] = set()
        self._children: set[Child] = set()
        self._closed = False

    async def start(
        self,
        argv: Sequence[str | bytes | os.PathLike[str]],
        *,
        stdin: bytes = b"",
        folder: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        deadline: int,
        grace_s: float,
        line: Callable[[bytes], None],
    ) -> Child:
        """Start a program that is ended, with all it starts, when `boot()` reaches `deadline` unless renewed.

        A caller that is cancelled meanwhile leaves no child: it is stopped.

        Args:
            argv: the program and its arguments; no shell.
            stdin: what it can read from its stdin, which then ends.
            folder: where it runs; else in this process's folder.
            environment: all of its environment; else this process's.
            deadline: µs on the clock of `SystemClock.boot()`.
            grace_s: seconds from SIGTERM until SIGKILL.
            line: called on the loop for each line of its stdout, without the newline, at most 1 MiB of it. It must be
                quick. What it raises is logged.

        Raises:
            TypeError, ValueError: an argument, or something in the environment, is no text, or there is no program.
            OSError: it could not be started; TimeoutError if the deadline had passed before.
            Unavailable: there is no supervisor, and none can be started.
            Closed: this was closed.
        """
        given = os.environ if environment is None else environment
        request = {  # all of it is looked at here: what the keeper cannot read would leave it waiting
            "argv": [os.fsdecode(argument) for argument in argv],
            "folder": os.path.abspath(os.fsdecode(folder) if folder is not None else os.getcwd()),
            "environment": {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()},
            "deadline": deadline,
            "grace_us": round(grace_s * 1_000_000),
        }
        if not request["argv"]:
            raise ValueError("there is no program to start")
        if self._closed:
            raise _closed()
        task = asyncio.ensure_future(self._start(request, stdin, line))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_stop_unwanted)
            current = asyncio.current_task()
            if self._closed and task.cancelled() and current is not None and not current.cancelling():
                raise _closed() from None
            raise

    async def close(self) -> None:
        """Stop all that runs, wait for its end, and let the supervisor go."""
        self._closed = True
        await certainly(self._close())

    async def _close(self) -> None:
        starting = list(self._starting)
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        children = list(self._children)
        for child in children:
            child.stop()
        await asyncio.gather(*(child.wait() for child in children))
        await self._supervision.close()

    async def _start(self, request: dict[str, Any], data: bytes, line: Callable[[bytes], None]) -> Child:
        with Ends() as ours, Ends() as theirs:
            control = ours.take(open_sockets(), theirs)
            reading, writing = open_pipe()
            stdin = ours.take((writing, reading), theirs)
            stdout = ours.take(open_pipe(), theirs)
            stderr = ours.take(open_pipe(), theirs)
            await self._supervision.hand_over(theirs.ends)
            child = Child(control, stdin, stdout, stderr, data, line)
            ours.keep()
        self._children.add(child)
        child.when_ended(self._children.discard)
        try:
            await child.begin(request)
        except asyncio.CancelledError:
            child.abandon()
            raise
        return child


def _kill_group(leader: int) -> int:
    """How many are left in it; where that can't be told, whether any is."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # the latter on macOS, when all in it are zombies
        return 0
    if not SEES_PROCESSES:
        return 1
    return sum(process.group == leader and process.state not in ENDED for process in processes())


def _closed() -> Closed:
    return Closed("no subprocess is started any more")


def _stop_unwanted(task: asyncio.Task[Child]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().stop()
