"""Kinds of operations: what a program registers so that agents can preview and apply it."""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import anyio
from msgspec import Raw, Struct

from coordinator import limits
from coordinator.errors import InvalidInput
from coordinator.operations import AttemptRecord, Finding
from coordinator.payloads import JsonValue, Payload, decode, decode_as, encode

A = TypeVar("A", bound=Struct)
T = TypeVar("T")


class Work:
    """What running work knows of itself, and how it tells how far it is.

    Attributes:
        operation_id: the operation's id; the same in every attempt, so that the world can recognise it.
        attempt: number of this attempt.
        fence: an ever growing number, for resources that can refuse an attempt that was replaced.
    """

    def __init__(
        self,
        operation_id: str,
        attempt: int,
        fence: int,
        plan: Raw,
        *,
        make_folder: Callable[[], Path],
        tell: Callable[[bytes], None],
    ) -> None:
        self.operation_id = operation_id
        self.attempt = attempt
        self.fence = fence
        self._plan = plan
        self._make_folder = make_folder
        self._folder: Path | None = None
        self._making = threading.Lock()
        self._tell = tell

    @property
    def artifacts(self) -> Path:
        """A folder of this attempt alone, made when it is first asked for. Its files are recorded upon success."""
        with self._making:
            if self._folder is None:
                self._folder = self._make_folder()
            return self._folder

    @property
    def plan(self) -> Mapping[str, JsonValue]:
        """What was approved. Whoever plans again must not do anything else than this."""
        return decode(self._plan)

    def plan_as(self, type_: type[T]) -> T:
        """The plan as a dataclass, a msgspec struct, a typed dict or a pydantic model."""
        return decode_as(self._plan, type_, "plan")

    def progress(self, progress: Payload) -> None:
        """Tell how far it is, from any thread. At most once a second something is recorded, and then the newest."""
        self._tell(encode("progress", progress))


class Kind(Generic[A]):
    """One kind of operation, run by an async function in this process.

    Attributes:
        name: under which agents ask for it.
        arguments: the type of its arguments.
        time_limit_s: seconds after which an attempt is stopped.
        lease_s: seconds after which an attempt reads as interrupted unless it is renewed; 1 to 86,400.
        grace_s: seconds that stopped work has to end by itself.
        preview_limit_s: seconds that a preview may take.
        check_limit_s: seconds that a check may take.
    """

    name: ClassVar[str]
    arguments: type[A]
    time_limit_s: float = 1_800
    lease_s: float = 60
    grace_s: float = 10
    preview_limit_s: float = 60
    check_limit_s: float = 30

    @abstractmethod
    async def preview(self, arguments: A) -> Payload:
        """What running it would do: a dry run without effect, for a person to approve."""
        raise NotImplementedError

    @abstractmethod
    async def run(self, arguments: A, work: Work) -> Payload | None:
        """Do it, and return the result. When the work is to stop, this is cancelled."""
        raise NotImplementedError

    async def check(self, arguments: A, record: AttemptRecord) -> Finding:
        """Compare the world with what the newest attempt has left in the log. A kind need not have one."""
        raise NotImplementedError


class SubprocessKind(Kind[A]):
    """A kind whose work is a program.

    It reads one JSON object on its standard input (`operation_id`, `attempt`, `fence`, `artifacts`, `arguments`, and
    `plan`, which was approved) and prints JSON lines: `{"progress": {…}}` any number of times, `{"result": {…}}` as the
    last one. Instead of that line it may leave a file `result.json` in its artifact folder. It runs in a session of its
    own, and never outlives its lease: unless that is renewed, it is stopped `grace_s` before the end, and killed at the
    end.
    """

    @abstractmethod
    def command(self, arguments: A, work: Work) -> Sequence[str]:
        """The program and its arguments. Others can read them: they are no place for secrets."""
        raise NotImplementedError

    def environment(self, arguments: A, work: Work) -> Mapping[str, str] | None:
        """The program's environment; None for that of this process."""
        return None

    def folder(self, arguments: A, work: Work) -> Path | None:
        """Where it runs; None for where this process does."""
        return None

    async def run(self, arguments: A, work: Work) -> Payload | None:
        """Never called: the program runs instead."""
        raise NotImplementedError


class Registry:
    """The kinds that this process knows, by name."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, kind: Kind[Any]) -> None:
        """Register a kind; another one of its name is an error.

        Raises:
            InvalidInput: it lacks something, or its name is taken.
        """
        if not isinstance(kind, Kind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("kind", f"must be a Kind, not {limits.kind(kind)}", hint="pass an instance")
        name = limits.name("kind.name", getattr(kind, "name", None))
        arguments: object = getattr(kind, "arguments", None)
        if not (isinstance(arguments, type) and issubclass(arguments, Struct)):
            raise InvalidInput("kind.arguments", "must be a subclass of msgspec.Struct")
        for method in ("preview", "run", "command"):
            if getattr(getattr(kind, method, None), "__isabstractmethod__", False):
                raise InvalidInput(f"kind.{method}", "is missing", hint="a kind has a method of this name")
        limits.seconds("kind.time_limit_s", kind.time_limit_s, 0.001, 10 * 366 * 86_400)
        limits.lease_us("kind.lease_s", kind.lease_s)
        if limits.seconds("kind.grace_s", kind.grace_s, 0, 3_600) > kind.lease_s / 2:
            raise InvalidInput(
                "kind.grace_s",
                "is more than half of lease_s",
                hint="work whose lease is not renewed is stopped so long before its end",
            )
        limits.seconds("kind.preview_limit_s", kind.preview_limit_s, 0.001, 3_600)
        limits.seconds("kind.check_limit_s", kind.check_limit_s, 0.001, 3_600)
        if self._kinds.get(name, kind) is not kind:
            raise InvalidInput("kind.name", f"{name!r} is taken by another kind")
        self._kinds[name] = kind

    def get(self, name: str) -> Kind[Any] | None:
        return self._kinds.get(name)

    def known(self, name: str) -> Kind[Any]:
        """The kind of this name.

        Raises:
            InvalidInput: this process has none.
        """
        kind = self._kinds.get(limits.name("kind", name))
        if kind is None:
            known = ", ".join(sorted(self._kinds)) or "none"
            raise InvalidInput("kind", f"{name!r} is not registered here", hint=f"registered: {known}")
        return kind


def is_cancelled() -> bool:
    """Whether somebody has cancelled the task that runs: a `CancelledError` may also be the code's own doing."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class KindFailed(Exception):
    """What a kind was asked for did not come; this is why, to be put behind its name."""


async def asked(answer: Callable[[], Awaitable[T]], limit_s: float) -> T:
    """What a kind answers, within a limit of time.

    Raises:
        KindFailed: whatever goes wrong with it.
    """
    with anyio.move_on_after(limit_s):
        try:
            return await answer()
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise KindFailed("raised CancelledError, and nobody had cancelled it") from error
        except Exception as error:
            raise KindFailed(f"failed: {limits.words_of(error)}") from error
    raise KindFailed(f"took longer than {limit_s:g} s")


def folder_made(work: Work) -> Path | None:
    """Its artifact folder, if anybody has asked for it."""
    return work._folder  # pyright: ignore[reportPrivateUsage]


def has_check(kind: Kind[Any]) -> bool:
    check: object = type(kind).check  # pyright: ignore[reportUnknownMemberType]
    return check is not Kind.check  # pyright: ignore[reportUnknownMemberType]


def validated(kind: Kind[A], arguments: bytes) -> A:
    """The arguments as the kind wants them.

    Raises:
        InvalidInput: names the field that does not fit.
    """
    return decode_as(arguments, kind.arguments, "arguments")
