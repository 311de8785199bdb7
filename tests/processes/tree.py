"""A child with descendants, one for each argument; it prints their numbers, its own first, when all are ready.

    group, stubborn group     stays in the child's group; a stubborn one ignores SIGTERM
    left, stubborn left       orphaned by a second fork, in a session of its own

"stays" keeps the child itself until it is stopped, "stubborn stays" whatever comes; else it exits with status 7. Who
hears SIGTERM says so by a file in the folder, `NUMBER.heard`.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main(wanted: list[str]) -> None:
    reading, writing = os.pipe()
    numbers = [os.getpid()]
    for what in wanted:
        if what.endswith("stays"):
            continue
        if os.fork() == 0:
            if what.endswith("left"):
                os.setsid()
                if os.fork():
                    os._exit(0)
            stay(what, writing)
        numbers.append(int(os.read(reading, 20)))
    stays = next((what for what in wanted if what.endswith("stays")), None)
    if stays is None:
        print(*numbers, flush=True)
        sys.exit(7)
    obey(stays)
    print(*numbers, flush=True)
    while True:
        signal.pause()


def stay(what: str, ready: int) -> None:
    obey(what)
    os.write(ready, b"%d" % os.getpid())
    while True:
        signal.pause()


def obey(what: str) -> None:
    def hear(number: int, frame: FrameType | None) -> None:
        with open(f"{os.getpid()}.heard", "w"):
            os._exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if what.startswith("stubborn") else hear)


if __name__ == "__main__":
    main(sys.argv[1:])
