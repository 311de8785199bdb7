"""An async, event-sourced coordinator for agents and other workers that share one store.

Everything public is named here, and loaded when it is first used: `import coordinator` is cheap.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coordinator.agent import Agent as Agent
    from coordinator.auditing.audit import Anchor as Anchor
    from coordinator.auditing.audit import audit as audit
    from coordinator.auditing.violation import Violation as Violation
    from coordinator.calls import CommandRecord as CommandRecord
    from coordinator.claim import Claim as Claim
    from coordinator.claims import Claims as Claims
    from coordinator.coordinator import Coordinator as Coordinator
    from coordinator.differences import RowChange as RowChange
    from coordinator.errors import BadPath as BadPath
    from coordinator.errors import Busy as Busy
    from coordinator.errors import Closed as Closed
    from coordinator.errors import CoordinatorError as CoordinatorError
    from coordinator.errors import InvalidInput as InvalidInput
    from coordinator.errors import LimitPassed as LimitPassed
    from coordinator.errors import NewerFormat as NewerFormat
    from coordinator.errors import NotAWorkspace as NotAWorkspace
    from coordinator.errors import NotSubmitted as NotSubmitted
    from coordinator.errors import OutcomeUnknown as OutcomeUnknown
    from coordinator.errors import PreviewFailed as PreviewFailed
    from coordinator.errors import Unavailable as Unavailable
    from coordinator.errors import UnsupportedEventLoop as UnsupportedEventLoop
    from coordinator.errors import UnsupportedPlatform as UnsupportedPlatform
    from coordinator.explanation import Cause as Cause
    from coordinator.explanation import Explanation as Explanation
    from coordinator.holders import Holder as Holder
    from coordinator.jobs import Job as Job
    from coordinator.jobs import JobRef as JobRef
    from coordinator.jobs import JobState as JobState
    from coordinator.kinds import Kind as Kind
    from coordinator.kinds import SubprocessKind as SubprocessKind
    from coordinator.kinds import Work as Work
    from coordinator.log import Log as Log
    from coordinator.log import LogEntry as LogEntry
    from coordinator.messages import Message as Message
    from coordinator.messages import ReaderPositions as ReaderPositions
    from coordinator.messages import Topic as Topic
    from coordinator.operation import Operation as Operation
    from coordinator.operation_refusals import ApprovalExpired as ApprovalExpired
    from coordinator.operation_refusals import ApprovalMismatch as ApprovalMismatch
    from coordinator.operation_refusals import ApprovalUnknown as ApprovalUnknown
    from coordinator.operation_refusals import AttemptChanged as AttemptChanged
    from coordinator.operation_refusals import OperationBound as OperationBound
    from coordinator.operation_refusals import OperationLive as OperationLive
    from coordinator.operation_refusals import OperationUnknown as OperationUnknown
    from coordinator.operation_refusals import ReconcileFirst as ReconcileFirst
    from coordinator.operations import AttemptRecord as AttemptRecord
    from coordinator.operations import Finding as Finding
    from coordinator.operations import Grant as Grant
    from coordinator.operations import OperationState as OperationState
    from coordinator.operations import OperationStatus as OperationStatus
    from coordinator.operations import Preview as Preview
    from coordinator.pages import Pages as Pages
    from coordinator.past import Past as Past
    from coordinator.payloads import JsonValue as JsonValue
    from coordinator.payloads import Payload as Payload
    from coordinator.reader import Reader as Reader
    from coordinator.reads import Reservation as Reservation
    from coordinator.reasons import Reason as Reason
    from coordinator.reasons import Why as Why
    from coordinator.receipts import receipt_for as receipt_for
    from coordinator.refusals import AlreadyClaimed as AlreadyClaimed
    from coordinator.refusals import AlreadySubmitted as AlreadySubmitted
    from coordinator.refusals import AttemptsExhausted as AttemptsExhausted
    from coordinator.refusals import ClaimEnded as ClaimEnded
    from coordinator.refusals import ClaimLost as ClaimLost
    from coordinator.refusals import Clash as Clash
    from coordinator.refusals import DependenciesUnaccepted as DependenciesUnaccepted
    from coordinator.refusals import DependencyCycle as DependencyCycle
    from coordinator.refusals import DependentsStarted as DependentsStarted
    from coordinator.refusals import JobClosed as JobClosed
    from coordinator.refusals import JobExists as JobExists
    from coordinator.refusals import JobOpen as JobOpen
    from coordinator.refusals import JobUnknown as JobUnknown
    from coordinator.refusals import LeaseLapsed as LeaseLapsed
    from coordinator.refusals import NotClaimed as NotClaimed
    from coordinator.refusals import NotDelivered as NotDelivered
    from coordinator.refusals import NothingToReview as NothingToReview
    from coordinator.refusals import PageUnacknowledged as PageUnacknowledged
    from coordinator.refusals import PathClash as PathClash
    from coordinator.refusals import ReaderSuperseded as ReaderSuperseded
    from coordinator.refusals import ReceiptConflict as ReceiptConflict
    from coordinator.refusals import Refused as Refused
    from coordinator.refusals import SelfReview as SelfReview
    from coordinator.refusals import TokenSuperseded as TokenSuperseded
    from coordinator.refusals import TokenUnknown as TokenUnknown
    from coordinator.refusals import TooManyPaths as TooManyPaths
    from coordinator.refusals import VersionChanged as VersionChanged
    from coordinator.timelines import TimelineLine as TimelineLine
    from coordinator.timelines import timeline as timeline
    from coordinator.tokens import Token as Token
    from coordinator.working import Working as Working

_HOMES = {
    "agent": "Agent",
    "auditing.audit": "Anchor audit",
    "auditing.violation": "Violation",
    "calls": "CommandRecord",
    "claim": "Claim",
    "claims": "Claims",
    "coordinator": "Coordinator",
    "differences": "RowChange",
    "errors": "BadPath Busy Closed CoordinatorError InvalidInput LimitPassed NewerFormat NotAWorkspace NotSubmitted"
    " OutcomeUnknown PreviewFailed Unavailable UnsupportedEventLoop UnsupportedPlatform",
    "explanation": "Cause Explanation",
    "holders": "Holder",
    "jobs": "Job JobRef JobState",
    "kinds": "Kind SubprocessKind Work",
    "log": "Log LogEntry",
    "messages": "Message ReaderPositions Topic",
    "operation": "Operation",
    "operation_refusals": "ApprovalExpired ApprovalMismatch ApprovalUnknown AttemptChanged OperationBound OperationLive"
    " OperationUnknown ReconcileFirst",
    "operations": "AttemptRecord Finding Grant OperationState OperationStatus Preview",
    "pages": "Pages",
    "past": "Past",
    "payloads": "JsonValue Payload",
    "reader": "Reader",
    "reads": "Reservation",
    "reasons": "Reason Why",
    "receipts": "receipt_for",
    "refusals": "AlreadyClaimed AlreadySubmitted AttemptsExhausted ClaimEnded ClaimLost Clash DependenciesUnaccepted"
    " DependencyCycle DependentsStarted JobClosed JobExists JobOpen JobUnknown LeaseLapsed NotClaimed"
    " NotDelivered NothingToReview PageUnacknowledged PathClash ReaderSuperseded ReceiptConflict Refused"
    " SelfReview TokenSuperseded TokenUnknown TooManyPaths VersionChanged",
    "timelines": "TimelineLine timeline",
    "tokens": "Token",
    "working": "Working",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]

logging.getLogger("coordinator").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """PEP 562: find a public name in the module that defines it."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'coordinator' has no attribute {name!r}")
    value = getattr(import_module(f"coordinator.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
