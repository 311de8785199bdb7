"""What actors ask for, in the imperative. A command is data: what was asked, normalised, without the receipt.

The fingerprint covers every field that is set, so a default must be None, (), False or UNSET (msgspec leaves those out
by identity), and a field that is added later must have one: then old fingerprints keep their value.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from events.jobs import Review
from events.operations import Artifact, Reconciled
from events.streams import job_stream, operation_stream, reader_stream, topic_stream
from projections.readers import reader_key


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True, gc=False):
    @property
    def subject(self) -> str:
        """The stream that this command is about."""
        raise NotImplementedError

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The (view, key) of the rows that its decision looks at first."""
        return ()


class JobCommand(Command, frozen=True, kw_only=True):
    job: str

    @property
    def subject(self) -> str:
        return job_stream(self.job)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return (("jobs", self.job),)


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that a write of another kind carries: it must hold, or nothing is written."""

    job: str
    token_digest: str


class AddJob(JobCommand, frozen=True, kw_only=True, tag="add_job"):
    payload: Raw
    paths: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    priority: int
    max_attempts: int
    review: Review
    shown: Shown | None = None


class VersionedCommand(JobCommand, frozen=True, kw_only=True):
    """A command about a job as its actor saw it."""

    version: int


class ReviseJob(VersionedCommand, frozen=True, kw_only=True, tag="revise_job"):
    payload: Raw | UnsetType = UNSET
    paths: tuple[str, ...] | UnsetType = UNSET
    depends_on: tuple[str, ...] | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    review: Review | UnsetType = UNSET


class ClaimJob(VersionedCommand, frozen=True, kw_only=True, tag="claim_job"):
    lease_us: int


class ClaimNext(Command, frozen=True, kw_only=True, tag="claim_next"):
    lease_us: int

    @property
    def subject(self) -> str:
        return "jobs"


class ClaimCommand(JobCommand, frozen=True, kw_only=True):
    """Every later write of a claim shows its token, by digest."""

    token_digest: str

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return ("leases", self.subject), ("jobs", self.job)


class RenewClaim(ClaimCommand, frozen=True, kw_only=True, tag="renew_claim"):
    lease_us: int | None = None  # None: as long as before


class NoteProgress(ClaimCommand, frozen=True, kw_only=True, tag="note_progress"):
    note: Raw


class ReservePaths(ClaimCommand, frozen=True, kw_only=True, tag="reserve_paths"):
    paths: tuple[str, ...]


class SubmitJob(ClaimCommand, frozen=True, kw_only=True, tag="submit_job"):
    result: Raw


class FailJob(ClaimCommand, frozen=True, kw_only=True, tag="fail_job"):
    reason: str


class ReleaseJob(ClaimCommand, frozen=True, kw_only=True, tag="release_job"):
    reason: str | None = None


class AcceptJob(VersionedCommand, frozen=True, kw_only=True, tag="accept_job"):
    pass


class RejectJob(VersionedCommand, frozen=True, kw_only=True, tag="reject_job"):
    reason: str


class RevokeClaim(VersionedCommand, frozen=True, kw_only=True, tag="revoke_claim"):
    reason: str


class CancelJob(VersionedCommand, frozen=True, kw_only=True, tag="cancel_job"):
    reason: str | None = None


class ReopenJob(VersionedCommand, frozen=True, kw_only=True, tag="reopen_job"):
    pass


class SendMessage(Command, frozen=True, kw_only=True, tag="send_message"):
    topic: str
    body: Raw
    shown: Shown | None = None

    @property
    def subject(self) -> str:
        return topic_stream(self.topic)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return (("topics", self.topic),)


class ReaderCommand(Command, frozen=True, kw_only=True):
    topic: str
    reader: str

    @property
    def subject(self) -> str:
        return reader_stream(self.topic, self.reader)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return ("leases", self.subject), ("readers", reader_key(self.topic, self.reader)), ("topics", self.topic)


class OpenReader(ReaderCommand, frozen=True, kw_only=True, tag="open_reader"):
    pass


class SessionCommand(ReaderCommand, frozen=True, kw_only=True):
    """Every later write of a reader's session shows its token, by digest."""

    token_digest: str


class ReadMessages(SessionCommand, frozen=True, kw_only=True, tag="read_messages"):
    after: int
    limit: int


class AcknowledgeMessages(SessionCommand, frozen=True, kw_only=True, tag="acknowledge_messages"):
    number: int


class OperationCommand(Command, frozen=True, kw_only=True):
    operation: str

    @property
    def subject(self) -> str:
        return operation_stream(self.operation)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return (("operations", self.operation),)


class ApplyOperation(OperationCommand, frozen=True, kw_only=True, tag="apply_operation"):
    kind: str
    arguments: Raw
    grant_digest: str

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return ("operations", self.operation), ("grants", self.grant_digest), ("leases", self.subject)


class CancelOperation(OperationCommand, frozen=True, kw_only=True, tag="cancel_operation"):
    reason: str | None = None


class ReconcileOperation(OperationCommand, frozen=True, kw_only=True, tag="reconcile_operation"):
    attempt: int
    finding: Reconciled
    note: str
    result: Raw | UnsetType = UNSET


class AttemptCommand(OperationCommand, frozen=True, kw_only=True):
    """Every write of an attempt shows its token, by digest."""

    token_digest: str

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return ("leases", self.subject), ("operations", self.operation)


class StartOperation(AttemptCommand, frozen=True, kw_only=True, tag="start_operation"):
    pass


class RecordProgress(AttemptCommand, frozen=True, kw_only=True, tag="record_progress"):
    progress: Raw


class RenewOperation(AttemptCommand, frozen=True, kw_only=True, tag="renew_operation"):
    pass


class SucceedOperation(AttemptCommand, frozen=True, kw_only=True, tag="succeed_operation"):
    result: Raw
    artifacts: tuple[Artifact, ...] = ()


class FailOperation(AttemptCommand, frozen=True, kw_only=True, tag="fail_operation"):
    reason: str
    stderr: str | None = None


class StopOperation(AttemptCommand, frozen=True, kw_only=True, tag="stop_operation"):
    reason: str
    stderr: str | None = None


AnyCommand = (
    AddJob
    | ReviseJob
    | ClaimJob
    | ClaimNext
    | RenewClaim
    | NoteProgress
    | ReservePaths
    | SubmitJob
    | FailJob
    | ReleaseJob
    | AcceptJob
    | RejectJob
    | RevokeClaim
    | CancelJob
    | ReopenJob
    | SendMessage
    | OpenReader
    | ReadMessages
    | AcknowledgeMessages
    | ApplyOperation
    | CancelOperation
    | ReconcileOperation
    | StartOperation
    | RecordProgress
    | RenewOperation
    | SucceedOperation
    | FailOperation
    | StopOperation
)


def type_of(command: AnyCommand) -> str:
    """The tag of a command, such as `claim_job`."""
    return TAGS[type(command)]


TAGS: dict[type[AnyCommand], str] = {
    command: str(command.__struct_config__.tag)
    for command in AnyCommand.__args__  # type: ignore[attr-defined]
}
