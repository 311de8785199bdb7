"""What the operating system says about a file, in the words of the store's callers."""

from __future__ import annotations

import errno
from typing import Final

from coordinator.errors import Unavailable

_GONE: Final = "put the file and its folder back"
_PERMISSIONS: Final = "check the permissions of the file and its folder"
_ROOM: Final = "free some space on the disk"
_HINTS: Final = {
    errno.ENOENT: _GONE,
    errno.ENOTDIR: _GONE,
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.EROFS: _PERMISSIONS,
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EMFILE: "raise the limit on open files, or close some",
    errno.ENFILE: "raise the limit on open files, or close some",
}


def unavailable(path: str, error: OSError) -> Unavailable:
    return Unavailable(f"{path}: {error.strerror}", hint=_HINTS.get(error.errno or 0, "check the disk"))
