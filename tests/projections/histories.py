"""Valid histories: whatever the rules let happen, as envelopes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import Raw

from coordinator.approval import Checked
from coordinator.decisions.attempts import due, lapse
from coordinator.decisions.claims import LookDeeper
from coordinator.decisions.decide import decide
from coordinator.decisions.moment import Moment
from coordinator.refusals import Refused
from coordinator.tokens import Nonce
from coordinator.views import Views
from events.envelope import Envelope
from events.operations import OperationQueued
from events.streams import operation_stream, reader_stream
from events.union import AnyEvent
from projections.readers import ReaderRow, reader_key
from tests.decisions import given as ask
from tests.decisions.given import NOW, nothing_stored
from tests.decisions.given_operations import apply, cancel, fresh, reconcile

_JOBS = ("a", "b", "c")
_ACTORS = ("ada", "bob")
_PATHS = ("src", "src/x", "src/x/y", "SRC/z", "doc", ".")
_SECOND = 1_000_000

_jobs = st.sampled_from(_JOBS)
_actors = st.sampled_from(_ACTORS)
_paths = st.lists(st.sampled_from(_PATHS), max_size=1).map(tuple)
_reviews = st.sampled_from(["other", "anyone", "none"])
_others = st.sets(_jobs, max_size=2).map(sorted).map(tuple)

_attempts = (
    "claim claim claim next next submit submit submit submit accept accept accept accept reopen reopen reopen reserve "
    "renew note fail release wait reject reject revoke cancel revise add"
)
_messages = "send open read acknowledge"
_operations = "apply apply apply start tell keep end end end stop look"
ATTEMPTED = st.tuples(
    st.sampled_from(_attempts.split()),
    _jobs,
    _actors,
    _paths,
    _others,
    _reviews,
    st.integers(1, 3),
    st.sampled_from(["", "", *_messages.split(), *_operations.split()]),
)


class History:
    """Attempts things, one after another, and keeps the events of those that the rules allow."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self._views = Views(nothing_stored())
        self._now = NOW
        self._tokens: dict[str, tuple[str, str]] = {}  # subject -> holder and digest of the newest token

    def attempt(
        self, what: str, job: str, actor: str, paths: Any, others: Any, review: str, number: int, besides: str = ""
    ) -> None:
        """Something about a job and, besides, perhaps something about messages or an operation."""
        if what == "wait":
            self._now += number * ask.LEASE // 2
            for lease in due(self._views, self._now):
                self._keep([lapse(lease, self._views)], None)
        else:
            self._ask(*self._command(what, job, actor, paths, others, review, number))
        if besides in _operations.split():
            attempt = self._attempt(job)
            seen: dict[str, Any] = {"approval": fresh(attempt + 1), "checked": Checked(attempt=attempt)}
            self._ask(*self._about_operation(besides, job, actor, number), **seen)
        elif besides:
            self._ask(*self._about_messages(besides, min(job, "b"), actor, number))

    def _ask(self, command: Any, actor: str, **seen: Any) -> None:
        self._now += 1
        digest = f"digest {len(self.envelopes)}"
        try:
            events = decide(command, self._views, Moment(actor, self._now, Nonce("nonce", digest), **seen))
        except (Refused, LookDeeper):
            return
        self._keep(events, actor)

    def _command(
        self, what: str, job: str, actor: str, paths: Any, others: Any, review: str, number: int
    ) -> tuple[Any, str]:
        row = self._views.jobs.get(job)
        version = 0 if row is None else row.version
        holder, digest = self._tokens.get("job/" + job, (actor, "none"))
        match what:
            case "add":
                given = {"paths": paths, "depends_on": others, "review": review, "max_attempts": number}
                return ask.add(job, **given), actor
            case "revise":
                return ask.revise(job, version, depends_on=others, paths=paths, max_attempts=number), actor
            case "claim":
                return ask.claim(job, version), actor
            case "next":
                return ask.claim_next(), actor
            case "accept":
                return ask.accept(job, version), actor
            case "reject":
                return ask.reject(job, version), actor
            case "revoke":
                return ask.revoke(job, version), actor
            case "cancel":
                return ask.cancel(job, version), actor
            case "reopen":
                return ask.reopen(job, version), actor
            case "reserve":
                return ask.commands.ReservePaths(job=job, token_digest=digest, paths=paths or ("doc",)), holder
            case "renew":
                return ask.commands.RenewClaim(job=job, token_digest=digest, lease_us=number * _SECOND), holder
            case "note":
                return ask.commands.NoteProgress(job=job, token_digest=digest, note=Raw(b"{}")), holder
            case "submit":
                return ask.commands.SubmitJob(job=job, token_digest=digest, result=Raw(b"{}")), holder
            case "fail":
                return ask.commands.FailJob(job=job, token_digest=digest, reason="no luck"), holder
            case _:
                return ask.commands.ReleaseJob(job=job, token_digest=digest), holder

    def _about_messages(self, what: str, topic: str, actor: str, number: int) -> tuple[Any, str]:
        """Each topic has one reader, which both actors open."""
        reader: Any = {"topic": topic, "reader": "night"}
        holder, digest = self._tokens.get(reader_stream(**reader), (actor, "none"))
        row = self._views.readers.get(reader_key(**reader)) or ReaderRow(**reader)
        match what:
            case "send":
                return ask.send(topic), actor
            case "open":
                return ask.open_reader(**reader), actor
            case "read":
                after = row.acknowledged if number == 1 else row.delivered
                return ask.commands.ReadMessages(**reader, token_digest=digest, after=after, limit=number), holder
            case _:
                kept = min(row.acknowledged + number, row.delivered)
                return ask.commands.AcknowledgeMessages(**reader, token_digest=digest, number=kept), holder

    def _attempt(self, operation: str) -> int:
        row = self._views.operations.get(operation)
        return 0 if row is None else row.attempt

    def _about_operation(self, what: str, operation: str, actor: str, number: int) -> tuple[Any, str]:
        """Operations have the ids of the jobs: nothing about the one may touch the other."""
        holder, digest = self._tokens.get(operation_stream(operation), (actor, "none"))
        shown: Any = {"operation": operation, "token_digest": digest}
        match what:
            case "apply":
                return apply(operation, len(self.envelopes) // 2), actor
            case "start":
                return ask.commands.StartOperation(**shown), holder
            case "tell":
                return ask.commands.RecordProgress(**shown, progress=Raw(b"{}")), holder
            case "keep":
                return ask.commands.RenewOperation(**shown), holder
            case "end" if number == 1:
                return ask.commands.SucceedOperation(**shown, result=Raw(b"{}")), holder
            case "end" if number == 2:
                return ask.commands.FailOperation(**shown, reason="no luck"), holder
            case "end":
                return ask.commands.StopOperation(**shown, reason="cancelled"), holder
            case "stop":
                return cancel(operation), actor
            case _:
                finding = "done" if number == 1 else "not done"
                return reconcile(finding, operation, attempt=self._attempt(operation)), actor

    def _keep(self, events: list[AnyEvent] | list[Any], actor: str | None) -> None:
        first = len(self.envelopes) + 1
        envelopes = [
            Envelope(first + index, self._now, actor, None, None, None, None, first, event)
            for index, event in enumerate(events)
        ]
        self._views.evolve(envelopes)
        self.envelopes += envelopes
        for event in events:
            if isinstance(event, ask.jobs.JobClaimed):
                self._tokens[event.stream] = event.worker, event.token_digest
            elif isinstance(event, ask.messages.ReaderOpened):
                self._tokens[event.stream] = event.holder, event.token_digest
            elif isinstance(event, OperationQueued):
                self._tokens[event.stream] = event.operator, event.token_digest


def _played(attempts: list[tuple[Any, ...]]) -> list[Envelope]:
    history = History()
    for attempt in attempts:
        history.attempt(*attempt)
    return history.envelopes


def _adding(job: str) -> st.SearchStrategy[tuple[Any, ...]]:
    earlier = _others.map(lambda others: tuple(other for other in others if other < job))
    return st.tuples(st.just("add"), st.just(job), _actors, _paths, earlier, _reviews, st.integers(1, 3))


HISTORIES = st.builds(
    lambda beginning, attempts: _played([*beginning, *attempts]),
    st.tuples(*map(_adding, _JOBS)),
    # A length of its own: left to itself, Hypothesis prefers lists too short to come to anything.
    st.integers(0, 60).flatmap(lambda length: st.lists(ATTEMPTED, min_size=length, max_size=length)),
)
