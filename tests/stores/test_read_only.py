"""Files, folders and file systems that may only be read."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from coordinator.errors import Unavailable
from coordinator.stores.interface import CommitUnknown
from coordinator.stores.sqlite import SqliteStore
from tests.disks import mount
from tests.stores.children import Child
from tests.stores.rows import append, event, log_of, once

NOBODY = 65534

OPENS_AS_NOBODY = f"""
if os.getuid() == 0:
    os.setuid({NOBODY})  # root may write everywhere
store = SqliteStore.open(path)
say("created")
hear()
for _ in range(2):
    try:
        SqliteStore.open(path)
        say("opened")
    except Unavailable as error:
        say(error)
hear()
SqliteStore.open(path).close()
say("opened")
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Of whom root becomes for a while; not below pytest's, which only its owner may enter."""
    with TemporaryDirectory() as folder:
        if os.getuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("work.db", 0o444),
        ("work.db", 0o000),
        ("", 0o555),
        ("work.db.turn", 0o444),
        ("work.db-wal", 0o444),
        ("work.db-shm", 0o000),
    ],
)
def test_what_may_only_be_read_is_refused_at_opening(
    name: str, may: int, folder: Path, child: Callable[..., Child]
) -> None:
    process = child(OPENS_AS_NOBODY, folder / "work.db")
    assert process.hear() == "created"
    mode = (folder / name).stat().st_mode
    os.chmod(folder / name, may)

    process.say()

    for heard in [process.hear() for _ in range(2)]:
        assert "Permission denied (check the permissions of the file and its folder)" in heard
        assert heard.startswith(f"{folder}/{name}".rstrip("/"))
    os.chmod(folder / name, mode)
    process.say()
    assert process.hear() == "opened"


def test_a_read_only_file_system_is_refused_at_opening(tmp_path: Path) -> None:
    SqliteStore.open(tmp_path / "work.db").close()
    mount("--bind", tmp_path, tmp_path)
    try:
        mount("-o", "remount,bind,ro", tmp_path)

        with pytest.raises(Unavailable, match=r"Read-only file system \(check the permissions"):
            SqliteStore.open(tmp_path / "work.db")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_log_that_becomes_immutable_takes_nothing_more_until_it_is_mutable_again(path: Path) -> None:
    if shutil.which("chattr") is None:
        pytest.skip("needs the program chattr")
    with closing(SqliteStore.open(path)) as store:
        append(store, event(1))
        done = subprocess.run(["chattr", "+i", f"{path}-wal"], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"files cannot be made immutable here: {done.stderr.strip()}")
        try:
            with pytest.raises((CommitUnknown, Unavailable)):
                append(store, event(2))
            with pytest.raises(Unavailable):
                store.reopen(once)
        finally:
            subprocess.run(["chattr", "-i", f"{path}-wal"], check=True)

        store.reopen(once)
        assert log_of(store) == [1]
        append(store, event(2))
        assert log_of(store) == [1, 2]
