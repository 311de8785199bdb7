"""This process's supervisor: started when the first child is needed, and anew when it has ended."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from io import FileIO
from pathlib import Path

from coordinator.clock import BOOT_CLOCK
from coordinator.descriptors import open_sockets
from coordinator.errors import Unavailable
from coordinator.threads import start_thread

_END_S = 5.0

# Isolated, so that it starts fast and nothing of the user's is imported; ours stands last on the path.
_ROOT = Path(__file__).parents[1]
_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from coordinator.supervisor import main; main()"


class Supervision:
    """What talks to the supervisor. It belongs to one event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._answer: asyncio.Future[int | None] | None = None

    async def hand_over(self, ends: Sequence[socket.socket | FileIO]) -> None:
        """Have a keeper forked that gets these descriptors.

        Raises:
            OSError: the system has no process or descriptor to give.
            Unavailable: no supervisor can be started.
        """
        async with self._turn:
            for _ in range(2):  # the first may have been killed, unnoticed as yet
                answer = await self._ask(ends)
                if answer:
                    raise OSError(answer, os.strerror(answer))
                if answer == 0:
                    return
        raise Unavailable("the supervisor of subprocesses ended as soon as it was started")

    async def close(self) -> None:
        """It stays until the last keeper has ended, and is reaped."""
        process = self._let_go()
        if process is None:
            return
        try:
            await asyncio.to_thread(process.wait, _END_S)
        except subprocess.TimeoutExpired:  # something is left that could not be killed
            start_thread(process.wait, "coordinator-supervisor")

    async def _ask(self, ends: Sequence[socket.socket | FileIO]) -> int | None:
        """Its answer, an errno or 0; None if it has ended."""
        control = self._control or self._begin()
        self._answer = asyncio.get_running_loop().create_future()
        try:
            # One at a time, and answered: so neither this blocks nor too many descriptors are on their way.
            socket.send_fds(control, [b"\0"], [end.fileno() for end in ends])
            return await self._answer
        except OSError:
            self._lose()
            return None
        except asyncio.CancelledError:
            self._lose()  # or its answer would be taken for that to the next
            raise

    def _begin(self) -> socket.socket:
        if not sys.executable:
            raise Unavailable("subprocesses need a supervisor, and there is no Python to run it: see sys.executable")
        control, theirs = open_sockets()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, str(theirs.fileno()), str(BOOT_CLOCK)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # nothing of ours may be kept open by it
                pass_fds=[theirs.fileno()],
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            control.close()
            raise Unavailable(f"the supervisor of subprocesses could not be started: {error}") from error
        finally:
            theirs.close()
        control.setblocking(False)
        asyncio.get_running_loop().add_reader(control.fileno(), self._hear, control)
        self._control = control
        return control

    def _hear(self, control: socket.socket) -> None:
        try:
            data = control.recv(1)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(data[0])

    def _lose(self) -> None:
        """It was killed, or is not to be used any more. Its keepers go on."""
        if (process := self._let_go()) is not None:
            start_thread(process.wait, "coordinator-supervisor")

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        process, self._process = self._process, None
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control.fileno())
            self._control.close()
            self._control = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        return process
