"""The log in words: one sentence for each event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from coordinator.printable import cut, printable
from coordinator.refused import local_time, why_refused
from events.commands import CommandRefused
from events.jobs import (
    JobAccepted,
    JobAdded,
    JobBlocked,
    JobCancelled,
    JobClaimed,
    JobFailed,
    JobLapsed,
    JobNoted,
    JobRejected,
    JobReleased,
    JobRenewed,
    JobReopened,
    JobReserved,
    JobRevised,
    JobRevoked,
    JobSubmitted,
    JobUnblocked,
)
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.operations import (
    OperationCancelAsked,
    OperationFailed,
    OperationLapsed,
    OperationProgressed,
    OperationQueued,
    OperationReconciled,
    OperationRenewed,
    OperationStarted,
    OperationStopped,
    OperationSucceeded,
)
from events.union import AnyEvent

_REASON = 160
_PAYLOAD = 80
_STREAMS = 10_000

_decode: Final = msgspec.json.decode


class Grant(NamedTuple):
    """A claim, an attempt at an operation or a reader's session, as long as another has not taken its place."""

    attempt: int
    holder: str
    at: int


def subject_of(stream: str) -> str:
    """What an event is about, for people: a job by its name, everything else by its stream."""
    return printable(stream.removeprefix("job/"))


LookUp = Callable[[str, int], Iterable[Grant]]
"""The latest grants of a stream before a position."""


class Narrator:
    """Tells of one event after the other, and remembers who held what.

    Args:
        look_up: where to find who held something if the narrator was not told, because it did not begin at the
            beginning.
    """

    def __init__(self, look_up: LookUp | None = None) -> None:
        self._look_up = look_up
        self._grants: dict[str, dict[int, Grant]] = {}

    def tell(self, position: int, at: int, event: AnyEvent, context: str | None = None) -> str:
        """A sentence about this event, in which nothing can touch a terminal."""
        if (grant := grant_of(event, at)) is not None:
            self._remember(event.stream, grant)
        told = self._sentence(position, at, event)
        return printable(told if context is None else f"{told} [{context}]")

    def holder(self, stream: str, attempt: int, before: int) -> Grant | None:
        """Who had this attempt, if that can be told."""
        if attempt not in self._grants.get(stream, ()) and self._look_up is not None:
            for grant in self._look_up(stream, before):
                self._remember(stream, grant)
        return self._grants.get(stream, {}).get(attempt)

    def _sentence(self, position: int, at: int, event: AnyEvent) -> str:
        match event:
            case JobLapsed() | JobRevoked() | OperationLapsed():
                grant = self.holder(event.stream, event.attempt, position)
                return _taken_away(event, at, None if grant is None else grant.holder)
            case CommandRefused():
                return _refused(event, at, lambda attempt: self._since(event.stream, attempt, position, at))
            case _:
                return _of_job(event)

    def _since(self, stream: str, attempt: int, before: int, at: int) -> str:
        grant = self.holder(stream, attempt, before)
        return "" if grant is None else f" since {local_time(grant.at, at)}"

    def _remember(self, stream: str, grant: Grant) -> None:
        grants = self._grants.pop(stream, {})
        if len(grants) > 1:
            grants = dict(sorted(grants.items())[-1:])  # a late worker was replaced by the last one
        self._grants[stream] = {**grants, grant.attempt: grant}
        if len(self._grants) > _STREAMS:
            self._grants.pop(next(iter(self._grants)))  # that of which nothing was heard for longest


def grant_of(event: AnyEvent, at: int) -> Grant | None:
    """What an event gave to somebody to hold, if it did."""
    match event:
        case JobClaimed():
            return Grant(event.attempt, event.worker, at)
        case OperationQueued():
            return Grant(event.attempt, event.operator, at)
        case ReaderOpened():
            return Grant(event.session, event.holder, at)
        case _:
            return None


def _taken_away(event: JobLapsed | JobRevoked | OperationLapsed, at: int, holder: str | None) -> str:
    match event:
        case JobLapsed():
            missed = local_time(event.lease_until, at)
            return f"attempt {event.attempt} lapsed: {holder or 'its worker'} did not renew it by {missed}"
        case JobRevoked():
            return f"revoked attempt {event.attempt} of {holder or 'its worker'}" + _because(event.reason)
        case OperationLapsed():
            missed = local_time(event.lease_until, at)
            return f"attempt {event.attempt} was interrupted: nobody renewed it by {missed}, it may be half done"


def _refused(event: CommandRefused, at: int, since: Callable[[int], str]) -> str:
    try:
        values = _decode(event.values, type=dict[str, object])
    except msgspec.DecodeError:
        values = {}
    left_out = f" ({event.left_out} refusals before it were not recorded)" if event.left_out else ""
    return f"{event.command} was refused: {why_refused(event.code, values, at, since)}{left_out}"


def _of_job(event: AnyEvent) -> str:
    match event:
        case JobAdded() | JobRevised():
            return _described(event)
        case JobClaimed():
            paths = f", with {_listed(event.paths)}" if event.paths else ""
            return f"claimed it, attempt {event.attempt}, for {_seconds(event.lease_us)}{paths}"
        case JobRenewed():
            return f"renewed attempt {event.attempt} for {_seconds(event.lease_us)}"
        case JobNoted():
            return "left a note" + _said(event.note)
        case JobReserved():
            return f"reserved {_listed(event.added)} too"
        case JobSubmitted():
            return f"submitted the result of attempt {event.attempt}" + _said(event.result)
        case JobFailed():
            return f"gave attempt {event.attempt} up" + _because(event.reason) + _unless(event.state, "ready")
        case JobReleased():
            return f"released attempt {event.attempt}" + _because(event.reason)
        case JobCancelled():
            taken = "" if event.attempt is None else f", which ended attempt {event.attempt}"
            return f"cancelled{taken}" + _because(event.reason)
        case JobAccepted():
            return f"accepted attempt {event.attempt}"
        case JobRejected():
            return f"rejected attempt {event.attempt}" + _because(event.reason) + _unless(event.state, "ready")
        case JobReopened():
            return f"reopened; it is {event.state}"
        case JobUnblocked():
            return f"ready, as {event.by} was accepted"
        case JobBlocked():
            return f"blocked, as {event.by} was reopened"
        case _:
            return _of_reader(event)


def _described(event: JobAdded | JobRevised) -> str:
    what = "added" if isinstance(event, JobAdded) else "revised"
    under = f", working on {event.under}" if isinstance(event, JobAdded) and event.under is not None else ""
    after = f" until {_listed(event.depends_on)} is accepted" if event.state == "blocked" else ""
    payload = _said(event.payload) if isinstance(event.payload, msgspec.Raw) else ""
    return f"{what}{under}; it is {event.state}{after}{payload}"


def _of_reader(event: AnyEvent) -> str:
    match event:
        case MessageSent():
            under = "" if event.under is None else f", working on {event.under}"
            return f"sent message {event.number}{under}" + _said(event.body)
        case ReaderOpened():
            return f"opened session {event.session}, behind message {event.acknowledged}"
        case MessagesDelivered():
            several = f"messages {event.first} to {event.last}"
            return f"was handed {several if event.last > event.first else f'message {event.last}'}"
        case MessagesAcknowledged():
            return f"acknowledged up to message {event.number}"
        case _:
            return _of_operation(event)


def _of_operation(event: AnyEvent) -> str:
    match event:
        case OperationQueued():
            return f"approved attempt {event.attempt} of {event.kind}" + _said(event.arguments)
        case OperationStarted():
            return f"attempt {event.attempt} started"
        case OperationProgressed():
            return f"attempt {event.attempt} goes on" + _said(event.progress)
        case OperationRenewed():
            return f"renewed attempt {event.attempt} for {_seconds(event.lease_us)}"
        case OperationCancelAsked():
            return f"asked for attempt {event.attempt} to stop" + _because(event.reason)
        case OperationSucceeded():
            return f"attempt {event.attempt} succeeded" + _said(event.result)
        case OperationFailed():
            return f"attempt {event.attempt} failed" + _because(event.reason)
        case OperationStopped():
            return f"attempt {event.attempt} was stopped" + _because(event.reason)
        case OperationReconciled():
            return f"found that attempt {event.attempt} was {event.finding}" + _because(event.note)
        case _:
            raise TypeError(f"there is no sentence for {type(event).__name__}")


def _because(reason: str | None) -> str:
    return "" if reason is None else f": {cut(reason, _REASON)}"


def _unless(state: str, usual: str) -> str:
    """The state that it left, if it tells more than the event."""
    return "" if state == usual else f"; the job is {state}"


def _seconds(us: int) -> str:
    return f"{us / 1_000_000:g} s"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _said(payload: msgspec.Raw) -> str:
    """The beginning of a payload: its fields by name, and what lies deeper as JSON."""
    try:
        fields = _decode(payload, type=dict[str, object])
    except msgspec.DecodeError:
        return ": what cannot be read"
    if not fields:
        return ""
    told = ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in fields.items()
    )
    return f": {cut(told, _PAYLOAD)}"
