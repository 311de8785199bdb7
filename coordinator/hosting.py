"""Where a store's threads live: the writer's, the reader's, and those for once."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from coordinator.certain import Once, certainly
from coordinator.errors import InvalidInput, Unavailable, turn_held
from coordinator.stores.interface import Snapshot, Store, TurnTaken
from coordinator.threads import aside, start_thread, starting

if TYPE_CHECKING:
    import sqlite3

    import aiosqlite

T = TypeVar("T")


class Served(Protocol):
    """What lives on the writer's thread."""

    def prepare(self, store: Store) -> None:
        """Make the store ready; opening fails if this does."""
        ...

    def run(self, store: Store) -> None:
        """Serve until closed."""
        ...

    async def settle(self) -> None:
        """Wait until all that was asked of `run` is answered, and its answers were heard or undone."""
        ...

    def close(self) -> None:
        """Have `run` finish what waits, and return; from any thread."""
        ...


class Host(Protocol):
    """One engine's threads for one coordinator."""

    async def open(self, served: Served, still_wanted: Callable[[], bool]) -> None:
        """Open the store, creating it if need be, and serve it on the writer's thread until `served` is closed."""
        ...

    async def read(self, work: Callable[[Snapshot], T]) -> T:
        """Run a short read on the reader's thread."""
        ...

    async def back_up(self, target: str) -> None:
        """Copy the workspace to a new file."""
        ...

    @property
    def watch(self) -> Callable[[], Store] | None:
        """Opens what notices other processes' commits, or None where there can be none."""
        ...

    @property
    def key(self) -> bytes:
        """The workspace's secret."""
        ...

    @property
    def artifacts(self) -> str | None:
        """The folder for the files of operations, unless another is named; None where nothing outlives the process."""
        ...

    @property
    def opened(self) -> bool:
        """Whether it is being served."""
        ...

    def orphaned(self) -> None:
        """The program ends without closing: let go of the threads, from the writer's."""
        ...

    async def close(self) -> None:
        """Wait until nothing is served any more, and close everything."""
        ...


class SqliteHost:
    """Two connections of aiosqlite's: the writer lives on the thread of the one, reads hop to that of the other."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._process = os.getpid()
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection | None = None
        self._reading: Any = None
        self._serving: asyncio.Task[None] | None = None  # held, or it might be collected
        self._ended: asyncio.Future[None] | None = None
        self._close_once = Once(self._close)
        self.key = b""
        self.opened = False

    @property
    def artifacts(self) -> str | None:
        return self._path + ".artifacts"

    async def open(self, served: Served, still_wanted: Callable[[], bool]) -> None:
        from coordinator.stores.hosted import host, run_on
        from coordinator.stores.sqlite import SqliteReader
        from coordinator.stores.sqlite_file import locate, prepare

        self._close_once = Once(self._close)  # an earlier attempt to open it may have failed
        path = self._path = locate(self._path)  # the folder may be changed while it is open
        with _busy(path), starting():
            await asyncio.to_thread(prepare, path, still_wanted)
            self._writer = await host(path)
            self._reader = await host(path)
            self._reading = await run_on(self._reader, lambda connection: SqliteReader(path, connection))
            loop = asyncio.get_running_loop()
            opened, self._ended = loop.create_future(), loop.create_future()
            self._serving = asyncio.create_task(self._serve(self._writer, served, opened))
            await opened

    async def _serve(self, writer: aiosqlite.Connection, served: Served, opened: asyncio.Future[None]) -> None:
        """Stay with what is served. A program that ends without closing cancels this task: then all is closed."""
        from coordinator.stores.hosted import run_on

        try:
            await run_on(writer, lambda connection: self._serve_here(connection, served, opened))
        except asyncio.CancelledError:
            if os.getpid() == self._process:  # a forked child has none of the threads to wait for
                await Once(lambda: self._leave(served))()
            raise

    async def _leave(self, served: Served) -> None:
        if self.opened:
            await served.settle()  # a claim whose caller is gone is still given back
        served.close()
        await self.close()

    def _serve_here(self, connection: sqlite3.Connection, served: Served, opened: asyncio.Future[None]) -> None:
        """On the writer's thread, from opening to the end. Whoever waits for `opened` or the end hears of it."""
        from coordinator.stores.sqlite import SqliteStore

        loop = opened.get_loop()
        try:
            store = SqliteStore(self._path, connection)
            try:
                served.prepare(store)
                self.key = store.key
                self.opened = True
                _from_thread(loop, opened, None)
                served.run(store)
            finally:
                self.opened = False
                store.close()
        except BaseException as error:
            _from_thread(loop, opened, error)
        finally:
            _from_thread(loop, self._ended, None)

    async def read(self, work: Callable[[Snapshot], T]) -> T:
        from coordinator.stores.hosted import run_on

        reading = self._reading
        if self._reader is None or reading is None:
            raise Unavailable("the reader is not open")
        return await run_on(self._reader, lambda connection: reading.read(work))

    async def back_up(self, target: str) -> None:
        from coordinator.stores.backup import back_up

        await certainly(asyncio.to_thread(back_up, self._path, target))

    @property
    def watch(self) -> Callable[[], Store] | None:
        return self._open_reader

    def orphaned(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.stop()  # pyright: ignore[reportUnknownMemberType]

    async def close(self) -> None:
        await self._close_once()

    async def _close(self) -> None:
        """May be begun anew: what a thread was told to do is done, although nobody waits for it any more."""
        from coordinator.stores.hosted import run_on

        if self._ended is not None:
            await asyncio.wait([self._ended])
        reading, self._reading = self._reading, None
        try:
            if self._reader is not None and reading is not None:
                await run_on(self._reader, lambda connection: reading.close())
        finally:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    await connection.close()

    def _open_reader(self) -> Any:
        from coordinator.stores.sqlite import SqliteReader

        return SqliteReader(self._path)


class MemoryHost:
    """A store in memory, and one thread for its writer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.key = store.key
        self.opened = False
        self.artifacts = None
        self._thread: threading.Thread | None = None

    async def open(self, served: Served, still_wanted: Callable[[], bool]) -> None:
        served.prepare(self._store)
        self._thread = start_thread(partial(served.run, self._store), "coordinator-memory")
        self.opened = True

    async def read(self, work: Callable[[Snapshot], T]) -> T:
        return self._store.read(work)

    async def back_up(self, target: str) -> None:
        raise Unavailable("a workspace in memory has no file to copy")

    @property
    def watch(self) -> Callable[[], Store] | None:
        return None

    def orphaned(self) -> None:
        pass

    async def close(self) -> None:
        if self._thread is not None:
            await aside(self._thread.join)


@contextmanager
def _busy(path: str) -> Generator[None]:
    try:
        yield
    except TurnTaken as taken:
        raise turn_held(taken.holder, "too long", f"{path}: ") from taken


def _from_thread(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[None] | None, error: BaseException | None
) -> None:
    """Settle a future from another thread; where its loop is closed, nobody waits for it any more."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, future, error)


def _settle(future: asyncio.Future[None] | None, error: BaseException | None) -> None:
    if future is None or future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def host_for(path_or_url: str) -> Host:
    """The host for a URL (`sqlite:PATH`, `memory:`) or a bare path.

    Raises:
        InvalidInput: it looks like a URL, and is none of ours.
    """
    found = _SCHEME.match(path_or_url)
    scheme = found[1].lower() if found else ""
    if path_or_url.lower() == "memory:":
        from coordinator.stores.memory import MemoryStore

        return MemoryHost(MemoryStore())
    if scheme and scheme != "sqlite":
        raise _unfit(f"no store is known for {scheme}:", f"a file of this name is ./{path_or_url}")
    path = _path_of(path_or_url) if scheme else path_or_url
    if path == ":memory:" or (scheme and os.path.basename(path) == ":memory:"):
        hint = "write memory: for a workspace in memory, ./:memory: for the file"
        raise _unfit(f'"{path_or_url}" would be a file of that name', hint)
    return SqliteHost(path)


def _path_of(url: str) -> str:
    """The path that a URL names, in the bytes that it says."""
    rest = url.partition(":")[2]
    if "?" in rest or "#" in rest:
        raise _unfit("holds a query or a fragment, which mean nothing here", "in a file's name write %3F and %23")
    path = os.fsdecode(unquote_to_bytes(os.fsencode(rest.removeprefix("//"))))
    if not path:
        raise _unfit("names no file", "")
    if "\0" in path:
        raise _unfit("holds a NUL", "")
    return path


def _unfit(problem: str, hint: str) -> InvalidInput:
    return InvalidInput("path_or_url", problem, hint=hint or "pass a path, sqlite:PATH or memory:")


# Two letters at least: one and a colon is rather a file.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)
