"""The folders in which attempts leave files, and what is recorded of those."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from shutil import rmtree
from stat import S_ISREG
from tempfile import mkdtemp
from weakref import finalize

from coordinator.errors import InvalidInput, Unavailable
from coordinator.operations import Artifact, Finding

MOST = 1_000

_ODD = re.compile(r"[^A-Za-z0-9._-]")


class Artifacts:
    """One folder for a workspace, with a folder for each attempt in it.

    Args:
        root: that folder; None for one that is gone when this is closed.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = None if root is None else _absolute(root)
        self._remove: Callable[[], object] = lambda: None

    @property
    def root(self) -> Path:
        if self._root is None:
            self._root = Path(mkdtemp(prefix="coordinator-"))
            self._remove = finalize(self, rmtree, self._root, ignore_errors=True)  # also if nobody closes this
        return self._root

    def close(self) -> None:
        self._remove()

    def prepare(self) -> None:
        """Make sure that files can be written there, by writing one.

        Raises:
            Unavailable: they cannot.
        """
        probe = self.root / f".probe-{os.getpid()}"
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(probe, "wb") as file:
                file.write(b"written to see whether it can be\n")
                file.flush()
                os.fsync(file.fileno())
            probe.unlink()
        except OSError as error:
            raise Unavailable(
                f"the artifact folder {self.root} cannot be written: {error}", hint="name another with artifacts="
            ) from error

    def folder(self, operation: str, attempt: int) -> Path:
        """Where one attempt leaves its files. Any id has a folder of its own."""
        name = f"{_ODD.sub('_', operation)[:60]}-{sha256(operation.encode()).hexdigest()[:16]}"
        return self.root / name / str(attempt)

    def make_folder(self, operation: str, attempt: int) -> Path:
        folder = self.folder(operation, attempt)
        try:
            folder.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            raise Unavailable(
                f"the artifact folder {folder} is there already", hint="another workspace left it: move it away"
            ) from None
        return folder


def record(folder: Path) -> tuple[Artifact, ...]:
    """All regular files below the folder.

    Raises:
        InvalidInput: there are too many, or the folder is none any more but leads elsewhere.
        OSError: one of them, or a folder, cannot be read.
    """
    if folder.is_symlink():
        raise InvalidInput("artifacts", "have a link in place of their folder", hint="write into the folder itself")
    found: list[Artifact] = []
    for place, folders, names in os.walk(folder, onerror=_unless_gone):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if path.is_symlink() or not path.is_file():
                continue
            if len(found) == MOST:
                raise InvalidInput("artifacts", f"are more than {MOST:,} files", hint="leave an archive instead")
            with suppress(FileNotFoundError):  # somebody still tidies up
                found.append(_artifact(path, folder))
    return tuple(found)


def only_files(path: str, flags: int) -> int:
    """For `open`: nothing that could keep its reader waiting, as a pipe does until there is somebody who writes.

    Raises:
        OSError: it is no ordinary file, or cannot be read.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "It is not an ordinary file", path)


def compare(artifacts: tuple[Artifact, ...], folder: Path) -> list[Finding]:
    """Whether what was recorded still lies on the disk; one finding for each file."""
    return [_compared(artifact, folder) for artifact in artifacts]


def _compared(artifact: Artifact, folder: Path) -> Finding:
    path = folder / artifact.path
    try:
        if not path.is_file():
            return Finding(agrees=False, note=f"{path} is gone", about=artifact.path)
        now = _artifact(path, folder)
    except OSError as error:
        return Finding(agrees=False, note=f"{path} cannot be read: {error}", about=artifact.path)
    if now == artifact and not path.is_symlink():
        return Finding(agrees=True, note=f"{path} is as it was recorded", about=artifact.path)
    return Finding(agrees=False, note=f"{path} has changed since it was recorded", about=artifact.path)


def _absolute(root: Path) -> Path:
    try:
        return root.absolute()
    except FileNotFoundError:  # the current folder is gone: whoever prepares it hears of that
        return root


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _artifact(path: Path, folder: Path) -> Artifact:
    name = str(path.relative_to(folder))
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidInput("artifacts", f"{name!a} is no UTF-8", hint="give the file another name") from None
    with open(path, "rb", opener=only_files) as file:
        digest = file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
    return Artifact(path=name, size=size, sha256=digest)
