"""An attempt's work as a subprocess: what it is told, and what its lines mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from coordinator.answers import AttemptQueued
from coordinator.artifacts import only_files
from coordinator.errors import CoordinatorError, InvalidInput
from coordinator.kinds import SubprocessKind, Work
from coordinator.limits import PAYLOAD_BYTES, listed
from coordinator.payloads import encode
from coordinator.progress import Progress

if TYPE_CHECKING:
    from coordinator.children import Child, Exit, How, Supervised

RESULT_FILE = "result.json"

_STDERR_BYTES = 8_192


class _Line(msgspec.Struct):
    """One line of its standard output; others than these are let pass."""

    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_line = msgspec.json.Decoder(_Line).decode


class ProgramFailed(CoordinatorError):
    """The program ended without a result."""

    code = "program_failed"


class ProgramStopped(CoordinatorError):
    """The program was stopped before its end.

    Attributes:
        why: in words.
        left_behind: more words, if some of its processes could not be ended.
    """

    code = "program_stopped"

    def __init__(self, how: How, left: int) -> None:
        self.why = _WHY.get(how, how)
        self.left_behind = f"; {left} of its processes could not be ended" if left else ""
        super().__init__(self.why + self.left_behind)


_WHY: dict[How, str] = {
    "asked": "it was asked to stop",
    "deadline": "its lease was not renewed in time",
    "abandoned": "the process that kept it ended",
}


class Program:
    """One run of a subprocess kind's program."""

    def __init__(
        self, kind: SubprocessKind[Any], arguments: Any, work: Work, queued: AttemptQueued, progress: Progress
    ) -> None:
        self._kind = kind
        self._arguments = arguments
        self._work = work
        self._queued = queued
        self._progress = progress
        self._child: Child | None = None
        self.stderr: str | None = None

    async def run(self, supervised: Supervised, deadline: Callable[[], int], stop_asked: Callable[[], bool]) -> Raw:
        """Its result.

        Args:
            deadline: when its lease ends by `boot()`; it may have moved while the program was started.
            stop_asked: whether it is to stop; this too.

        Raises:
            ProgramFailed: it has none.
            ProgramStopped: it has none, and was stopped.
            InvalidInput: what it told is no payload.
        """
        command: Iterable[Any] = listed("command", self._kind.command(self._arguments, self._work))
        argv: list[str] = [os.fspath(part) for part in command]
        environment = self._kind.environment(self._arguments, self._work)
        child = await supervised.start(
            argv,
            stdin=self._assignment(),
            folder=str(self._kind.folder(self._arguments, self._work) or Path.cwd()),
            environment=environment,
            deadline=deadline(),
            grace_s=self._kind.grace_s,
            line=self._heard,
        )
        self._child = child
        child.renew(deadline())
        if stop_asked():
            child.stop()
        try:
            exit_ = await child.wait()
        except BaseException:
            child.stop()
            raise
        self.stderr = exit_.stderr[-_STDERR_BYTES:].decode(errors="replace") or None
        return self._result(exit_)

    def renew(self, deadline: int) -> None:
        """From any thread."""
        if self._child is not None:
            self._child.renew(deadline)

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def _assignment(self) -> bytes:
        return msgspec.json.encode(
            {
                "operation_id": self._work.operation_id,
                "attempt": self._work.attempt,
                "fence": self._work.fence,
                "artifacts": str(self._work.artifacts),
                "arguments": self._queued.arguments,
                "plan": self._queued.plan,
            }
        )

    def _heard(self, line: bytes) -> None:
        try:
            progress = _decode_line(line).progress
            if progress is not None:
                self._progress.tell(encode("progress", progress))
        except (*_NO_JSON, InvalidInput):
            return  # whatever else it prints is its own affair

    def _result(self, exit_: Exit) -> Raw:
        """Its result, also if it was stopped: like a function that comes to its end, it knows best that it was done."""
        try:
            return self._told(exit_)
        except (ProgramFailed, InvalidInput):
            if exit_.how == "itself":
                raise
            raise ProgramStopped(exit_.how, exit_.left) from None

    def _told(self, exit_: Exit) -> Raw:
        if exit_.returncode != 0:
            raise ProgramFailed(f"the program ended with exit status {exit_.returncode}{_last_words(self.stderr)}")
        try:
            result = _decode_line(exit_.last_line).result if exit_.last_line else None  # what was cut is no JSON
        except _NO_JSON:
            result = None
        return Raw(encode("result", self._from_file(exit_) if result is None else result))

    def _from_file(self, exit_: Exit) -> object:
        path = self._work.artifacts / RESULT_FILE
        try:
            with open(path, "rb", opener=only_files) as file:
                data = file.read(PAYLOAD_BYTES + 1)
        except FileNotFoundError:
            cut = " (a line was too long, and lost its end)" if exit_.line_cut else ""
            raise ProgramFailed(
                f"the program ended without a result: its last line holds none{cut}, and there is no {RESULT_FILE}"
            ) from None
        except OSError as error:
            raise ProgramFailed(f"{path} cannot be read: {error}") from error
        if len(data) > PAYLOAD_BYTES:
            raise ProgramFailed(f"{path} is larger than {PAYLOAD_BYTES:,} bytes")
        try:
            return msgspec.json.decode(data)
        except _NO_JSON as error:
            raise ProgramFailed(f"{path} is no JSON: {error}") from error


def _last_words(stderr: str | None) -> str:
    """The last line of what it said, which mostly tells why."""
    lines = (stderr or "").strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ""
