"""Given events, when a command, then events or a refusal: the rules without a store, a clock or chance.

Each helper makes one event or command with ordinary values; a test names only those that matter to it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from coordinator import commands
from coordinator.commands import AnyCommand, Shown
from coordinator.decisions.decide import decide
from coordinator.decisions.moment import Moment
from coordinator.refusals import Refused
from coordinator.stores.interface import Snapshot
from coordinator.stores.memory import MemoryStore
from coordinator.tokens import Nonce
from coordinator.views import Views
from events import jobs, messages
from events.envelope import Envelope
from events.jobs import State
from events.union import AnyEvent

NOW = 1_800_000_000_000_000
LEASE = 60_000_000
UNTIL = NOW + LEASE
NONCE = Nonce("fresh nonce", "digest of the fresh token")


class Rules:
    """The rows that the given events leave, and the rules over them."""

    def __init__(self) -> None:
        self.views = Views(nothing_stored())
        self.position = 0

    def given(self, *events: AnyEvent, by: str = "ada", at: int = NOW) -> None:
        for event in events:
            self.position += 1
            actor = getattr(event, "worker", by)
            envelope = Envelope(self.position, at, actor, None, None, None, None, self.position, event)
            self.views.evolve([envelope])

    def when(self, command: AnyCommand, by: str = "ada", *, now: int = NOW, **told: Any) -> list[AnyEvent]:
        return decide(command, self.views, Moment(by, now, NONCE, **told))

    def refusal(self, command: AnyCommand, by: str = "ada", *, now: int = NOW, **told: Any) -> Refused:
        try:
            events = self.when(command, by, now=now, **told)
        except Refused as refusal:
            return refusal
        raise AssertionError(f"it was not refused, but decided {events}")


def nothing_stored() -> Snapshot:
    """An empty snapshot to lay pending rows over."""
    return MemoryStore().read(lambda snapshot: snapshot)


def token(job: str, attempt: int) -> str:
    return f"digest of the token of {job}, attempt {attempt}"


# Events

DEFAULTS: dict[str, Any] = {"version": 1, "max_attempts": 5, "review": "other"}


def added(job: str, *, state: State = "ready", payload: bytes = b"{}", **fields: Any) -> jobs.JobAdded:
    return jobs.JobAdded(job=job, state=state, payload=Raw(payload), **{**DEFAULTS, **fields})


def revised(job: str, *, version: int = 2, state: State = "ready", **fields: Any) -> jobs.JobRevised:
    values = {**DEFAULTS, "attempt": 0, "used": 0, "payload_at": 1, **fields, "version": version}
    return jobs.JobRevised(job=job, state=state, **values)


def claimed(job: str, by: str = "ada", *, version: int = 2, attempt: int = 1, **fields: Any) -> jobs.JobClaimed:
    values: dict[str, Any] = {"used": attempt, "lease_us": LEASE, "lease_until": UNTIL, "defined": 1, **fields}
    values = {"nonce": f"nonce {attempt}", "token_digest": token(job, attempt), **values}
    return jobs.JobClaimed(job=job, worker=by, version=version, attempt=attempt, **values)


def reserved(job: str, *new: str, **fields: Any) -> jobs.JobReserved:
    return jobs.JobReserved(job=job, **{"attempt": 1, "added": new, "paths": new, **fields})


def submitted(job: str, by: str = "ada", *, result: bytes = b"{}", **fields: Any) -> jobs.JobSubmitted:
    return jobs.JobSubmitted(job=job, worker=by, result=Raw(result), **_ended("submitted", fields))


def failed(job: str, *, state: State = "ready", reason: str = "no luck", **fields: Any) -> jobs.JobFailed:
    return jobs.JobFailed(job=job, reason=reason, **_ended(state, fields))


def released(job: str, *, reason: str | None = None, **fields: Any) -> jobs.JobReleased:
    return jobs.JobReleased(job=job, reason=reason, **_ended("ready", {"used": 0, **fields}))


def lapsed(job: str, *, state: State = "ready", lease_until: int = UNTIL, **fields: Any) -> jobs.JobLapsed:
    return jobs.JobLapsed(job=job, lease_until=lease_until, **_ended(state, fields))


def revoked(job: str, *, state: State = "ready", reason: str = "too slow", **fields: Any) -> jobs.JobRevoked:
    return jobs.JobRevoked(job=job, reason=reason, **_ended(state, fields))


def cancelled(job: str, *, version: int = 2, **fields: Any) -> jobs.JobCancelled:
    return jobs.JobCancelled(job=job, version=version, state="cancelled", **fields)


def accepted(job: str, *, version: int = 4, attempt: int = 1) -> jobs.JobAccepted:
    return jobs.JobAccepted(job=job, version=version, state="accepted", attempt=attempt)


def rejected(job: str, *, version: int = 4, state: State = "ready", attempt: int = 1) -> jobs.JobRejected:
    return jobs.JobRejected(job=job, version=version, state=state, attempt=attempt, reason="incomplete")


def reopened(job: str, *, version: int, state: State = "ready") -> jobs.JobReopened:
    return jobs.JobReopened(job=job, version=version, state=state)


def sent(topic: str, number: int, *, body: bytes = b"{}", **fields: Any) -> messages.MessageSent:
    return messages.MessageSent(topic=topic, number=number, body=Raw(body), **fields)


def opened(topic: str, reader: str, by: str = "bob", *, session: int = 1, acknowledged: int = 0) -> AnyEvent:
    return messages.ReaderOpened(
        topic=topic,
        reader=reader,
        session=session,
        holder=by,
        acknowledged=acknowledged,
        nonce=f"nonce {session}",
        token_digest=token(f"{topic} {reader}", session),
    )


def delivered(topic: str, reader: str, first: int, last: int, *, session: int = 1) -> AnyEvent:
    return messages.MessagesDelivered(topic=topic, reader=reader, session=session, first=first, last=last)


def acknowledged(topic: str, reader: str, number: int, *, session: int = 1) -> AnyEvent:
    return messages.MessagesAcknowledged(topic=topic, reader=reader, session=session, number=number)


def done(job: str, by: str = "ada", **fields: Any) -> list[AnyEvent]:
    """A job from its beginning to its acceptance, which leaves it at version 4."""
    return [added(job, **fields), claimed(job, by), submitted(job, by), accepted(job)]


def _ended(state: State, fields: dict[str, Any]) -> dict[str, Any]:
    return {"version": 3, "state": state, "attempt": 1, "used": 1, **fields}


PARSER: dict[State, list[AnyEvent]] = {
    "blocked": [added("base"), added("parser", state="blocked", depends_on=("base",))],
    "ready": [added("parser")],
    "claimed": [added("parser"), claimed("parser")],
    "submitted": [added("parser"), claimed("parser"), submitted("parser")],
    "accepted": done("parser"),
    "failed": [added("parser", max_attempts=1), claimed("parser"), failed("parser", state="failed")],
    "cancelled": [added("parser"), cancelled("parser")],
}
"""The job `parser`, by the state that it is in. Ada holds or held it."""

VERSION: dict[State, int] = {
    "blocked": 1,
    "ready": 1,
    "claimed": 2,
    "submitted": 3,
    "accepted": 4,
    "failed": 3,
    "cancelled": 2,
}
"""The version in which `PARSER` leaves it."""


# Commands


def add(job: str, *, payload: bytes = b"{}", **fields: Any) -> commands.AddJob:
    return commands.AddJob(
        job=job, payload=Raw(payload), **{"priority": 0, "max_attempts": 5, "review": "other", **fields}
    )


def shown(job: str, attempt: int = 1) -> Shown:
    return Shown(job=job, token_digest=token(job, attempt))


def revise(job: str, version: int, **fields: Any) -> commands.ReviseJob:
    return commands.ReviseJob(job=job, version=version, **fields)


def claim(job: str, version: int, *, lease_us: int = LEASE) -> commands.ClaimJob:
    return commands.ClaimJob(job=job, version=version, lease_us=lease_us)


def claim_next(*, lease_us: int = LEASE) -> commands.ClaimNext:
    return commands.ClaimNext(lease_us=lease_us)


def renew(job: str, attempt: int = 1, *, lease_us: int | None = None) -> commands.RenewClaim:
    return commands.RenewClaim(job=job, token_digest=token(job, attempt), lease_us=lease_us)


def note(job: str, attempt: int = 1) -> commands.NoteProgress:
    return commands.NoteProgress(job=job, token_digest=token(job, attempt), note=Raw(b'{"progress":0.5}'))


def reserve(job: str, *paths: str, attempt: int = 1) -> commands.ReservePaths:
    return commands.ReservePaths(job=job, token_digest=token(job, attempt), paths=paths)


def submit(job: str, attempt: int = 1) -> commands.SubmitJob:
    return commands.SubmitJob(job=job, token_digest=token(job, attempt), result=Raw(b'{"lines":7}'))


def fail(job: str, attempt: int = 1) -> commands.FailJob:
    return commands.FailJob(job=job, token_digest=token(job, attempt), reason="no luck")


def release(job: str, attempt: int = 1, *, reason: str | None = None) -> commands.ReleaseJob:
    return commands.ReleaseJob(job=job, token_digest=token(job, attempt), reason=reason)


def accept(job: str, version: int) -> commands.AcceptJob:
    return commands.AcceptJob(job=job, version=version)


def reject(job: str, version: int) -> commands.RejectJob:
    return commands.RejectJob(job=job, version=version, reason="incomplete")


def revoke(job: str, version: int) -> commands.RevokeClaim:
    return commands.RevokeClaim(job=job, version=version, reason="too slow")


def cancel(job: str, version: int, reason: str | None = None) -> commands.CancelJob:
    return commands.CancelJob(job=job, version=version, reason=reason)


def reopen(job: str, version: int) -> commands.ReopenJob:
    return commands.ReopenJob(job=job, version=version)


def send(topic: str, *, body: bytes = b"{}", **fields: Any) -> commands.SendMessage:
    return commands.SendMessage(topic=topic, body=Raw(body), **fields)


def open_reader(topic: str, reader: str) -> commands.OpenReader:
    return commands.OpenReader(topic=topic, reader=reader)


def read(topic: str, reader: str, after: int, *, limit: int = 100, session: int = 1) -> commands.ReadMessages:
    shown = token(f"{topic} {reader}", session)
    return commands.ReadMessages(topic=topic, reader=reader, token_digest=shown, after=after, limit=limit)


def acknowledge(topic: str, reader: str, number: int, *, session: int = 1) -> commands.AcknowledgeMessages:
    shown = token(f"{topic} {reader}", session)
    return commands.AcknowledgeMessages(topic=topic, reader=reader, token_digest=shown, number=number)
