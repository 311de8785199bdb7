"""One of everything that is stored: each event and each command, with all of its fields set and with as few as can be.

A name, once written to a golden file, keeps its meaning for ever: where a type gets another field, its new shape gets a
new name here, such as `job.added.2`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from coordinator import commands
from coordinator.commands import AnyCommand, Shown
from events import jobs, messages, operations
from events.commands import CommandRefused
from events.union import AnyEvent

_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_ENDED: dict[str, Any] = {"job": "src/parser.py", "version": 3, "attempt": 2, "used": 1}
_PAYLOAD = Raw('{"deep":{"list":[1,2.5,null,true]},"text":"Äpfel \\"&\\" 本"}'.encode())

EVENTS: dict[str, AnyEvent] = {
    "job.added": jobs.JobAdded(
        job="src/parser.py",
        version=1,
        state="blocked",
        paths=("doc/Äpfel", "src/parser"),
        depends_on=("schema", "lexer"),
        priority=-7,
        max_attempts=3,
        review="anyone",
        payload=_PAYLOAD,
        under="planning",
        under_attempt=2,
    ),
    "job.added.least": jobs.JobAdded(
        job="a", version=1, state="ready", max_attempts=5, review="other", payload=Raw(b"{}")
    ),
    "job.revised": jobs.JobRevised(
        job="src/parser.py",
        version=2,
        state="ready",
        paths=("src/parser",),
        depends_on=("schema",),
        priority=9,
        max_attempts=4,
        review="none",
        payload=_PAYLOAD,
        payload_at=17,
        attempt=2,
        used=1,
        dropped=("lexer",),
    ),
    "job.revised.least": jobs.JobRevised(
        job="a", version=2, state="failed", max_attempts=1, review="other", attempt=0, used=0
    ),
    "job.claimed": jobs.JobClaimed(
        job="src/parser.py",
        version=2,
        worker="ada",
        attempt=2,
        used=1,
        nonce="00112233445566778899aabbccddeeff",
        token_digest=_DIGEST,
        lease_us=60_000_000,
        lease_until=1_767_225_660_000_000,
        paths=("doc/Äpfel", "src/parser"),
        defined=1,
        reason="attempt 1 of bob lapsed",
    ),
    "job.claimed.least": jobs.JobClaimed(
        job="a",
        version=2,
        worker="ada",
        attempt=1,
        used=1,
        nonce="00",
        token_digest=_DIGEST,
        lease_us=1_000_000,
        lease_until=1_767_225_601_000_000,
        defined=1,
    ),
    "job.renewed": jobs.JobRenewed(
        job="src/parser.py", attempt=2, lease_us=60_000_000, lease_until=1_767_225_660_000_000
    ),
    "job.noted": jobs.JobNoted(job="src/parser.py", attempt=2, note=_PAYLOAD),
    "job.reserved": jobs.JobReserved(
        job="src/parser.py", attempt=2, added=("src",), absorbed=("src/parser",), paths=("doc", "src")
    ),
    "job.reserved.least": jobs.JobReserved(job="a", attempt=1),
    "job.submitted": jobs.JobSubmitted(
        **_ENDED, state="submitted", paths=("doc", "src"), worker="ada", result=_PAYLOAD
    ),
    "job.submitted.least": jobs.JobSubmitted(**_ENDED, state="submitted", worker="ada", result=Raw(b"{}")),
    "job.failed": jobs.JobFailed(**_ENDED, state="failed", paths=("src",), reason="ValueError: no\nluck"),
    "job.failed.least": jobs.JobFailed(**_ENDED, state="ready", reason="x"),
    "job.released": jobs.JobReleased(**_ENDED, state="ready", paths=("src",), reason="lunch"),
    "job.released.least": jobs.JobReleased(**_ENDED, state="ready"),
    "job.lapsed": jobs.JobLapsed(**_ENDED, state="ready", paths=("src",), lease_until=1_767_225_660_000_000),
    "job.lapsed.least": jobs.JobLapsed(**_ENDED, state="failed", lease_until=1_767_225_660_000_000),
    "job.revoked": jobs.JobRevoked(**_ENDED, state="ready", paths=("src",), reason="too slow"),
    "job.revoked.least": jobs.JobRevoked(**_ENDED, state="failed", reason="x"),
    "job.cancelled": jobs.JobCancelled(
        job="src/parser.py", version=3, state="cancelled", attempt=2, paths=("src",), reason="not needed"
    ),
    "job.cancelled.least": jobs.JobCancelled(job="a", version=2, state="cancelled"),
    "job.accepted": jobs.JobAccepted(job="src/parser.py", version=4, state="accepted", attempt=2),
    "job.rejected": jobs.JobRejected(job="src/parser.py", version=4, state="ready", attempt=2, reason="no tests"),
    "job.reopened": jobs.JobReopened(job="src/parser.py", version=5, state="blocked"),
    "job.unblocked": jobs.JobUnblocked(job="src/parser.py", by="schema"),
    "job.blocked": jobs.JobBlocked(job="src/parser.py", by="schema"),
    "command.refused": CommandRefused(
        command="claim_job",
        code="version_changed",
        subject="job/src/parser.py",
        values=Raw(b'{"job":"src/parser.py","seen":1,"current":2}'),
        receipt_digest=_DIGEST,
        left_out=12,
    ),
    "command.refused.least": CommandRefused(
        command="claim_next", code="x", subject="jobs", values=Raw(b"{}"), receipt_digest=_DIGEST
    ),
}

_HELD: dict[str, Any] = {"job": "src/parser.py", "token_digest": _DIGEST}
_SEEN: dict[str, Any] = {"job": "src/parser.py", "version": 3}

EVENTS |= {
    "message.sent": messages.MessageSent(
        topic="builds/Äpfel", number=3, body=_PAYLOAD, under="src/parser.py", under_attempt=2
    ),
    "message.sent.least": messages.MessageSent(topic="a", number=1, body=Raw(b"{}")),
    "reader.opened": messages.ReaderOpened(
        topic="builds/Äpfel",
        reader="50% of it",
        session=2,
        holder="bob",
        acknowledged=7,
        nonce="00112233445566778899aabbccddeeff",
        token_digest=_DIGEST,
    ),
    "messages.delivered": messages.MessagesDelivered(topic="builds", reader="bob", session=1, first=8, last=107),
    "messages.acknowledged": messages.MessagesAcknowledged(topic="builds", reader="bob", session=1, number=107),
}

COMMANDS: dict[str, AnyCommand] = {
    "add_job": commands.AddJob(
        job="src/parser.py",
        payload=_PAYLOAD,
        paths=("doc/Äpfel", "src/parser"),
        depends_on=("schema", "lexer"),
        priority=-7,
        max_attempts=3,
        review="anyone",
        shown=Shown(job="planning", token_digest=_DIGEST),
    ),
    "add_job.least": commands.AddJob(job="a", payload=Raw(b"{}"), priority=0, max_attempts=5, review="other"),
    "revise_job": commands.ReviseJob(
        **_SEEN,
        payload=_PAYLOAD,
        paths=("src/parser",),
        depends_on=("schema",),
        priority=9,
        max_attempts=4,
        review="none",
    ),
    "revise_job.least": commands.ReviseJob(**_SEEN),
    "revise_job.to_nothing": commands.ReviseJob(**_SEEN, payload=Raw(b"{}"), paths=(), depends_on=(), priority=0),
    "claim_job": commands.ClaimJob(**_SEEN, lease_us=60_000_000),
    "claim_next": commands.ClaimNext(lease_us=60_000_000),
    "renew_claim": commands.RenewClaim(**_HELD, lease_us=30_000_000),
    "renew_claim.least": commands.RenewClaim(**_HELD),
    "note_progress": commands.NoteProgress(**_HELD, note=_PAYLOAD),
    "reserve_paths": commands.ReservePaths(**_HELD, paths=("doc", "src")),
    "submit_job": commands.SubmitJob(**_HELD, result=_PAYLOAD),
    "fail_job": commands.FailJob(**_HELD, reason="ValueError: no\nluck"),
    "release_job": commands.ReleaseJob(**_HELD, reason="lunch"),
    "release_job.least": commands.ReleaseJob(**_HELD),
    "accept_job": commands.AcceptJob(**_SEEN),
    "reject_job": commands.RejectJob(**_SEEN, reason="no tests"),
    "revoke_claim": commands.RevokeClaim(**_SEEN, reason="too slow"),
    "cancel_job": commands.CancelJob(**_SEEN, reason="not needed"),
    "cancel_job.least": commands.CancelJob(**_SEEN),
    "reopen_job": commands.ReopenJob(**_SEEN),
}

_SESSION: dict[str, Any] = {"topic": "builds/Äpfel", "reader": "50% of it", "token_digest": _DIGEST}

COMMANDS |= {
    "send_message": commands.SendMessage(
        topic="builds/Äpfel", body=_PAYLOAD, shown=Shown(job="planning", token_digest=_DIGEST)
    ),
    "send_message.least": commands.SendMessage(topic="a", body=Raw(b"{}")),
    "open_reader": commands.OpenReader(topic="builds/Äpfel", reader="50% of it"),
    "read_messages": commands.ReadMessages(**_SESSION, after=0, limit=100),
    "acknowledge_messages": commands.AcknowledgeMessages(**_SESSION, number=107),
}

_ATTEMPT: dict[str, Any] = {"operation": "reorder/Äpfel 7", "attempt": 2}
_FILES = (
    operations.Artifact(path="orders/Äpfel.csv", size=70_001, sha256=_DIGEST),
    operations.Artifact(path="log", size=0, sha256=_DIGEST),
)
_QUEUED: dict[str, Any] = {
    "kind": "reorder",
    "operator": "ada",
    "plan_digest": _DIGEST,
    "grant_digest": _DIGEST,
    "nonce": "00112233445566778899aabbccddeeff",
    "token_digest": _DIGEST,
    "lease_us": 60_000_000,
    "lease_until": 1_767_225_660_000_000,
}

EVENTS |= {
    "operation.queued": operations.OperationQueued(
        **_ATTEMPT, **_QUEUED, arguments=_PAYLOAD, plan=_PAYLOAD, first=70_000
    ),
    "operation.queued.least": operations.OperationQueued(
        operation="a", attempt=1, **_QUEUED, arguments=Raw(b"{}"), plan=Raw(b"{}")
    ),
    "operation.started": operations.OperationStarted(**_ATTEMPT),
    "operation.progressed": operations.OperationProgressed(**_ATTEMPT, progress=_PAYLOAD),
    "operation.renewed": operations.OperationRenewed(
        **_ATTEMPT, lease_us=60_000_000, lease_until=1_767_225_660_000_000
    ),
    "operation.cancel_asked": operations.OperationCancelAsked(**_ATTEMPT, reason="the wrong supplier"),
    "operation.cancel_asked.least": operations.OperationCancelAsked(operation="a", attempt=1),
    "operation.succeeded": operations.OperationSucceeded(**_ATTEMPT, result=_PAYLOAD, artifacts=_FILES),
    "operation.succeeded.least": operations.OperationSucceeded(operation="a", attempt=1, result=Raw(b"{}")),
    "operation.failed": operations.OperationFailed(**_ATTEMPT, reason="ValueError: no\nluck", stderr="Traceback …\n"),
    "operation.failed.least": operations.OperationFailed(operation="a", attempt=1, reason="x"),
    "operation.stopped": operations.OperationStopped(**_ATTEMPT, reason="cancelled", stderr="Terminated\n"),
    "operation.stopped.least": operations.OperationStopped(operation="a", attempt=1, reason="x"),
    "operation.lapsed": operations.OperationLapsed(**_ATTEMPT, lease_until=1_767_225_660_000_000),
    "operation.reconciled": operations.OperationReconciled(
        **_ATTEMPT, finding="done", note="the draft is there", result=_PAYLOAD
    ),
    "operation.reconciled.least": operations.OperationReconciled(
        operation="a", attempt=1, finding="not done", note="no draft"
    ),
}

_RUNNING: dict[str, Any] = {"operation": "reorder/Äpfel 7", "token_digest": _DIGEST}

COMMANDS |= {
    "apply_operation": commands.ApplyOperation(
        operation="reorder/Äpfel 7", kind="reorder", arguments=_PAYLOAD, grant_digest=_DIGEST
    ),
    "cancel_operation": commands.CancelOperation(operation="reorder/Äpfel 7", reason="the wrong supplier"),
    "cancel_operation.least": commands.CancelOperation(operation="a"),
    "reconcile_operation": commands.ReconcileOperation(
        **_ATTEMPT, finding="done", note="the draft is there", result=_PAYLOAD
    ),
    "reconcile_operation.least": commands.ReconcileOperation(
        operation="a", attempt=1, finding="not done", note="no draft"
    ),
    "start_operation": commands.StartOperation(**_RUNNING),
    "record_progress": commands.RecordProgress(**_RUNNING, progress=_PAYLOAD),
    "renew_operation": commands.RenewOperation(**_RUNNING),
    "succeed_operation": commands.SucceedOperation(**_RUNNING, result=_PAYLOAD, artifacts=_FILES),
    "succeed_operation.least": commands.SucceedOperation(**_RUNNING, result=Raw(b"{}")),
    "fail_operation": commands.FailOperation(**_RUNNING, reason="ValueError: no\nluck", stderr="Traceback …\n"),
    "fail_operation.least": commands.FailOperation(**_RUNNING, reason="x"),
    "stop_operation": commands.StopOperation(**_RUNNING, reason="cancelled", stderr="Terminated\n"),
    "stop_operation.least": commands.StopOperation(**_RUNNING, reason="x"),
}
