"""The file of a SQLite workspace: how it is created, recognised, opened and laid out."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any, Final, TypedDict
from urllib.parse import quote

from coordinator.errors import AGAINST_DAMAGE, NewerFormat, NotAWorkspace, Unavailable, UnsupportedPlatform
from coordinator.stores.interface import FORMAT
from coordinator.stores.open_files import check_beside, refuse_inherited
from coordinator.stores.sqlite_rows import hint_for, is_damage, is_locked
from coordinator.stores.system_errors import unavailable
from coordinator.stores.turn import Turn, patience, pause

APPLICATION_ID: Final = 0x61636F72  # "acor"

_TABLES: Final = (
    """CREATE TABLE events(
        position INTEGER PRIMARY KEY, at INTEGER NOT NULL, stream TEXT NOT NULL, type TEXT NOT NULL,
        actor TEXT, origin TEXT, context TEXT, receipt TEXT, fingerprint BLOB,
        command INTEGER NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL) STRICT""",
    # The receipt comes first: generated ones are ordered by time, so that a batch touches few pages.
    "CREATE UNIQUE INDEX events_receipt ON events(receipt, actor) WHERE receipt IS NOT NULL",
    # Which events are of which stream. Kept up in bulk, see checkpoint.py, because the streams of one batch lie far
    # apart: an index that each event changes at once was more than half of the pages that a commit had to write.
    """CREATE TABLE streams(
        stream TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY(stream, position)) STRICT, WITHOUT ROWID""",
    "CREATE TABLE sorted(up_to INTEGER NOT NULL) STRICT",
    "INSERT INTO sorted VALUES (0)",
    # Not WITHOUT ROWID: its rows would fill the inner nodes too, and those above 1,000 bytes go to pages of their own.
    """CREATE TABLE views(
        view TEXT NOT NULL, key TEXT NOT NULL, bucket TEXT NOT NULL, rank INTEGER NOT NULL,
        body TEXT NOT NULL) STRICT""",
    "CREATE UNIQUE INDEX views_key ON views(view, key)",
    "CREATE INDEX views_bucket ON views(view, bucket, rank, key) WHERE bucket <> ''",
    """CREATE TABLE head(
        id INTEGER PRIMARY KEY CHECK(id = 1),
        position INTEGER NOT NULL, digest BLOB NOT NULL, at INTEGER NOT NULL, boot_id TEXT NOT NULL,
        boot_at INTEGER NOT NULL, generation INTEGER NOT NULL,
        folds INTEGER NOT NULL, format INTEGER NOT NULL) STRICT""",
    "CREATE TABLE workspace(id BLOB NOT NULL) STRICT",
    # The key has a table of its own, so that an export or a read of the others can't take it along.
    "CREATE TABLE secret(key BLOB NOT NULL) STRICT",
)

_NAMES: Final = frozenset(
    found[1] for table in _TABLES if (found := re.match(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) (\w+)", table))
)

_PRAGMAS: Final = (
    "PRAGMA synchronous=FULL",
    "PRAGMA wal_autocheckpoint=0",  # SQLite's own checkpoint can corrupt the file, up to 3.51.2; see checkpoint.py
    "PRAGMA cache_size=-16000",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA trusted_schema=OFF",
)

_NETWORK_FILE_SYSTEMS: Final = frozenset(
    "afs beegfs ceph cifs coda fuse.ceph fuse.glusterfs fuse.s3fs fuse.sshfs gfs gfs2 glusterfs lustre ncpfs nfs nfs4 "
    "ocfs2 orangefs smb2 smb3 smbfs".split()
)

_EFFECTIVE: Final = os.access in os.supports_effective_ids
"""Whether the system can tell what the user may that this process acts as."""


class ConnectArguments(TypedDict):
    isolation_level: None
    timeout: float
    cached_statements: int
    uri: bool


CONNECT: Final[ConnectArguments] = {
    "isolation_level": None,  # transactions are begun and ended in plain sight
    "timeout": 0,  # waiting has a deadline, so the store does it and not SQLite
    "cached_statements": 512,
    "uri": True,
}
"""What every connection is opened with, whoever opens it."""


def locate(path: str | os.PathLike[str]) -> str:
    """The one name under which all processes know this file: SQLite resolves links for the files beside it, too.

    Raises:
        Unavailable: it is relative to a folder that is not there any more.
    """
    path = os.fspath(path)
    with reaching(path):
        return os.path.realpath(path)


def uri_of(path: str) -> str:
    """For `sqlite3.connect`: opens the file only if it exists, so that a lost one is never silently made anew."""
    return f"file:{quote(os.fsencode(path))}?mode=rw"


def connect(path: str, still_wanted: Callable[[], bool] | None = None) -> sqlite3.Connection:
    """A plain connection to an existing file, configured. It belongs to the calling thread."""
    refuse_inherited(path)
    connection = sqlite3.connect(uri_of(path), **CONNECT)
    try:
        configure(connection, path, still_wanted or patience())
    except BaseException:
        connection.close()
        raise
    return connection


def configure(connection: sqlite3.Connection, path: str, still_wanted: Callable[[], bool]) -> None:
    """What SQLite does not remember in the file and every connection has to be told. Some of it reads the file."""
    check_beside(path)
    for pragma in _PRAGMAS:
        retry_locked(lambda: connection.execute(pragma).fetchall(), still_wanted)  # noqa: B023


def retry_locked(step: Callable[[], object], still_wanted: Callable[[], bool]) -> None:
    """Other programs know nothing of the turn: one may hold SQLite's own locks for a while."""
    while True:
        try:
            step()
            return
        except sqlite3.Error as error:
            if not is_locked(error) or not still_wanted():
                raise
        pause()


def prepare(path: str | os.PathLike[str], still_wanted: Callable[[], bool]) -> None:
    """Create the workspace, or make sure that what is there is one that this software can read.

    Done under the turn, so that of many processes that start at once exactly one creates it.

    Raises:
        NotAWorkspace: it is a folder, no database, or another program's.
        NewerFormat: newer software wrote it.
        UnsupportedPlatform: a network file system, or a SQLite that is too old.
        Unavailable: the file can't be reached, created or written.
        TurnTaken: somebody else held the turn for too long.
    """
    path = locate(path)
    _check_platform()
    refuse_inherited(path)
    with reaching(path):
        _check_place(path)
    beside = path + ".turn"
    was_there = os.path.exists(beside)
    try:
        with reaching(path), closing(Turn(beside)) as turn, turn.held(still_wanted):
            _create_empty(path)
            _check_access(path, path + "-wal", path + "-shm")
            with closing(connect(path, still_wanted)) as connection:
                retry_locked(lambda: _create_or_recognise(connection, path), still_wanted)
    except NotAWorkspace:
        if not was_there:
            os.unlink(beside)  # leave no traces beside what is not ours
        raise


def recognise(connection: sqlite3.Connection, path: str) -> None:
    """Raises `NotAWorkspace` or `NewerFormat` if this is no workspace that this software can read."""
    if _value(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise NotAWorkspace(f"{path} belongs to another program", hint="name a new file, or an existing workspace")
    if (found := _value(connection, "PRAGMA user_version")) > FORMAT:
        raise NewerFormat(f"{path} has format {found}; this software reads up to {FORMAT}")
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if missing := sorted(_NAMES - there):
        raise NotAWorkspace(f"{path} is damaged: it has no {' and no '.join(missing)}", hint=AGAINST_DAMAGE)


@contextmanager
def reaching(path: str) -> Generator[None]:
    """Turn what the system and SQLite say about a file that can't be opened into something that helps."""
    try:
        yield
    except OSError as error:
        raise unavailable(error.filename or path, error) from error
    except sqlite3.Error as error:
        if is_damage(error):
            raise NotAWorkspace(f"{path}: {error}", hint="name a new file, or an existing workspace") from error
        raise Unavailable(f"{path}: {error}", hint=hint_for(error)) from error


def _check_platform() -> None:
    if sqlite3.sqlite_version_info < (3, 37):
        raise UnsupportedPlatform(f"SQLite {sqlite3.sqlite_version} is too old", hint="3.37 or newer is needed")


def _check_place(path: str) -> None:
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise NotAWorkspace(f"{path} is a folder", hint="name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise NotAWorkspace(f"{path} is not a regular file", hint="name a new file, or an existing workspace")
    try:
        kind = file_system_of(folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Unavailable(f"{path}: there is no folder {folder}", hint="create the folder first") from error
    if kind in _NETWORK_FILE_SYSTEMS:
        raise UnsupportedPlatform(
            f"{path} is on a network file system ({kind}), whose locks can't be trusted", hint="put it on a local disk"
        )
    _check_access(folder)


def file_system_of(folder: str) -> str | None:
    """The type of the file system, where the system tells (Linux)."""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo") as mounts:
            found = [line.split() for line in mounts]
    except OSError:
        return None
    return next((words[words.index("-") + 1] for words in found if words[2] == wanted), None)


def _create_empty(path: str) -> None:
    """SQLite would create the file readable for everybody, so create it first, and only if nothing is there.

    A file that exists is never opened here: closing it would drop the locks that SQLite holds in this process.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check_access(*files: str) -> None:
    """Where something may only be read, SQLite would open it all the same, leave files beside it that may only be read
    either, and fail at the first write.
    """
    for file in files:
        if os.path.exists(file) and not os.access(file, os.R_OK | os.W_OK, effective_ids=_EFFECTIVE):
            why = errno.EROFS if os.statvfs(file).f_flag & os.ST_RDONLY else errno.EACCES
            raise OSError(why, os.strerror(why), file)


def _create_or_recognise(connection: sqlite3.Connection, path: str) -> None:
    if _is_blank(connection):
        _create(connection, path)
    recognise(connection, path)
    if _value(connection, "PRAGMA journal_mode=WAL") != "wal":
        raise UnsupportedPlatform(f"{path}: SQLite can't keep a write-ahead log here", hint="put it on a local disk")


def _is_blank(connection: sqlite3.Connection) -> bool:
    return not any(
        _value(connection, question)
        for question in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    )


def _create(connection: sqlite3.Connection, path: str) -> None:
    os.chmod(path, 0o600)  # an empty file that was there before may be readable for others
    _value(connection, "PRAGMA journal_mode=WAL")
    workspace = os.urandom(32)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={FORMAT}")
        for table in _TABLES:
            connection.execute(table)
        connection.execute("INSERT INTO workspace VALUES (?)", (workspace,))
        connection.execute("INSERT INTO secret VALUES (?)", (os.urandom(32),))
        connection.execute("INSERT INTO head VALUES (1, 0, ?, 0, '', 0, 0, 0, ?)", (workspace, FORMAT))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _value(connection: sqlite3.Connection, question: str) -> Any:
    return connection.execute(question).fetchone()[0]
