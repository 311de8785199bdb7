"""Creating, recognising and opening the file of a workspace."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from coordinator.errors import NewerFormat, NotAWorkspace, Unavailable, UnsupportedPlatform
from coordinator.stores import sqlite_file
from coordinator.stores.interface import FORMAT, TurnTaken
from coordinator.stores.sqlite import SqliteReader, SqliteStore
from coordinator.stores.sqlite_file import prepare
from coordinator.stores.turn import Turn
from tests.stores.children import Child
from tests.stores.rows import append, event, head_of, log_of, once, put, row


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_the_files(path: Path, sqlite: SqliteStore) -> None:
    append(sqlite, event(1))

    names = sorted(os.listdir(path.parent))

    assert names == ["work.db", "work.db-shm", "work.db-wal", "work.db.turn"]
    assert {mode(path.parent / name) for name in names} == {0o600}


def test_the_mode_does_not_depend_on_the_umask_from_the_first_moment_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    connect = sqlite_file.connect
    monkeypatch.setattr(sqlite_file, "connect", lambda *args: (modes.append(mode(path)), connect(*args))[1])
    before = os.umask(0)
    try:
        SqliteStore.open(path).close()
    finally:
        os.umask(before)

    assert [*modes, mode(path)] == [0o600, 0o600]


def test_closing_the_last_store_leaves_one_complete_file(path: Path) -> None:
    with closing(SqliteStore.open(path)) as store:
        append(store, event(1))

    assert sorted(os.listdir(path.parent)) == ["work.db", "work.db.turn"]
    with closing(SqliteStore.open(path)) as store:
        assert log_of(store) == [1]


def test_an_empty_file_becomes_a_workspace_that_others_cannot_read(path: Path) -> None:
    path.touch(0o644)

    with closing(SqliteStore.open(path)) as store:
        append(store, event(1))

    assert mode(path) == 0o600


def test_what_a_creation_that_was_killed_left_becomes_a_workspace(path: Path) -> None:
    with closing(sqlite3.connect(path)) as half:
        half.execute("PRAGMA journal_mode=WAL")

    with closing(SqliteStore.open(path)) as store:
        assert head_of(store).position == 0


def test_every_commit_is_flushed_and_sqlite_never_checkpoints_by_itself(path: Path) -> None:
    prepare(path, once)

    with closing(sqlite_file.connect(str(path))) as connection:
        pragmas = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "trusted_schema", "busy_timeout")
        }

    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "wal_autocheckpoint": 0,
        "trusted_schema": 0,
        "busy_timeout": 0,
    }


def test_eight_processes_at_once_create_one_workspace(path: Path, child: Callable[..., Child]) -> None:
    children = [
        child("say('ready'); hear(); store = SqliteStore.open(path); say((store.workspace + store.key).hex())", path)
        for _ in range(8)
    ]
    for each in children:
        assert each.hear() == "ready"

    for each in children:
        each.say()
    found = {each.hear() for each in children}

    with closing(SqliteStore.open(path)) as store:
        assert found == {(store.workspace + store.key).hex()}


def test_a_link_leads_to_the_same_turn(path: Path, sqlite: SqliteStore) -> None:
    link = path.parent / "link.db"
    link.symlink_to(path)

    with closing(SqliteStore.open(link)) as other:

        def inside(_: object) -> None:
            with pytest.raises(TurnTaken):
                other.write(lambda transaction: transaction.put([row("a")]), still_wanted=once)

        sqlite.write(inside, still_wanted=once)

    assert "link.db.turn" not in os.listdir(path.parent)


def test_a_path_with_odd_characters_is_only_a_path(tmp_path: Path) -> None:
    path = tmp_path / "50% of? it#1 é.db"

    with closing(SqliteStore.open(path)) as store:
        append(store, event(1))

    assert sorted(os.listdir(tmp_path)) == [path.name, path.name + ".turn"]


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("dear diary, " * 1000)

    with pytest.raises(NotAWorkspace, match="not a database"):
        prepare(path, once)

    assert path.read_text() == "dear diary, " * 1000
    assert os.listdir(path.parent) == ["work.db"]


@pytest.mark.parametrize(
    "script", ["CREATE TABLE t(a)", "PRAGMA application_id=1", "PRAGMA user_version=1", "PRAGMA user_version=-1"]
)
def test_another_programs_database_is_left_alone(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(script)
    before = path.read_bytes()

    with pytest.raises(NotAWorkspace, match="another program"):
        prepare(path, once)

    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["work.db"]


def test_a_workspace_of_a_newer_format_is_refused(path: Path) -> None:
    SqliteStore.open(path).close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version={FORMAT + 1}")

    with pytest.raises(NewerFormat, match=rf"has format {FORMAT + 1}.*up to {FORMAT}"):
        SqliteStore.open(path)
    with pytest.raises(NewerFormat):
        SqliteReader(path)


def test_a_damaged_first_page_is_named(path: Path) -> None:
    SqliteStore.open(path).close()
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])

    with pytest.raises(NotAWorkspace):
        prepare(path, once)


def test_a_folder_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(NotAWorkspace, match="folder"):
        prepare(tmp_path, once)


def test_a_device_is_no_workspace() -> None:
    with pytest.raises(NotAWorkspace, match="regular"):
        prepare("/dev/null", once)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no folder .*missing"):
        prepare(tmp_path / "missing" / "work.db", once)


@pytest.mark.parametrize("mode", [0o555, 0o444])
def test_a_folder_that_may_not_be_used_is_named(mode: int, child: Callable[..., Child]) -> None:
    script = """
    if os.getuid() == 0:
        os.seteuid(65534)  # root may write everywhere
    try:
        SqliteStore.open(path)
    except Unavailable as error:
        say(error)
    """

    with TemporaryDirectory() as folder:  # not below pytest's, which only its owner may enter
        os.chmod(folder, mode)
        heard = child("if True:" + script, Path(folder, "work.db")).hear()

    assert heard == f"{folder}: Permission denied (check the permissions of the file and its folder)"


def test_a_reader_never_creates_a_file(path: Path) -> None:
    with pytest.raises(Unavailable, match="unable to open"):
        SqliteReader(path)

    assert os.listdir(path.parent) == []


def test_a_reader_recognises_what_is_no_workspace(path: Path) -> None:
    path.write_text("dear diary, " * 1000)

    with pytest.raises(NotAWorkspace):
        SqliteReader(path)


def test_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "file_system_of", lambda folder: "nfs4")

    with pytest.raises(UnsupportedPlatform, match="nfs4"):
        prepare(path, once)

    assert os.listdir(path.parent) == []


def test_the_file_system_is_known_on_linux() -> None:
    assert sqlite_file.file_system_of("/proc") in ("proc", None)


def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))

    with pytest.raises(UnsupportedPlatform, match=r"3\.37"):
        prepare(path, once)


def test_opening_waits_for_the_turn_only_as_long_as_it_is_wanted(path: Path) -> None:
    with closing(Turn(f"{path}.turn")) as turn, turn.held(once), pytest.raises(TurnTaken) as caught:
        prepare(path, once)

    assert caught.value.holder in (os.getpid(), None)


def test_writing_waits_while_another_program_locks_the_file(path: Path, sqlite: SqliteStore) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        asked: list[None] = []

        def let_go_when_asked_again() -> bool:
            asked.append(None)
            if len(asked) == 3:
                other.execute("ROLLBACK")
            return True

        sqlite.write(lambda transaction: transaction.put([row("a")]), still_wanted=let_go_when_asked_again)

    assert len(asked) == 3


def test_a_removed_turn_file_is_made_anew(path: Path, sqlite: SqliteStore) -> None:
    append(sqlite, event(1))
    os.unlink(f"{path}.turn")

    append(sqlite, event(2))

    with closing(Turn(f"{path}.turn")) as turn, turn.held(once), pytest.raises(TurnTaken):
        sqlite.write(lambda transaction: transaction.put([row("a")]), still_wanted=once)


def test_a_small_log_of_a_killed_process_is_found(path: Path, child: Callable[..., Child]) -> None:
    process = child("store = SqliteStore.open(path); append(store, event(1)); say('done'); hear()", path)
    assert process.hear() == "done"
    process.kill()
    assert Path(f"{path}-wal").stat().st_size > 0

    with closing(SqliteStore.open(path)) as store:
        assert log_of(store) == [1]
        put(store, row("a"))
