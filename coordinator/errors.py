"""What can go wrong. A refusal (`refusals.py`) is a considered "no"; the rest stands here."""

from __future__ import annotations

from typing import ClassVar, Final

AGAINST_DAMAGE: Final = "keep all its files, and restore a backup"


class CoordinatorError(Exception):
    """Everything this library raises on purpose.

    Attributes:
        code: a stable word for programs.
        hint: what the caller can do about it; empty where nothing can be done.
    """

    code: ClassVar[str] = "error"
    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Errors travel between processes, and are copied, with all they say; their classes take other arguments."""
        return _revive, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message


def _revive(kind: type[CoordinatorError], args: tuple[object, ...], state: dict[str, object]) -> CoordinatorError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InvalidInput(CoordinatorError, ValueError):
    """The input never became a command: nothing was asked of the store, nothing is recorded.

    Attributes:
        field: which argument, with the way into it (`payload.tables[3]`).
    """

    code = "invalid_input"

    def __init__(self, field: str, problem: str, *, hint: str = "") -> None:
        super().__init__(f"{field}: {problem}", hint=hint)
        self.field = field


class BadPath(InvalidInput):
    """A path that cannot be reserved."""

    code = "bad_path"


class Busy(CoordinatorError):
    """Somebody else held the turn for too long. The command was certainly not applied."""

    code = "busy"
    hint = "try again; nothing was applied"


def turn_held(holder: int | None, how_long: str, place: str = "") -> Busy:
    """The turn did not come; `holder` is the process that had it, where that is known."""
    by = f" by process {holder}" if holder is not None else ""
    return Busy(f"{place}the turn was held{by} for {how_long}")


class Unavailable(CoordinatorError):
    """The store cannot be used now (disk full, file gone, writer stopped). Nothing was applied."""

    code = "unavailable"


def damaged(what: object) -> Unavailable:
    """Whoever finds something in a workspace that nobody can have written there says so."""
    return Unavailable(f"the workspace is damaged: {what}", hint=AGAINST_DAMAGE)


class OutcomeUnknown(CoordinatorError):
    """The store failed at COMMIT, and could not be asked again: the command was applied once, or not.

    Attributes:
        receipt: repeat the same call with it to learn which.
    """

    code = "outcome_unknown"
    hint = "repeat the call with the same receipt"

    def __init__(self, message: str, *, receipt: str | None = None) -> None:
        super().__init__(message)
        self.receipt = receipt


class Closed(CoordinatorError):
    """The coordinator was closed, or belongs to the parent of this forked process."""

    code = "closed"


class NotSubmitted(CoordinatorError):
    """A block under `claim.working()` ended without submit, fail or release; the attempt was failed."""

    code = "left_without_submit"
    hint = "end the block with submit, fail or release"


class LimitPassed(CoordinatorError):
    """A block under `claim.working()` outran its limit; the attempt was failed."""

    code = "limit_passed"
    hint = "pass a longer limit_s"


class PreviewFailed(CoordinatorError):
    """The dry run of an operation raised, or took too long. Nothing was kept of it."""

    code = "preview_failed"
    hint = "mend what it says, and preview again"


class NotAWorkspace(CoordinatorError):
    """The file is not a database, belongs to another program, or is too damaged to be recognised."""

    code = "not_a_workspace"


class NewerFormat(CoordinatorError):
    """The workspace was written by a newer version of this software, which this one cannot read."""

    code = "newer_format"
    hint = "install the newer version of async-coordinator here too"


def newer_format(found: int, known: int) -> NewerFormat:
    """What a process says that finds a workspace taken over by newer software."""
    return NewerFormat(f"this workspace has format {found}, this software reads up to {known}")


class UnsupportedPlatform(CoordinatorError):
    """This operating system or file system lacks what the store needs to be trusted."""

    code = "unsupported_platform"


class UnsupportedEventLoop(CoordinatorError):
    """Only asyncio (and uvloop) can run this library, and each coordinator belongs to the loop it was opened in."""

    code = "unsupported_event_loop"
    hint = "run under asyncio: anyio.run(main) does by default"
