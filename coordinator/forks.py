"""Whether this is still the process that something was made in.

Asking the system for the process's number would do, but takes longer than most of what is done for one command.
"""

from __future__ import annotations

import os

INSTEAD = "start processes that use it by spawn or forkserver, or as a command of their own"
"""What to do instead of forking."""

_this: object = object()


def this_process() -> object:
    """The same object for as long as this process runs, another one in a forked child."""
    return _this


def _begin() -> None:
    global _this
    _this = object()


if hasattr(os, "register_at_fork"):  # elsewhere opening a coordinator is refused, but importing must not fail
    os.register_at_fork(after_in_child=_begin)
