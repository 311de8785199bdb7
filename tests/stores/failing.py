"""A connection that fails where a test wants it to."""

from __future__ import annotations

import sqlite3
from typing import Any


class FailingConnection(sqlite3.Connection):
    """Fails at the statement `at`, before or after doing it, and then no more."""

    at = ""
    done_first = False
    error_code = sqlite3.SQLITE_IOERR

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if not self.at or not sql.startswith(self.at):
            return super().execute(sql, parameters)
        self.at = ""
        if self.done_first:
            super().execute(sql, parameters)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self.error_code
        raise error
