"""Running the store on aiosqlite's thread, through nothing but aiosqlite's public interface."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from coordinator.stores.sqlite_file import CONNECT, reaching, uri_of

if TYPE_CHECKING:
    import aiosqlite

T = TypeVar("T")


class HostedConnection(sqlite3.Connection):
    """A connection that runs functions on its thread.

    aiosqlite documents no call that does that, but it takes a `factory` and passes `executescript` on to the
    connection's thread as it is.
    """

    def executescript(self, sql_script: str | Callable[[sqlite3.Connection], None], /) -> Any:
        return super().executescript(sql_script) if isinstance(sql_script, str) else sql_script(self)


async def host(path: str) -> aiosqlite.Connection:
    """Open the existing file at `path` (see `locate`) on a thread of its own.

    Raises:
        Unavailable: it is not there any more, or cannot be reached.
    """
    import aiosqlite

    with reaching(path):
        return await aiosqlite.connect(uri_of(path), factory=HostedConnection, **CONNECT)


async def run_on(hosted: aiosqlite.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    """`function(connection)`, on the connection's thread, in one hop.

    Cancelling the wait does not stop the function.
    """
    answers: list[T] = []
    await hosted.executescript(lambda connection: answers.append(function(connection)))  # pyright: ignore
    return answers[0]
