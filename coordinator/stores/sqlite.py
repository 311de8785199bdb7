"""The store on SQLite: one file, many processes, every answered commit on the disk."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from coordinator.errors import Closed, Unavailable
from coordinator.forks import this_process
from coordinator.stores.checkpoint import Checkpoints
from coordinator.stores.interface import CommitUnknown, Transaction, TurnTaken
from coordinator.stores.sqlite_file import locate, prepare, reaching
from coordinator.stores.sqlite_reader import SqliteReader
from coordinator.stores.sqlite_rows import SqliteTransaction, explain, hint_for, is_locked, is_out_of_room
from coordinator.stores.system_errors import unavailable
from coordinator.stores.turn import Turn, lock_holder, patience, pause

__all__ = ["SqliteReader", "SqliteStore"]

T = TypeVar("T")

_PATIENCE_AT_CLOSE_S: Final = 1.0
_WRITE_LOCK_BYTE: Final = 120
"""Where in the `-shm` file SQLite keeps other writers out."""


class SqliteStore(SqliteReader):
    """See `interface.Store`. Takes the same arguments as `SqliteReader`."""

    def __init__(self, path: str | os.PathLike[str], connection: sqlite3.Connection | None = None) -> None:
        with reaching(locate(path)):
            self._turn = Turn(locate(path) + ".turn")
        try:
            super().__init__(path, connection)
        except BaseException:
            self._turn.close()
            raise

    @classmethod
    def open(cls, path: str | os.PathLike[str], still_wanted: Callable[[], bool] | None = None) -> SqliteStore:
        """Create the workspace if need be, and open it on a plain connection. Raises what `prepare` raises."""
        prepare(path, still_wanted or patience())
        return cls(path)

    @property
    def key(self) -> bytes:
        return self._key

    def write(self, work: Callable[[Transaction], T], *, still_wanted: Callable[[], bool]) -> T:
        self._check_usable()
        self._take_turn(still_wanted)
        try:
            self._begin_writing(still_wanted)
            transaction = SqliteTransaction(self._connection)
            try:
                self._files.check()  # now that all waiting is over
                answer = work(transaction)
                if transaction.failure is not None:  # and `work` swallowed it
                    raise transaction.failure
                checkpoint = self._commit(transaction) if transaction.written else False
            finally:
                transaction.end()
                self._roll_back()
            if checkpoint:
                self._checkpoints.run()
            return answer
        finally:
            self._turn.give_back()

    def reopen(self, still_wanted: Callable[[], bool] | None = None) -> None:
        still_wanted = still_wanted or patience()
        super().reopen(still_wanted)
        self._unusable = Unavailable("SQLite's log could not be secured", hint="reopen the store again")
        self._secure(still_wanted)
        self._unusable = None

    def close(self) -> None:
        """Without the turn it is as safe, but of two that close at the same time neither finds itself the last."""
        if self._process is this_process() and not isinstance(self._unusable, Closed):
            with suppress(TurnTaken, OSError):
                self._turn.take(patience(_PATIENCE_AT_CLOSE_S))
        super().close()
        self._turn.close()

    def _load(self) -> None:
        super()._load()
        self._key = self._secret("SELECT key FROM secret", "its key")

    def _settle(self) -> None:
        self._checkpoints = Checkpoints(self.path, self._turn, self._connection)

    def _close_connections(self) -> None:
        self._checkpoints.close()
        super()._close_connections()

    def _take_turn(self, still_wanted: Callable[[], bool]) -> None:
        try:
            self._turn.take(still_wanted)
        except OSError as error:
            raise unavailable(self._turn.path, error) from error

    def _begin_writing(self, still_wanted: Callable[[], bool]) -> None:
        try:
            self._begin(("BEGIN IMMEDIATE",), still_wanted)
        except sqlite3.Error as error:
            if is_locked(error):
                raise TurnTaken(self._foreign_writer()) from error
            raise explain(error) from error

    def _foreign_writer(self) -> int | None:
        with suppress(OSError):
            return lock_holder("POSIX", os.stat(self.path + "-shm"), _WRITE_LOCK_BYTE)
        return None

    def _commit(self, transaction: SqliteTransaction) -> bool:
        """Returns whether a checkpoint is due."""
        checkpoint = self._checkpoints.count(transaction.written)
        if checkpoint:
            transaction.sort_streams()
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            # Without room the transaction's last page, which makes it count, was not written: it is rolled back. Where
            # only the file `-shm` finds none, that page is on the disk already.
            if is_out_of_room(error) or (is_locked(error) and self._connection.in_transaction):
                raise explain(error) from error
            self._unusable = Unavailable("the last commit failed", hint="reopen the store and see whether it applied")
            raise CommitUnknown(str(error)) from error
        return checkpoint

    def _secure(self, still_wanted: Callable[[], bool]) -> None:
        """What a failed flush left in the log may be in the system's memory only, and would be believed from now on.
        A checkpoint writes it into the database and flushes that, so that it is either true or an error.

        The turn is given back between two tries: others write meanwhile, and a reader that is in the way may end.
        """
        while not self._secured(still_wanted):
            if not still_wanted():
                self._check_usable()
            pause()

    def _secured(self, still_wanted: Callable[[], bool]) -> bool:
        self._take_turn(still_wanted)
        try:
            whole = self._checkpoints.run()
        finally:
            self._turn.give_back()
        failure = self._checkpoints.failure
        why, hint = (failure, hint_for(failure)) if failure else ("a reader is in the way", "let it end")
        self._unusable = Unavailable(f"SQLite's log could not be secured: {why}", hint=hint)
        return whole

    def _connections(self) -> Sequence[sqlite3.Connection]:
        return (self._connection, *self._checkpoints.connections())
