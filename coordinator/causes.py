"""Which events of the log a refusal goes back to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from events.commands import CommandRefused
from events.jobs import (
    AttemptEnded,
    JobAdded,
    JobCancelled,
    JobClaimed,
    JobFailed,
    JobLapsed,
    JobRejected,
    JobRenewed,
    JobReserved,
    JobRevoked,
    JobSubmitted,
    job_stream,
)
from events.messages import MessagesAcknowledged, MessagesDelivered, ReaderOpened
from events.operations import (
    OperationFailed,
    OperationLapsed,
    OperationQueued,
    OperationReconciled,
    OperationStarted,
    OperationStopped,
    OperationSucceeded,
    operation_stream,
)
from events.streams import reader_stream
from events.union import AnyEvent

NAMED = 20
"""So many causes of one kind are told, the latest ones."""

Values = Mapping[str, Any]

_GRANTS = (JobClaimed, OperationQueued, ReaderOpened)
_USED_UP = (JobFailed, JobLapsed, JobRevoked, JobRejected)
_ENDS = (AttemptEnded, JobCancelled, OperationSucceeded, OperationFailed, OperationStopped, OperationLapsed)


class Sought(NamedTuple):
    """The latest events of a stream, before the refusal, that it goes back to; at most `most` of them."""

    stream: str
    why: str
    fits: Callable[[AnyEvent], bool]
    most: int = 1


def sought(event: CommandRefused, values: Values) -> list[Sought]:
    """What to look for. Nothing for what the log does not tell of, such as a job that never was."""
    find = _CAUSES.get(event.code)
    return [] if find is None else list(find(_stream(event, values), values))


def _stream(event: CommandRefused, values: Values) -> str:
    if "subject" in values:
        return str(values["subject"])
    if "job" in values:
        return job_stream(str(values["job"]))
    if "operation" in values:
        return operation_stream(str(values["operation"]))
    if "topic" in values and "reader" in values:
        return reader_stream(str(values["topic"]), str(values["reader"]))
    return event.subject


def _is(*types: type) -> Callable[[AnyEvent], bool]:
    return lambda event: isinstance(event, types)


def _counts(event: AnyEvent) -> bool:
    """Whether it is one of those that a job's version counts."""
    return getattr(event, "version", None) is not None


def _granted(stream: str, number: object, why: str) -> Sought:
    def fits(event: AnyEvent) -> bool:
        return isinstance(event, _GRANTS) and _number(event) == number

    return Sought(stream, why, fits)


def _ended(stream: str, attempt: object) -> Sought:
    def fits(event: AnyEvent) -> bool:
        return isinstance(event, _ENDS) and getattr(event, "attempt", None) == attempt

    return Sought(stream, f"how attempt {attempt} ended", fits)


def _number(event: AnyEvent) -> int | None:
    return event.session if isinstance(event, ReaderOpened) else getattr(event, "attempt", None)


def _superseded(stream: str, values: Values) -> Iterable[Sought]:
    old = values.get("attempt", values.get("session"))
    word = "session" if "session" in values else "attempt"
    yield _granted(stream, old, f"{word} {old}, whose token was shown")
    yield _ended(stream, old)
    yield _granted(stream, values.get("current"), f"{word} {values.get('current')}, which took over")


def _over(stream: str, values: Values) -> Iterable[Sought]:
    attempt = values.get("attempt")
    yield _granted(stream, attempt, f"attempt {attempt}, whose token was shown")
    yield _ended(stream, attempt)


def _claimed(stream: str, values: Values) -> Iterable[Sought]:
    yield Sought(stream, "the claim that holds the job", _is(JobClaimed))
    yield Sought(stream, "its last renewal", _is(JobRenewed))


def _state(stream: str, values: Values) -> Iterable[Sought]:
    yield Sought(stream, "what left the job as it is", _counts)


def _version(stream: str, values: Values) -> Iterable[Sought]:
    seen = values.get("seen")

    def fits(event: AnyEvent) -> bool:
        return isinstance(seen, int) and getattr(event, "version", 0) > seen

    yield Sought(stream, f"a change since version {seen}", fits, NAMED)


def _clashes(stream: str, values: Values) -> Iterable[Sought]:
    for clash in values.get("clashes", ()):
        held = clash.get("held")

        def fits(event: AnyEvent, held: object = held) -> bool:
            return isinstance(event, JobClaimed | JobReserved) and held in event.paths

        other = job_stream(str(clash.get("job")))
        yield Sought(other, f"the claim that holds {held}", fits)
        yield Sought(other, "its last renewal", _is(JobRenewed))


def _others(named: str, why: str) -> Callable[[str, Values], Iterable[Sought]]:
    def find(stream: str, values: Values) -> Iterable[Sought]:
        for job in list(values.get(named, ()))[:NAMED]:
            yield Sought(job_stream(str(job)), why, _counts)

    return find


def _attempts(stream: str, values: Values) -> Iterable[Sought]:
    used = values.get("used")
    most = min(NAMED, used) if isinstance(used, int) and used > 0 else NAMED
    yield Sought(stream, "an attempt that came to nothing", _is(*_USED_UP), most)


def _added(stream: str, values: Values) -> Iterable[Sought]:
    yield Sought(stream, "where the job was added", _is(JobAdded))


def _submitted(stream: str, values: Values) -> Iterable[Sought]:
    yield Sought(stream, "the submission", _is(JobSubmitted))


def _operation(stream: str, values: Values) -> Iterable[Sought]:
    attempt = values.get("attempt", values.get("current"))
    for types, why in (
        (OperationQueued, "the approval"),
        (OperationStarted, "its start"),
        (_ENDS, "its end"),
        (OperationReconciled, "what its operator found"),
    ):

        def fits(event: AnyEvent, types: Any = types) -> bool:
            return isinstance(event, types) and attempt in (None, getattr(event, "attempt", None))

        yield Sought(stream, why, fits)


def _reader(stream: str, values: Values) -> Iterable[Sought]:
    yield Sought(stream, "the last page handed out", _is(MessagesDelivered))
    yield Sought(stream, "what was acknowledged last", _is(MessagesAcknowledged))


_CAUSES: dict[str, Callable[[str, Values], Iterable[Sought]]] = {
    "token_superseded": _superseded,
    "reader_superseded": _superseded,
    "lease_lapsed": _over,
    "claim_ended": _over,
    "already_claimed": _claimed,
    "already_submitted": _submitted,
    "self_review": _submitted,
    "job_exists": _added,
    "job_closed": _state,
    "job_open": _state,
    "not_claimed": _state,
    "not_submitted": _state,
    "attempts_exhausted": _attempts,
    "version_changed": _version,
    "path_clash": _clashes,
    "dependencies_unaccepted": _others("dependencies", "what left this dependency as it is"),
    "dependents_started": _others("dependents", "what left this dependent as it is"),
    "reconcile_first": _operation,
    "operation_bound": _operation,
    "operation_live": _operation,
    "attempt_changed": _operation,
    "not_delivered": _reader,
    "page_unacknowledged": _reader,
}
