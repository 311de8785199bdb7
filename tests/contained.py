"""Runs a command, and kills whatever it has left behind when it has ended or its time is up.

    python tests/contained.py SECONDS COMMAND…

Ends as the command did; with `TIME_UP` if it did not end in time. Processes that have left its session are found on
Linux alone, where this process becomes the parent of all that lose theirs.
"""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

TIME_UP = 124
_SET_CHILD_SUBREAPER = 36


class TimeUp(Exception):
    """Also said when whoever started this wants it to end."""


def main() -> int:
    limit_s, command = float(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, time_is_up)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        status = outcome_of(subprocess.Popen(command).pid)
    except TimeUp:
        status = TIME_UP
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_all_children()
    if status < 0:  # of a signal: whoever waits for us sees the same
        with suppress(OSError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def time_is_up(number: int, frame: FrameType | None) -> None:
    raise TimeUp


def outcome_of(pid: int) -> int:
    """Its exit status. Meanwhile orphans that have ended are buried: a test may wait for them to be gone."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def end_all_children() -> None:
    """Those that they leave behind become our children, and are next."""
    while True:
        for pid in children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children() -> list[int]:
    if sys.platform != "linux":
        listed = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout
        return [int(pid) for pid in listed.split()]
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
