"""Bad days on demand: a worker that is slow, or that dies at a named point. No ordering system in use has this."""

from __future__ import annotations

import os
import signal
import sqlite3
from typing import Literal, TypeAlias

Point: TypeAlias = Literal["before the draft", "after the draft", "after the file"]


def rehearse(connection: sqlite3.Connection, *, pause_s: float | None = None, dies: Point | None = None) -> None:
    """Have workers pause so long after each page, as before if None, and have one of them die at a point."""
    connection.execute("UPDATE rehearsal SET pause_s = coalesce(?, pause_s), dies = ?", (pause_s, dies))


def pause_s(connection: sqlite3.Connection) -> float:
    return connection.execute("SELECT pause_s FROM rehearsal").fetchone()[0]


def die_if_rehearsed(connection: sqlite3.Connection, point: Point) -> None:
    """Once: the attempt after this one lives."""
    if connection.execute("UPDATE rehearsal SET dies = NULL WHERE dies = ?", (point,)).rowcount == 1:
        os.kill(os.getpid(), signal.SIGKILL)
