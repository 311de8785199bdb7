"""Keeps subprocesses from outliving their deadlines, in processes that survive the one they work for.

    python -m coordinator.supervisor SOCKET CLOCK

The supervisor forks a keeper for each child. The keeper starts the child in a session of its own, and ends the child's
whole process group (SIGTERM, then SIGKILL after the grace) when it is asked to, when the deadline passes unrenewed, or
when its socket closes, which is how it hears of its user's death. What a child leaves behind when it exits is ended
likewise. On Linux a keeper also adopts the descendants that left the group (by `setsid`, say), so that they are found
and ended too; and should a keeper be killed, the supervisor adopts and kills what it kept.

What this cannot do: elsewhere than on Linux a descendant that left its group is not found. Nowhere is anything found
that a child had another service start (cron, systemd, a container engine). What may not be signalled (a program of
another user's), or does not die of SIGKILL (it waits for a disk that is gone), is reported as left. And whoever kills
or stops a keeper with its supervisor takes away the protection.

All times are µs on the clock whose number it is given: the one that counts suspend.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from contextlib import suppress

from coordinator.keeper import AGAIN_US, Keeper
from coordinator.processes import Waiting, adopt_orphans, descendants, reap, send

STDIO = 3


class Supervisor:
    """Forks keepers as long as its socket is open, and stays until all have ended."""

    def __init__(self, control: socket.socket, clock: int) -> None:
        self._control = control
        self._clock = clock
        self._adopts = adopt_orphans()
        self._keepers: set[int] = set()
        self._orphaned = False
        self._open = True
        self._waiting = Waiting(control)

    def supervise(self) -> None:
        while self._open or self._keepers or self._orphaned:
            if self._waiting.wait(AGAIN_US if self._orphaned else None):
                self._serve()
            self._reap()

    def _serve(self) -> None:
        """One child is asked for: its keeper gets the descriptors, the answer is an errno, or 0."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1, 1 + STDIO)
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._open = False
            self._waiting.hear_no_more()
            return
        failed = 0
        try:
            if len(descriptors) == 1 + STDIO:
                self._fork(descriptors)
            else:
                failed = errno.EMFILE
        except OSError as error:
            failed = error.errno or errno.EAGAIN
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(OSError):
            self._control.send(bytes([failed]))

    def _fork(self, descriptors: list[int]) -> None:
        if pid := os.fork():
            self._keepers.add(pid)
            return
        status = 1
        try:
            self._control.close()
            self._waiting.close()
            adopts = self._adopts and adopt_orphans()
            with socket.socket(fileno=descriptors[0]) as control:
                Keeper(control, self._clock, adopts=adopts).keep(descriptors[1:])
            status = 0
        finally:
            os._exit(status)

    def _reap(self) -> None:
        ended, childless = reap()
        defects = [pid for pid in self._keepers & ended.keys() if ended[pid] != 0]
        self._keepers -= ended.keys()
        self._orphaned = (self._orphaned or bool(defects)) and not childless
        if self._orphaned and self._adopts:
            orphans = descendants(os.getpid(), spared=frozenset(self._keepers))
            self._orphaned = bool(orphans)
            for orphan in orphans:
                send(os.kill, orphan.pid, signal.SIGKILL)


def _wait_for_the_end_instead(number: int, frame: object) -> None:
    """A handler, since what is ignored would be ignored by the children too."""


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, _wait_for_the_end_instead)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # the thread that started this may have blocked some
    with socket.socket(fileno=int(sys.argv[1])) as control:
        Supervisor(control, int(sys.argv[2])).supervise()


if __name__ == "__main__":
    main()
