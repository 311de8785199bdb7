"""A kind of operations whose program is given by the operator: for tests of what programs do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from coordinator import SubprocessKind, Work


class Script(msgspec.Struct):
    script: str


class Runs(SubprocessKind[Script]):
    """Runs a Python program."""

    name = "runs"
    arguments = Script
    lease_s = 20
    grace_s = 0.3

    async def preview(self, arguments: Script) -> Any:
        return {}

    def command(self, arguments: Script, work: Work) -> Sequence[str]:
        return [sys.executable, "-I", "-S", "-c", arguments.script]
