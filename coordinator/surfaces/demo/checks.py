"""What must have held. Each check reads the finished log, and says how it knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from coordinator.surfaces.demo.drive import Interrupted, Mishap, Played
from coordinator.surfaces.demo.index import PieceIndex
from coordinator.surfaces.demo.merged import Artifact, artifact_path, count, encode, merge
from coordinator.surfaces.demo.plan import MERGE, Plan
from coordinator.surfaces.demo.workspace import Workspace
from events.commands import CommandRefused
from events.envelope import Envelope
from events.jobs import JobAccepted, JobClaimed, JobEvent, JobFailed, JobLapsed, JobRejected, JobSubmitted
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.streams import job_stream

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    held: bool
    detail: str


class NotSo(Exception):
    """A check failed: why."""


def check_all(plan: Plan, played: Played, workspace: Workspace, database: Path) -> list[Check]:
    """Every check, also behind one that failed."""
    log = workspace.envelopes
    checks: dict[str, Callable[[], str]] = {
        "every job accepted exactly once": lambda: accepted_once(plan, log),
        "merged index equals one built in a single process": lambda: same_index(played, log, database),
        "the late worker's write refused": lambda: late_write_refused(played.stalled, log),
        "the killed worker's job done by another": lambda: killed_and_replaced(played.killed, log),
        "the killed worker, started anew, goes on": lambda: went_on(played.killed, log),
        "a lost answer asked for again, one effect": lambda: one_effect(played, log),
        "the killed reviewer's page handed out again": lambda: handed_out_again(played.interrupted, log),
        "every submission sent to the reviewer, reviewed exactly once": lambda: reviewed_once(log),
        "chain of digests": lambda: chain_holds(workspace),
        "replay": lambda: replays(workspace),
    }
    found: list[Check] = []
    for name, check in checks.items():
        try:
            found.append(Check(name, True, check()))
        except NotSo as why:
            found.append(Check(name, False, str(why)))
        except (OSError, LookupError, msgspec.DecodeError) as error:
            found.append(Check(name, False, f"cannot be told: {error!r}"))
    return found


def accepted_once(plan: Plan, log: Sequence[Envelope]) -> str:
    jobs = [*(piece.id for piece in plan.pieces), MERGE]
    times = Counter(event.job for _, event in _all(log, JobAccepted))
    for job in jobs:
        if times[job] != 1:
            raise NotSo(f"{job} was accepted {times[job]} times{_last_reason(job, log)}")
    if unplanned := times.keys() - set(jobs):
        raise NotSo(f"nobody planned {', '.join(sorted(unplanned))}")
    return f"{len(jobs):,} of {len(jobs):,}"


def same_index(played: Played, log: Sequence[Envelope], database: Path) -> str:
    """The accepted results in the log, the file that the last job left, and the driver's own index."""
    accepted = {(event.job, event.attempt) for _, event in _all(log, JobAccepted)}
    results = [event for _, event in _all(log, JobSubmitted) if (event.job, event.attempt) in accepted]
    from_log = merge(msgspec.json.decode(event.result, type=PieceIndex) for event in results if event.job != MERGE)
    if from_log != played.alone:
        paths = from_log.keys() | played.alone.keys()
        other = sorted(path for path in paths if from_log.get(path) != played.alone.get(path))
        raise NotSo(f"{len(other)} files differ, the first is {other[0]}")
    last = [msgspec.json.decode(event.result, type=Artifact) for event in results if event.job == MERGE]
    data = encode(played.alone)
    if [artifact.sha256 for artifact in last] != [sha256(data).hexdigest()]:
        raise NotSo(f"the result of {MERGE} says otherwise")
    if artifact_path(database).read_bytes() != data:
        raise NotSo(f"{artifact_path(database).name} holds something else")
    unparsed = sum(1 for file in played.alone.values() if file.problem is not None)
    unparsed_too = f"; {unparsed} do not parse, and are indexed as such" if unparsed else ""
    return f"{count(played.alone):,} definitions in {len(played.alone):,} files{unparsed_too}"


def late_write_refused(stalled: Mishap, log: Sequence[Envelope]) -> str:
    """Although it had read the version that the job was at, and sent a good result."""
    said, job = stalled.came_late, stalled.held.job
    refusals = [
        (envelope, event)
        for envelope, event in _all(log, CommandRefused)
        if event.stream == job_stream(job) and envelope.actor == stalled.worker and event.command == "submit_job"
    ]
    if said is None or said.code is None or len(refusals) != 1:
        raise NotSo(f"the log has {len(refusals)} refusals of a submit of {stalled.worker} for {job}")
    envelope, event = refusals[0]
    if (event.code, envelope.position) != (said.code, said.position):
        raise NotSo(f"position {envelope.position} says {event.code}, {stalled.worker} was told {said.code}")
    if event.code != "token_superseded":
        raise NotSo(f"position {envelope.position} says {event.code}")
    version = max(_versions(job, log, until=envelope.position))
    if version != said.version:
        raise NotSo(f"{stalled.worker} had read version {said.version}, and the job was at {version}")
    _replaced(stalled, log)
    return f"{event.code} at position {envelope.position}, although {stalled.worker} knew version {version}"


def killed_and_replaced(killed: Mishap, log: Sequence[Envelope]) -> str:
    worker = _replaced(killed, log)
    return f"{killed.held.job}, which {killed.worker} held, by {worker}"


def went_on(killed: Mishap, log: Sequence[Envelope]) -> str:
    claims = [
        envelope
        for envelope, event in _all(log, JobClaimed)
        if event.worker == killed.worker and _pid(envelope) == killed.restarted_as
    ]
    if not claims:
        raise NotSo(f"process {killed.restarted_as} claimed nothing as {killed.worker}")
    return f"{killed.worker}, process {killed.restarted_as} after {killed.pid}, claimed {len(claims)} more"


def one_effect(played: Played, log: Sequence[Envelope]) -> str:
    said, actor = played.asked_twice, played.asked_twice_by
    first = [envelope for envelope in log if envelope.actor == actor and envelope.receipt == said.receipt]
    submits = [envelope.position for envelope, event in _all(log, JobSubmitted) if event.job == said.job]
    if [envelope.position for envelope in first] != [said.first] or said.first not in submits:
        raise NotSo(f"receipt {said.receipt} stands at {[envelope.position for envelope in first]}")
    if said.outcomes != ["ok", "repeated"] or said.again != said.first:
        raise NotSo(f"the answers were {said.outcomes}, at {said.first} and {said.again}")
    return f"{actor}'s submit of {said.job}, at position {said.first} both times"


def handed_out_again(interrupted: Interrupted, log: Sequence[Envelope]) -> str:
    """What the killed reviewer had read came to its successor, and at the end everything was acknowledged."""
    read = interrupted.read
    sessions = {event.session: (event, _pid(envelope)) for envelope, event in _all(log, ReaderOpened)}
    if {session: pid for session, (_, pid) in sessions.items()} != {1: interrupted.pid, 2: interrupted.restarted_as}:
        raise NotSo(f"{len(sessions)} sessions were opened: {[pid for _, pid in sessions.values()]}")
    pages = [(event.session, event.first, event.last) for _, event in _all(log, MessagesDelivered)]
    if pages[0] != (1, read.first, read.last) or [session for session, _, _ in pages].count(1) != 1:
        raise NotSo(f"process {interrupted.pid} said that it has read {read.first} to {read.last}; the log has {pages}")
    kept = [(event.session, event.number) for _, event in _all(log, MessagesAcknowledged)]
    again = [number for session, first, last in pages if session == 2 for number in range(first, last + 1)]
    sent = [event.number for _, event in _all(log, MessageSent)]
    if sessions[2][0].acknowledged != 0 or again != sent:
        raise NotSo(f"process {interrupted.restarted_as} was handed {len(again)} of {len(sent)} messages")
    if not kept or kept[-1] != (2, sent[-1]) or any(session == 1 for session, _ in kept):
        raise NotSo(f"of {len(sent)} messages, those up to {kept[-1:]} were acknowledged")
    before = sum(1 for envelope, _ in _reviews(log) if _pid(envelope) == interrupted.pid)
    handed = f"messages {read.first} to {read.last}, of which it had reviewed {before}"
    return f"{handed}; all {len(sent)} were acknowledged, the last of which says that no more submissions come"


def reviewed_once(log: Sequence[Envelope]) -> str:
    """Although messages were handed out twice: each attempt that was submitted has its message, and one review."""
    submitted = [(event.job, event.attempt) for _, event in _all(log, JobSubmitted)]
    sent = {(event.under, event.under_attempt) for _, event in _all(log, MessageSent)}
    reviews = Counter((event.job, event.attempt) for _, event in _reviews(log))
    for job, attempt in submitted:
        if (job, attempt) not in sent:
            raise NotSo(f"no message was sent of attempt {attempt} at {job}")
        if reviews[job, attempt] != 1:
            raise NotSo(f"attempt {attempt} at {job} was reviewed {reviews[job, attempt]} times")
    return f"{len(submitted):,} of {len(submitted):,}"


def chain_holds(workspace: Workspace) -> str:
    if workspace.broken_at is not None:
        raise NotSo(f"broken at position {workspace.broken_at}")
    return f"ok, {len(workspace.envelopes):,} events"


def replays(workspace: Workspace) -> str:
    """Folding the log from nothing gives the rows that are stored."""
    if workspace.differences:
        first = workspace.differences[0]
        raise NotSo(f"{len(workspace.differences)} rows differ, the first is {first.view} {first.key}")
    return f"ok, {workspace.rows:,} rows"


def _replaced(mishap: Mishap, log: Sequence[Envelope]) -> str:
    """Whose attempt was accepted of the job that a worker lost: somebody else's, after the lapse."""
    job, lost = mishap.held.job, mishap.held.attempt
    of_job = [envelope for envelope in log if envelope.event.stream == job_stream(job)]
    claims = {event.attempt: envelope for envelope, event in _all(of_job, JobClaimed)}
    if claims[lost].actor != mishap.worker or _pid(claims[lost]) != mishap.pid:
        raise NotSo(f"attempt {lost} at {job} is not that of {mishap.worker}, process {mishap.pid}")
    if lost not in [event.attempt for _, event in _all(of_job, JobLapsed)]:
        raise NotSo(f"attempt {lost} at {job} did not lapse")
    accepted = [event.attempt for _, event in _all(of_job, JobAccepted)]
    if len(accepted) != 1 or accepted[0] == lost or claims[accepted[0]].actor in (None, mishap.worker):
        raise NotSo(f"of {job}, the attempts {accepted} were accepted")
    return f"{claims[accepted[0]].actor}, attempt {accepted[0]}"


def _all(log: Sequence[Envelope], type_: type[E]) -> Iterator[tuple[Envelope, E]]:
    for envelope in log:
        if isinstance(envelope.event, type_):
            yield envelope, envelope.event


def _reviews(log: Sequence[Envelope]) -> Iterator[tuple[Envelope, JobAccepted | JobRejected]]:
    yield from _all(log, JobAccepted)
    yield from _all(log, JobRejected)


def _versions(job: str, log: Sequence[Envelope], *, until: int) -> Iterator[int]:
    for envelope, event in _all(log, JobEvent):
        version: object = getattr(event, "version", None)
        if event.job == job and envelope.position < until and isinstance(version, int):
            yield version


def _last_reason(job: str, log: Sequence[Envelope]) -> str:
    reasons = [
        event.reason
        for envelope in log
        if isinstance(event := envelope.event, JobFailed | JobRejected) and event.job == job
    ]
    return f"; the last attempt failed: {reasons[-1]}" if reasons else ""


def _pid(envelope: Envelope) -> int | None:
    """Which process wrote it: `origin` is host/pid/start."""
    return None if envelope.origin is None else int(envelope.origin.split("/")[-2])
