"""The life of an operation, a slow action that a person approved, as the log tells it.

Each attempt begins with a grant that fits it alone, and holds a lease while it runs. Times are µs UTC of log time.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from events.base import Event
from events.streams import operation_stream

OperationState = Literal["queued", "running", "succeeded", "failed", "stopped", "interrupted"]
Reconciled = Literal["done", "not done"]


class Artifact(Struct, frozen=True, kw_only=True, gc=False):
    """A file that an attempt left: path within its folder, size in bytes, SHA-256 in hex."""

    path: str
    size: int
    sha256: str


class OperationEvent(Event, frozen=True, kw_only=True):
    operation: str
    attempt: int

    @property
    def stream(self) -> str:
        return operation_stream(self.operation)


class OperationQueued(OperationEvent, frozen=True, kw_only=True, tag="operation.queued"):
    """Its operator approved the plan: this attempt may start, once, and never another with the same grant."""

    kind: str
    operator: str
    arguments: Raw
    plan: Raw
    plan_digest: str
    grant_digest: str
    nonce: str
    token_digest: str
    lease_us: int
    lease_until: int
    first: int | None = None  # position of the event with which the operation began, if that was another

    @property
    def arguments_digest(self) -> str:
        return sha256(bytes(self.arguments)).hexdigest()


class OperationStarted(OperationEvent, frozen=True, kw_only=True, tag="operation.started"):
    """The work began."""


class OperationProgressed(OperationEvent, frozen=True, kw_only=True, tag="operation.progressed"):
    """The work told how far it is."""

    progress: Raw


class OperationRenewed(OperationEvent, frozen=True, kw_only=True, tag="operation.renewed"):
    """The work goes on: its lease counts anew."""

    lease_us: int
    lease_until: int


class OperationCancelAsked(OperationEvent, frozen=True, kw_only=True, tag="operation.cancel_asked"):
    """Its operator wants the work to stop. Whoever runs it stops it."""

    reason: str | None = None


class OperationSucceeded(OperationEvent, frozen=True, kw_only=True, tag="operation.succeeded"):
    """The work came to its end; nothing starts again under this id."""

    result: Raw
    artifacts: tuple[Artifact, ...] = ()


class OperationFailed(OperationEvent, frozen=True, kw_only=True, tag="operation.failed"):
    """The work itself said that it failed, or ended without a result."""

    reason: str
    stderr: str | None = None  # the end of what a subprocess said


class OperationStopped(OperationEvent, frozen=True, kw_only=True, tag="operation.stopped"):
    """The work was stopped: cancelled, over its time limit, or because its process ended."""

    reason: str
    stderr: str | None = None


class OperationLapsed(OperationEvent, frozen=True, kw_only=True, tag="operation.lapsed"):
    """Nobody renewed the lease that ended at `lease_until`: the work may be half done."""

    lease_until: int


class OperationReconciled(OperationEvent, frozen=True, kw_only=True, tag="operation.reconciled"):
    """Its operator looked at the world and says what this attempt has done there."""

    finding: Reconciled
    note: str
    result: Raw | UnsetType = UNSET  # of "done"


AnyOperationEvent = (
    OperationQueued
    | OperationStarted
    | OperationProgressed
    | OperationRenewed
    | OperationCancelAsked
    | OperationSucceeded
    | OperationFailed
    | OperationStopped
    | OperationLapsed
    | OperationReconciled
)
