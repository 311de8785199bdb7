"""The folders of attempts, and the files that are recorded of them and looked for later."""

from __future__ import annotations

import os
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from coordinator import artifacts
from coordinator.artifacts import Artifact, Artifacts, compare, only_files, record
from coordinator.errors import InvalidInput, Unavailable

ODD = [
    "a",
    "a/b",
    "a_b",
    "a b",
    "../a",
    "..",
    ".",
    "/",
    "/etc",
    "a\\b",
    "A",
    "ä",
    "本",
    "~",
    "-rf",
    "a" * 256,
    "a" * 255,
]


@pytest.fixture
def root(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "files")


@pytest.fixture
def folder(root: Artifacts) -> Path:
    return root.make_folder("order", 1)


def artifact(path: str, data: bytes) -> Artifact:
    return Artifact(path=path, size=len(data), sha256=sha256(data).hexdigest())


# Folders


def test_whatever_its_id_each_operation_has_a_folder_of_its_own_within_the_root(root: Artifacts) -> None:
    folders = [root.make_folder(operation, 1) for operation in ODD]

    assert len({str(folder).lower() for folder in folders}) == len(ODD)
    assert all(folder.resolve().parent.parent == root.root.resolve() for folder in folders)
    assert len(list(root.root.iterdir())) == len(ODD)


def test_each_attempt_has_a_folder_of_its_own_which_is_found_again(root: Artifacts, tmp_path: Path) -> None:
    one, two = root.make_folder("order", 1), root.make_folder("order", 2)

    assert one != two
    assert Artifacts(tmp_path / "files").folder("order", 2) == two
    with pytest.raises(Unavailable, match="is there already"):
        root.make_folder("order", 1)
    assert one.stat().st_mode & 0o077 == 0


def test_without_a_place_the_files_are_gone_at_the_end() -> None:
    root = Artifacts(None)
    root.prepare()
    (root.make_folder("order", 1) / "x").write_text("x")

    root.close()

    assert not root.root.exists()


def test_preparing_leaves_nothing_in_the_folder(root: Artifacts) -> None:
    root.prepare()

    assert list(root.root.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(Unavailable, match="cannot be written"):
        Artifacts(tmp_path / "file" / "below").prepare()


def test_a_place_stays_where_it_was_when_the_program_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    root = Artifacts(Path("files"))

    monkeypatch.chdir("elsewhere")

    assert root.folder("order", 1).is_relative_to(tmp_path / "files")


def test_a_place_in_a_folder_that_is_gone_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(Unavailable):
        Artifacts(Path("files")).prepare()


# Recording


def test_all_files_are_recorded_in_a_fixed_order_with_size_and_digest(folder: Path) -> None:
    for name, data in {"z.csv": b"1", "a/two": b"22", "a/b/three": b"", "Äpfel": b"4444"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    assert record(folder) == (
        artifact("z.csv", b"1"),
        artifact("Äpfel", b"4444"),
        artifact("a/two", b"22"),
        artifact("a/b/three", b""),
    )


def test_an_empty_folder_and_one_that_is_gone_have_no_files(folder: Path) -> None:
    empty = record(folder)
    folder.rmdir()

    assert (empty, record(folder)) == ((), ())


def test_what_is_no_file_is_not_recorded_and_no_link_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of somebody else")
    (folder / "to_a_file").symlink_to(tmp_path / "secret")
    (folder / "to_a_folder").symlink_to(tmp_path)
    (folder / "to_nothing").symlink_to(tmp_path / "nothing")
    (folder / "round").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / "empty").mkdir()

    assert record(folder) == ()


def test_a_pipe_does_not_keep_its_reader_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    told: list[str] = []

    def read() -> None:
        try:
            os.close(only_files(str(folder / "pipe"), os.O_RDONLY))
        except OSError as error:
            told.append(str(error.strerror))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(5)

    assert told == ["It is not an ordinary file"]


def test_more_files_than_can_be_recorded_are_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MOST", 3)
    for number in range(3):
        (folder / str(number)).write_text("x")
    just_enough = record(folder)
    (folder / "one more").write_text("x")

    with pytest.raises(InvalidInput, match="more than 3 files") as caught:
        record(folder)

    assert len(just_enough) == 3
    assert caught.value.field == "artifacts"


def test_a_name_that_is_no_utf8_is_an_error_that_can_be_shown(folder: Path) -> None:
    name = os.fsencode(folder) + b"/\xff.csv"
    try:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("the file system takes no such names")

    with pytest.raises(InvalidInput, match="is no UTF-8") as caught:
        record(folder)

    assert str(caught.value).isascii()


def test_a_file_that_goes_while_it_is_recorded_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.tmp").write_text("x")
    (folder / "b").write_text("y")
    digest = artifacts._artifact  # pyright: ignore[reportPrivateUsage]

    def late(path: Path, folder: Path) -> Artifact:
        (folder / "a.tmp").unlink(missing_ok=True)
        return digest(path, folder)

    monkeypatch.setattr(artifacts, "_artifact", late)

    assert record(folder) == (artifact("b", b"y"),)


def test_a_folder_that_cannot_be_read_is_an_error_and_not_empty(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked").mkdir()
    scan: Any = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)

    with pytest.raises(PermissionError):
        record(folder)


# Comparing


def test_what_lies_there_as_it_was_recorded_agrees(folder: Path) -> None:
    (folder / "orders.csv").write_bytes(b"1,2,3")

    [finding] = compare(record(folder), folder)

    assert (finding.agrees, finding.about) == (True, "orders.csv")


@pytest.mark.parametrize("now", [b"1,2,4", b"", b"1,2,3,4"])
def test_a_file_that_was_written_since_does_not_agree(folder: Path, now: bytes) -> None:
    (folder / "orders.csv").write_bytes(b"1,2,3")
    recorded = record(folder)

    (folder / "orders.csv").write_bytes(now)

    [finding] = compare(recorded, folder)
    assert (finding.agrees, finding.about) == (False, "orders.csv")
    assert "has changed" in finding.note


def test_a_file_that_is_gone_does_not_agree(folder: Path) -> None:
    (folder / "orders.csv").write_bytes(b"1,2,3")
    recorded = record(folder)

    (folder / "orders.csv").unlink()

    [finding] = compare(recorded, folder)
    assert not finding.agrees
    assert "is gone" in finding.note


def test_a_link_in_the_place_of_a_file_does_not_agree_whatever_it_leads_to(folder: Path) -> None:
    (folder / "orders.csv").write_bytes(b"1,2,3")
    recorded = record(folder)

    (folder / "orders.csv").rename(folder.parent / "moved")
    (folder / "orders.csv").symlink_to(folder.parent / "moved")

    [finding] = compare(recorded, folder)
    assert not finding.agrees


def test_a_file_that_cannot_be_read_does_not_agree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "orders.csv").write_bytes(b"1,2,3")
    recorded = record(folder)

    def refuse(*_: object) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(artifacts, "file_digest", refuse)

    [finding] = compare(recorded, folder)
    assert not finding.agrees
    assert "cannot be read" in finding.note
