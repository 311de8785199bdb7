"""Keeping the write-ahead log small, in the one way that is safe with every SQLite.

Up to 3.51.2 a checkpoint can meet a writer that starts the log anew, and corrupt the file. A checkpoint cannot be
told to lock writers out, so a second connection does it while the first one holds the write lock, and changes nothing.
"""

from __future__ import annotations

import sqlite3
from time import sleep
from typing import Final

from coordinator.stores.sqlite_file import connect
from coordinator.stores.turn import Turn

_WANTED_PAGES: Final = 1000
_TOO_MANY_PAGES: Final = 2 * _WANTED_PAGES
_WAITS_S: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
_FIRST_ROWS: Final = 400
_FEWEST_ROWS: Final = 100
_MOST_ROWS: Final = 50_000
_ROWS_OF_A_COMMIT: Final = 3
_NOTED_ROWS: Final = 50


class Checkpoints:
    """Counts what all processes write, and checkpoints when about 4 MB have gathered in the log.

    SQLite keeps the length of the log to itself, and the file does not shrink when the log starts anew (letting it
    shrink costs a third of the commits, because each then changes the file's length). So rows are counted, in the
    note of the turn, and each checkpoint tells how many pages they came to.
    """

    def __init__(self, path: str, turn: Turn, writer: sqlite3.Connection) -> None:
        self._turn = turn
        self._writer = writer
        self._helper = connect(path)
        self._unnoted = 0
        self._too_many = _TOO_MANY_PAGES
        self.failure: sqlite3.Error | None = None

    def count(self, rows: int) -> bool:
        """Before a commit of so many rows: whether a checkpoint is due after it. Only with the turn held."""
        self._unnoted += rows + _ROWS_OF_A_COMMIT
        if self._unnoted < _NOTED_ROWS:
            return False
        since, due = self._turn.read_note()
        since += self._unnoted
        self._unnoted = 0
        self._turn.write_note(since, due)
        return since >= (due or _FIRST_ROWS)

    def run(self) -> bool:
        """Move the log into the database; returns whether all of it arrived. Only with the turn held.

        A checkpoint that fails loses nothing: the next one does it all again. Why it failed is kept in `failure`.
        """
        since, due = self._turn.read_note()
        whole = False
        self.failure = None
        try:
            pages, moved = self._checkpoint()
            fitting = since * _WANTED_PAGES // max(pages, 1)
            due = min(max(fitting, _FEWEST_ROWS), 2 * (due or _FIRST_ROWS), _MOST_ROWS)
            whole = 0 <= pages == moved
            if pages > self._too_many:
                started = self._start_anew(pages)
                whole = whole or started
                # A reader that stays is not waited for again before the log has doubled.
                self._too_many = _TOO_MANY_PAGES if started else 2 * pages
        except sqlite3.Error as error:
            self.failure = error
        self._turn.write_note(0, due)
        return whole

    def _start_anew(self, pages: int) -> bool:
        """Hold all writers up until the log of so many pages has started anew, for an eighth of a second at most.

        Readers end soon, but while one comes before the other has gone, there is always one that still needs the log:
        first one that sees an older state, so that the log cannot be moved, and then one that began to read before it
        was moved, so that it cannot start anew. Those that begin while nobody writes need it for neither.
        """
        for wait_s in _WAITS_S:
            found, moved = self._checkpoint()
            sleep(wait_s)
            if found == moved:
                self._touch()
                if self._checkpoint()[0] < pages:
                    return True
        return False

    def _touch(self) -> None:
        """The log starts anew only with a commit that changes something: this changes nothing that anybody reads."""
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            self._writer.execute("UPDATE sorted SET rowid = rowid + 1")
            self._writer.execute("COMMIT")
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def connections(self) -> tuple[sqlite3.Connection, ...]:
        return (self._helper,)

    def close(self) -> None:
        self._helper.close()

    def _checkpoint(self) -> tuple[int, int]:
        """Returns the pages in the log, and how many of them are in the database now."""
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            _, pages, moved = self._helper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            self._writer.execute("ROLLBACK")
        return pages, moved
