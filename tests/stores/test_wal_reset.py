"""The error of SQLite that our way of checkpointing is there for, by one interleaving of two processes.

A checkpoint has read that all of the log is in the database. A writer starts the log anew. The checkpoint goes on, and
takes what the writer has just put at the log's beginning for what it has moved already: the next ones never move it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.stores.sqlite import SqliteStore
from tests.stores.children import Child

AFFECTED = (
    (3, 7, 0) <= sqlite3.sqlite_version_info <= (3, 51, 2)
    # Two branches got the mended lines, too.
    and not (3, 44, 6) <= sqlite3.sqlite_version_info < (3, 45, 0)
    and not (3, 50, 7) <= sqlite3.sqlite_version_info < (3, 51, 0)
)

CHECKPOINTS = """
from tests.stores.interleaving import stop_in_the_middle_of_a_checkpoint

def stopped():
    say("stopped")
    hear()

store = SqliteStore.open(path)
helper = store._checkpoints._helper  # on which the store checkpoints
helper.execute("SELECT count(*) FROM views").fetchall()
if sys.argv[2] == "ours":
    checkpoint = store._checkpoints.run
else:
    checkpoint = lambda: helper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
say("ready")
hear()
stop_in_the_middle_of_a_checkpoint(helper, stopped)
with store._turn.held(once):
    checkpoint()
say("done")
hear()
checkpoint()
say("done")
hear()
"""

WRITES = """
connection = sqlite3.connect(path, isolation_level=None, timeout=0)
connection.execute("PRAGMA wal_autocheckpoint=0")
say("ready")
while sql := hear():
    try:
        say(connection.execute(sql).fetchall())
    except sqlite3.Error as error:
        say(error)
"""

FILL = """
INSERT INTO views SELECT 'wal', hex(randomblob(1500)), '', value, '{}' FROM (
    WITH RECURSIVE numbers(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < 60)
    SELECT value FROM numbers)
"""


def interleave(checkpoint: str, path: Path, child: Callable[..., Child]) -> tuple[str, str]:
    """What the writer heard when it wrote in the middle of the checkpoint, and whether the file is sound at the end."""
    SqliteStore.open(path).close()
    checkpointer, writer = child(CHECKPOINTS, path, checkpoint), child(WRITES, path)
    assert (checkpointer.hear(), writer.hear()) == ("ready", "ready")

    def ask(sql: str) -> str:
        writer.say(" ".join(sql.split()))
        return writer.hear()

    for sql in (FILL, "UPDATE views SET key = hex(randomblob(1500))"):
        ask(sql)
        ask("PRAGMA wal_checkpoint(PASSIVE)")  # nothing else runs: all of the log is in the database now
    checkpointer.say()
    assert checkpointer.hear() == "stopped"
    heard = ask("UPDATE views SET key = hex(randomblob(1500)) WHERE rank < 5")
    checkpointer.say()
    assert checkpointer.hear() == "done"
    ask("UPDATE views SET key = hex(randomblob(1500))")
    checkpointer.say()
    assert checkpointer.hear() == "done"
    return heard, soundness(path)


def soundness(path: Path) -> str:
    """As whoever opens the file now sees it; the writer itself has the true pages in memory."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            return str(error)


def test_a_plain_checkpoint_corrupts_the_file_when_a_writer_comes_in_between_and_ours_keeps_it_out(
    path: Path, tmp_path: Path, child: Callable[..., Child]
) -> None:
    heard, sound = interleave("ours", path, child)

    assert heard == "database is locked"
    assert sound == "ok"

    if not AFFECTED:
        pytest.skip(f"SQLite {sqlite3.sqlite_version} is not affected; only our own checkpoint was tried")
    heard, sound = interleave("plain", tmp_path / "plain.db", child)
    assert heard == "[]"
    assert sound != "ok"
