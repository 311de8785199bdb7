"""What the demo found, in words and as one JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from coordinator.surfaces.demo.checks import Check
from coordinator.surfaces.demo.drive import Played
from coordinator.surfaces.demo.plan import Plan, printable
from coordinator.surfaces.demo.workspace import Workspace
from coordinator.timelines import TimelineLine, timeline
from events.envelope import Envelope
from events.jobs import JobAdded, JobRenewed
from events.messages import MessagesAcknowledged, ReaderEvent
from events.streams import job_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole outcome.

    Attributes:
        database: where it was kept; None if it was removed.
        story: the timeline of the two jobs that changed hands, and of the page that was handed out twice.
    """

    folder: str
    workers: int
    files: int
    jobs: int
    events: int
    commands: int
    seconds: float
    commands_per_s: float
    checks: list[Check]
    story: list[TimelineLine]
    left_out: list[str]
    unusable: list[str]
    database: str | None = None

    @property
    def ok(self) -> bool:
        return all(check.held for check in self.checks)


def report(plan: Plan, workers: int, played: Played, workspace: Workspace, checks: list[Check]) -> Report:
    commands = sum(1 for envelope in workspace.envelopes if _begins_a_command(envelope))
    changed_hands = {job_stream(mishap.held.job) for mishap in (played.stalled, played.killed)}
    story = [
        envelope
        for envelope in workspace.envelopes
        if envelope.event.stream in changed_hands and not isinstance(envelope.event, JobAdded | JobRenewed)
    ]
    story = sorted([*story, *_handed_out_twice(workspace)], key=lambda envelope: envelope.position)
    return Report(
        folder=printable(plan.folder),
        workers=workers,
        files=len(plan.files),
        jobs=len(plan.pieces) + 1,
        events=len(workspace.envelopes),
        commands=commands,
        seconds=round(played.seconds, 2),
        commands_per_s=round(commands / played.seconds, 1),
        checks=checks,
        story=list(timeline(story)),
        left_out=list(plan.left_out),
        unusable=list(plan.unusable),
    )


def as_json(report: Report) -> str:
    """One object on one line."""
    whole = {**msgspec.to_builtins(report), "story": [line._asdict() for line in report.story], "ok": report.ok}
    return msgspec.json.encode(whole).decode()


def as_text(report: Report) -> str:
    return "\n".join(_paragraphs(report))


def _paragraphs(report: Report) -> Iterator[str]:
    yield f"{report.folder}: {report.files:,} files in {report.jobs:,} jobs, {report.workers} workers and a reviewer"
    yield f"left out: {', '.join(report.left_out)} and hidden folders"
    if report.unusable:
        named = ", ".join(map(repr, report.unusable[:5]))
        yield f"not readable, or named so that they cannot be reserved: {len(report.unusable)}, such as {named}"
    yield ""
    yield "The two jobs that changed hands, and the page that was handed out twice, as the log tells it:"
    yield ""
    yield from _table(report.story)
    yield ""
    for check in report.checks:
        yield f"{'ok    ' if check.held else 'FAILED'}  {check.name}: {check.detail}"
    yield ""
    yield (
        f"{report.jobs:,} jobs, {report.events:,} events, {report.commands:,} commands "
        f"in {report.seconds:.1f} s: {report.commands_per_s:,.0f} commands/s"
    )
    if report.database is not None:
        yield f"kept: {report.database}"


def _table(lines: list[TimelineLine]) -> Iterator[str]:
    rows = [
        (str(line.position), f"{line.at.astimezone():%H:%M:%S.%f}"[:-3], line.actor or "–", line.subject, line.sentence)
        for line in lines
    ]
    places, _, actors, subjects, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for place, at, actor, subject, sentence in rows:
        yield f"  {place:>{places}}  {at}  {actor:<{actors}}  {subject:<{subjects}}  {sentence}"


def _handed_out_twice(workspace: Workspace) -> Iterator[Envelope]:
    """What became of the reader, up to the first page that was acknowledged."""
    for envelope in workspace.envelopes:
        if isinstance(envelope.event, ReaderEvent):
            yield envelope
        if isinstance(envelope.event, MessagesAcknowledged):
            return


def _begins_a_command(envelope: Envelope) -> bool:
    """Lapses are the store's own finding; everything else begins with what some actor asked."""
    return envelope.actor is not None and envelope.command == envelope.position
