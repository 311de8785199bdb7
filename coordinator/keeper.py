"""The parent of one subprocess, in a process of its own. What it is for stands in `supervisor.py`."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from typing import Any

from coordinator.processes import ENDED, Frames, Waiting, descendants, frame, reap, send

AGAIN_US = 20_000  # between two tries to kill, or two looks at a group where nothing tells of its end
_NAP_US = 1_000_000  # the system's timeouts stand still in suspend, so a long wait is made of naps
_GIVE_UP_US = 5_000_000  # after the first SIGKILL


class Keeper:
    """One child, from its start until nothing of it is left."""

    def __init__(self, control: socket.socket, clock: int, *, adopts: bool) -> None:
        self._control = control
        self._clock = clock
        self._adopts = adopts
        self._frames = Frames()
        self._waiting = Waiting(control)
        self._pid = 0
        self._deadline = 0
        self._grace_us = 0
        self._asked = False
        self._abandoned = False
        self._returncode: int | None = None
        self._childless = False
        self._how = ""  # why it ends or has ended; empty while it may run
        self._kill_at = 0
        self._killed = False
        self._reported = False

    def keep(self, stdio: list[int]) -> None:
        request = self._request()
        if request is None or not self._start(request, stdio):
            return
        try:
            while not self._step():
                self._waiting.wait(self._pause_us())
                self._hear()
                self._reap()
            self._report(left=0)
        finally:
            if not self._how:  # only a defect of ours leads here
                self._signal(signal.SIGKILL)

    def _request(self) -> dict[str, Any] | None:
        while data := self._control.recv(65_536):
            for message in self._frames.feed(data):
                return message
        return None

    def _start(self, request: dict[str, Any], stdio: list[int]) -> bool:
        self._deadline = request["deadline"]
        self._grace_us = request["grace_us"]
        try:
            if self._now() >= self._deadline:
                raise TimeoutError(errno.ETIMEDOUT, "its deadline had passed before it was started")
            child = subprocess.Popen(
                request["argv"],
                stdin=stdio[0],
                stdout=stdio[1],
                stderr=stdio[2],
                cwd=request["folder"],
                env=request["environment"],
                start_new_session=True,
            )
        except OSError as error:
            self._say({"failed": error.errno, "text": error.strerror, "file": error.filename})
            return False
        except (ValueError, subprocess.SubprocessError) as error:  # a NUL in an argument, say
            self._say({"failed": errno.EINVAL, "text": str(error), "file": None})
            return False
        finally:
            for descriptor in stdio:
                os.close(descriptor)
        self._pid = child.pid
        child.returncode = 0  # it is reaped here, not there
        self._control.setblocking(False)
        self._say({"started": child.pid})
        return True

    def _step(self) -> bool:
        """Do what is due; true when nothing is left of the child."""
        now = self._now()
        if not self._how and (how := self._why_end(now)):
            self._how = how
            self._kill_at = now + self._grace_us
            if not self._is_gone():
                self._signal(signal.SIGTERM, signal.SIGCONT)  # what is stopped could not obey
        if self._how and not self._is_gone() and now >= self._kill_at:
            self._killed = True
            self._signal(signal.SIGKILL)
            if now >= self._kill_at + _GIVE_UP_US and not self._reported:
                self._report(left=self._left())
        return bool(self._how) and self._is_gone()

    def _why_end(self, now: int) -> str:
        if self._returncode is not None:
            return "itself"
        if self._asked:
            return "asked"
        if self._abandoned:
            return "abandoned"
        return "deadline" if now >= self._deadline else ""

    def _pause_us(self) -> int:
        now = self._now()
        if not self._how:
            return min(self._deadline - now, _NAP_US)
        if self._reported:
            return _NAP_US
        if now >= self._kill_at or not self._adopts:
            return AGAIN_US
        return min(self._kill_at - now, _NAP_US)

    def _hear(self) -> None:
        """Everything that was said, before the deadline is judged: a renewal may wait there."""
        while not self._abandoned:
            try:
                data = self._control.recv(65_536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._abandoned = True
                self._waiting.hear_no_more()
            for message in self._frames.feed(data):
                self._deadline = message.get("renew", self._deadline)
                self._asked = self._asked or "stop" in message

    def _reap(self) -> None:
        ended, self._childless = reap()
        if self._pid in ended:
            self._returncode = os.waitstatus_to_exitcode(ended[self._pid])

    def _is_gone(self) -> bool:
        if self._returncode is None or self._adopts:
            return self._childless  # as all orphans are adopted, nothing is left below either
        try:
            os.killpg(self._pid, 0)
            return False
        except (ProcessLookupError, PermissionError):  # the latter on macOS, when all in it are zombies
            return True

    def _signal(self, *numbers: int) -> None:
        """Signal the group, and all who left it.

        The group's number is its leader's. Once that was reaped it stays taken only while the group has members.
        """
        found = descendants(os.getpid()) if self._adopts else []
        if self._returncode is None or not self._adopts or any(process.group == self._pid for process in found):
            send(os.killpg, self._pid, *numbers)
        for process in found:
            if process.group != self._pid:
                send(os.kill, process.pid, *numbers)

    def _left(self) -> int:
        """How many still run; where that can't be told, that some do."""
        if not self._adopts:
            return 1
        return sum(process.state not in ENDED for process in descendants(os.getpid()))

    def _report(self, left: int) -> None:
        if not self._reported:
            self._reported = True
            self._say({"exited": self._returncode, "how": self._how, "killed": self._killed, "left": left})

    def _say(self, message: dict[str, Any]) -> None:
        with suppress(OSError):  # nobody is there any more
            self._control.send(frame(message))

    def _now(self) -> int:
        return time.clock_gettime_ns(self._clock) // 1_000
