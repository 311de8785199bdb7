"""Operations as callers see them: a plan to approve, and where an approved action stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import UNSET, Raw, Struct

from coordinator.clock import to_datetime
from coordinator.jobs import EventAt, shown
from coordinator.payloads import JsonValue, decode, decode_as
from events.operations import (
    Artifact,
    OperationFailed,
    OperationProgressed,
    OperationQueued,
    OperationReconciled,
    OperationState,
    OperationStopped,
    OperationSucceeded,
    Reconciled,
)
from projections.leases import LeaseRow
from projections.operations import LIVE, OperationRow

T = TypeVar("T")

Advice = Literal["wait", "done", "look, then approve again", "reconcile first"]

ADVICE: dict[tuple[OperationState, bool], Advice] = {
    ("queued", True): "wait",
    ("queued", False): "wait",
    ("running", True): "wait",
    ("running", False): "wait",
    ("succeeded", True): "done",
    ("succeeded", False): "reconcile first",
    ("failed", True): "look, then approve again",
    ("failed", False): "reconcile first",
    ("stopped", True): "look, then approve again",
    ("stopped", False): "reconcile first",
    ("interrupted", True): "look, then approve again",
    ("interrupted", False): "reconcile first",
}
"""What to do in each state, by whether everything that was looked at agrees."""


class Finding(Struct, frozen=True, kw_only=True):
    """What somebody found who compared the world with what an attempt has left in the log.

    Attributes:
        agrees: the world is as the log says.
        note: what was found, in a sentence.
        about: what was looked at: "check" for what the kind's own check found, else an artifact's path.
    """

    agrees: bool
    note: str
    about: str = "check"


class Grant:
    """The approval of one preview: whoever shows it may start that one attempt. Shows itself only through `reveal()`.

    Lives in the memory of the process that made the preview, for a short time.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def reveal(self) -> str:
        """The grant as text, for the person who approves. Keep it out of logs and messages."""
        return self._secret

    def __repr__(self) -> str:
        return "Grant(…)"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


class Preview(Struct, frozen=True, kw_only=True):
    """What an operation would do, to be approved.

    Attributes:
        operation_id: the operation's id.
        kind: name of its kind.
        plan_digest: SHA-256 of the plan in hex.
        attempt: number of the attempt that the approval may start; of one that runs already it starts nothing.
        expires_at: when the approval is over.
        grant: the approval; `apply` takes it with the operation's id, kind and arguments.
    """

    operation_id: str
    kind: str
    plan_digest: str
    attempt: int
    expires_at: datetime
    grant: Grant
    _arguments: Raw
    _plan: Raw

    def __repr__(self) -> str:
        return shown(self)

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        """As they were given."""
        return decode(self._arguments)

    @property
    def plan(self) -> Mapping[str, JsonValue]:
        """What the kind's dry run came to."""
        return decode(self._plan)

    def plan_as(self, type_: type[T]) -> T:
        """The plan as a dataclass, a msgspec struct, a typed dict or a pydantic model."""
        return decode_as(self._plan, type_, "plan")


class OperationStatus(Struct, frozen=True, kw_only=True):
    """Where an operation stands: what the log says of its newest attempt, and what was found in the world.

    Attributes:
        id: the operation's id.
        kind: name of its kind.
        operator: who approved it.
        state: "queued", "running", "succeeded", "failed", "stopped", or "interrupted": nobody renewed its lease, and
            the work may be half done.
        attempt: number of the newest attempt.
        since: when it came into this state.
        lease_until: when a live attempt is interrupted unless it is renewed.
        cancel_asked: its operator wants it to stop.
        reason: why it failed or was stopped.
        stderr: the end of what a subprocess said that failed or was stopped.
        reconciled: what its operator found that the newest attempt has done.
        artifacts: the files that were recorded when it succeeded.
        findings: what was compared with the world, and how.
        advice: what to do now.
    """

    id: str
    kind: str
    operator: str
    state: OperationState
    attempt: int
    since: datetime
    lease_until: datetime | None = None
    cancel_asked: bool = False
    reason: str | None = None
    stderr: str | None = None
    reconciled: Reconciled | None = None
    artifacts: tuple[Artifact, ...] = ()
    findings: tuple[Finding, ...] = ()
    advice: Advice = "wait"
    _arguments: Raw
    _plan: Raw
    _progress: Raw | None = None
    _result: Raw | None = None

    def __repr__(self) -> str:
        return shown(self)

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        """What it was applied with."""
        return decode(self._arguments)

    @property
    def plan(self) -> Mapping[str, JsonValue]:
        """What was approved for the newest attempt."""
        return decode(self._plan)

    @property
    def progress(self) -> Mapping[str, JsonValue] | None:
        """What the newest attempt told last."""
        return None if self._progress is None else decode(self._progress)

    @property
    def result(self) -> Mapping[str, JsonValue] | None:
        """What it came to; None before that."""
        return None if self._result is None else decode(self._result)

    def result_as(self, type_: type[T]) -> T:
        """The result as a dataclass, a msgspec struct, a typed dict or a pydantic model.

        Raises:
            InvalidInput: it does not fit, or there is none.
        """
        return decode_as(Raw(b"null") if self._result is None else self._result, type_, "result")


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """What a kind's check compares the world with.

    Attributes:
        operation_id: the operation's id.
        attempt: number of its newest attempt, which is not running any more.
        state: how that has ended.
        artifacts: the files that were recorded.
        folder: where the attempt was to leave its files, on this machine.
    """

    operation_id: str
    attempt: int
    state: OperationState
    artifacts: tuple[Artifact, ...]
    folder: Path
    _result: Raw | None = None

    def __repr__(self) -> str:
        return shown(self)

    @property
    def result(self) -> Mapping[str, JsonValue] | None:
        """The result, if one was recorded."""
        return None if self._result is None else decode(self._result)


def status_of(row: OperationRow, lease: LeaseRow | None, event_at: EventAt) -> OperationStatus:
    """What the log says of an operation."""
    queued = event_at(row.queued)
    if not isinstance(queued, OperationQueued):
        raise LookupError(f"position {row.queued} does not queue an operation")
    # A lapse may be known and not in the log yet; nothing more is to be read of one.
    ended = None if row.ended is None or row.state == "interrupted" else event_at(row.ended)
    progressed = None if row.progressed is None else event_at(row.progressed)
    reconciled = None if row.reconciled is None else event_at(row.reconciled)
    failed = ended if isinstance(ended, OperationFailed | OperationStopped) else None
    succeeded = ended if isinstance(ended, OperationSucceeded) else None
    result = None if succeeded is None else succeeded.result
    if isinstance(reconciled, OperationReconciled) and reconciled.result is not UNSET:
        result = reconciled.result
    return OperationStatus(
        id=row.id,
        kind=row.kind,
        operator=row.operator,
        state=row.state,
        attempt=row.attempt,
        since=to_datetime(row.since),
        lease_until=to_datetime(lease.lease_until) if lease is not None and row.state in LIVE else None,
        cancel_asked=row.cancel_asked is not None,
        reason=None if failed is None else failed.reason,
        stderr=None if failed is None else failed.stderr,
        reconciled=reconciled.finding if isinstance(reconciled, OperationReconciled) else None,
        artifacts=() if succeeded is None else succeeded.artifacts,
        advice=ADVICE[row.state, True],
        _arguments=queued.arguments,
        _plan=queued.plan,
        _progress=progressed.progress if isinstance(progressed, OperationProgressed) else None,
        _result=result,
    )
