"""Random numbers that must never repeat, and need not be secret: receipts and nonces.

They are drawn in the process: asking the system for each would let other threads run, which costs more than the number.
"""

from __future__ import annotations

import os
from random import Random

_source = Random(os.urandom(32))


def unique_hex(size: int) -> str:
    """So many random bytes, in hex."""
    return f"{_source.getrandbits(size * 8):0{size * 2}x}"


def _seed_anew() -> None:
    """A forked child would draw what its parent draws."""
    _source.seed(os.urandom(32))


if hasattr(os, "register_at_fork"):  # elsewhere opening a coordinator is refused, but importing must not fail
    os.register_at_fork(after_in_child=_seed_anew)
