"""The files of a workspace in use: the database, SQLite's log beside it, and the log's index in shared memory.

SQLite does not notice when one of them is removed or replaced. A process that has them open goes on with what has no
name any more, and one that opens the workspace now makes new ones: each acknowledges what the other will never see.
"""

from __future__ import annotations

import errno
import os

from coordinator.errors import Unavailable
from coordinator.forks import INSTEAD
from coordinator.stores.system_errors import unavailable
from coordinator.stores.turn import lock_holder, patience, pause

_SHARED_LOCK_BYTE = 0x40000002
"""Where in the database SQLite keeps a lock for as long as a connection is open."""

_PATIENCE_S = 1.0
_CLOSE_ALL = "close every program that uses the workspace, and open it anew"


_inherited: set[tuple[int, int]] = set()
"""The databases that were open when this process was forked. See `refuse_inherited`."""


def inherit(known: OpenFiles) -> None:
    """In a forked child: what the parent had open."""
    if known.database is not None:
        _inherited.add(known.database)


def refuse_inherited(path: str) -> None:
    """A child that was forked while its process had a database open must never open that database itself.

    SQLite keeps a list of its locks in memory, and the child has a copy of it: SQLite believes there that the locks are
    held, but the system gave them to the parent alone. So the parent would take itself for the last user, and remove
    the log under the child; and the child would wait for a lock that it believes to hold itself.
    (https://www.sqlite.org/howtocorrupt.html, "Carrying an open database connection across a fork")

    Raises:
        Unavailable: that is so.
    """
    if _inherited and _identity(path) in _inherited:
        raise Unavailable(
            f"{path} was open when this process was forked",
            hint=INSTEAD,
        )


class OpenFiles:
    """The three files as they were when a connection opened them; to be made while it reads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._beside = _beside(path)
        self._known = [_identity(path), *map(_identity, self._beside)]

    @property
    def database(self) -> tuple[int, int] | None:
        """Device and inode."""
        return self._known[0]

    def check(self) -> None:
        """Raises `Unavailable` unless all are still where they were; what was only moved away can be put back."""
        if (found := _identity(self._path)) is None:
            raise unavailable(self._path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        if found != self._known[0]:
            raise Unavailable(f"{self._path} was replaced by another file", hint="put the file back, or open it anew")
        for path, known in zip(self._beside, self._known[1:], strict=False):
            if _identity(path) != known:
                raise Unavailable(f"{path} was removed or replaced while it was in use", hint=_CLOSE_ALL)

    def closed(self) -> None:
        """Whoever closes last removes those beside the database."""
        del self._known[1:]


def check_beside(path: str) -> None:
    """To be called before a connection is opened, which would make anew what is missing beside the database.

    Somebody who is just opening or closing it is waited for. Who has it open can be known on Linux only.

    Raises:
        Unavailable: a file is missing although somebody uses the workspace.
    """
    still_wanted = patience(_PATIENCE_S)
    while (missing := _missing(path)) and os.path.exists(path):
        user = lock_holder("POSIX", os.stat(path), _SHARED_LOCK_BYTE)
        if user is None:
            return
        if not still_wanted():
            raise Unavailable(
                f"{missing} is missing, but process {user} uses the workspace",
                hint="have it close the workspace first: what it wrote last may be nowhere else",
            )
        pause()


def _beside(path: str) -> tuple[str, str]:
    return path + "-wal", path + "-shm"


def _missing(path: str) -> str | None:
    return next((beside for beside in _beside(path) if not os.path.exists(beside)), None)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unavailable(path, error) from error
    return found.st_dev, found.st_ino
