"""What the world outside the log says about an attempt that is to start: the approval, and how the last one left it."""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct


class Approval(Struct, frozen=True, kw_only=True):
    """What the grant that was shown is worth.

    Attributes:
        worth: "fresh" if it fits the operation, its operator, kind and arguments, and is still good.
        attempt: the only attempt that it may start; this and what follows only of a fresh one.
        plan: what was approved, as JSON.
        plan_digest: SHA-256 of it in hex.
        lease_us: the attempt's lease.
    """

    worth: Literal["fresh", "unknown", "expired", "mismatch"]
    attempt: int = 0
    plan: Raw = Raw(b"{}")
    plan_digest: str = ""
    lease_us: int = 0


class Checked(Struct, frozen=True, kw_only=True):
    """What was found when the world was compared with what an attempt has left in the log.

    Attributes:
        attempt: the attempt that was looked at.
        disagreement: what does not agree, or could not be found out; None if nothing stands in the way of another.
    """

    attempt: int
    disagreement: str | None = None
