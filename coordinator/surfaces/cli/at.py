"""`coordinator at`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from typing import Any

import click

from coordinator import limits
from coordinator.clock import to_datetime, utc_text
from coordinator.moments import Moment
from coordinator.printable import printable
from coordinator.stores.inspection import Inspection
from coordinator.surfaces.cli.folding import find, fold, tell
from coordinator.surfaces.cli.shared import FAILED, Command, NotFound, database_option, json_option, print_json
from events.streams import job_stream, operation_stream
from projections.jobs import JobRow, place
from projections.replay import Rows

_STATES = ("claimed", "submitted", "ready", "blocked", "failed", "cancelled", "accepted")

_EXAMPLE = """\b
Example:
  coordinator at 1207 --database work.db
  coordinator at 10m --database work.db --job parser
  coordinator at 2026-12-01T10:42:07 --database work.db --json
"""


@click.command(cls=Command, epilog=_EXAMPLE)
@click.argument("moment")
@click.option("--job", help="Only this job, with what it holds.")
@click.option("--operation", help="Only this operation.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="So many jobs of each state, and so many of the rest, are listed; all are counted.",
)
@database_option()
@json_option
@click.pass_context
def at(
    context: click.Context,
    moment: str,
    job: str | None,
    operation: str | None,
    limit: int,
    database: str,
    as_json: bool,
) -> None:
    """Show the workspace as it was at MOMENT: jobs by state, reservations, topics, readers and operations.

    MOMENT is a position of the log, a time (local, unless it names a zone) or how long ago (10m, 2h). The log is folded
    from nothing up to there; for one job or operation only its own events. At a time, the leases that had run out by
    then have lapsed. All operations are shown, whoever approved them.
    """
    if job is not None and operation is not None:
        raise click.UsageError("name a job or an operation, not both", context)
    stream = None
    if job is not None:
        stream = job_stream(limits.name("--job", job))
    elif operation is not None:
        stream = operation_stream(limits.name("--operation", operation))
    then = Moment()
    with closing(Inspection(database)) as inspection:
        fold(inspection, find(inspection, moment), then, stream)
    if stream is not None and not then.rows["jobs"] and not then.rows["operations"] and not then.problems:
        raise NotFound(f"there was no {stream.replace('/', ' ', 1)} at position {then.position}")
    told = _told(then, limit)
    if as_json:
        print_json({**told, "problems": then.problems})
    else:
        for line in _lines(told):
            click.echo(printable(line))
    tell(then)
    if then.problems:
        context.exit(FAILED)


def _told(then: Moment, limit: int) -> dict[str, Any]:
    rows = then.rows
    counts = dict.fromkeys(_STATES, 0)
    by_state: dict[str, list[JobRow]] = {state: [] for state in _STATES}
    for row in rows["jobs"].values():
        by_state[row.state].append(row)
        counts[row.state] += 1
    topics = sorted(rows["topics"].values(), key=lambda row: row.topic)
    operations = sorted(rows["operations"].values(), key=lambda row: row.first)
    reservations = sorted(rows["reservations"].values(), key=lambda row: row.path)
    readers = sorted(rows["readers"].values(), key=lambda row: (row.topic, row.reader))
    return {
        "position": then.position,
        "at": _text(then.at) if then.position or then.at else None,
        "counts": {
            "jobs": counts,
            "reservations": len(reservations),
            "topics": len(topics),
            "readers": len(readers),
            "operations": len(operations),
        },
        "jobs": [_job(row, rows) for state in _STATES for row in sorted(by_state[state], key=place)[:limit]],
        "reservations": [
            {
                "path": row.path,
                "job": row.job,
                "worker": row.worker,
                "attempt": row.attempt,
                "until": _until(rows, row.job),
            }
            for row in reservations[:limit]
        ],
        "topics": [{"name": row.topic, "last": row.last, "sent_at": _text(row.sent_at)} for row in topics[:limit]],
        "readers": [
            {
                "topic": row.topic,
                "name": row.reader,
                "delivered": row.delivered,
                "acknowledged": row.acknowledged,
                "last": rows["topics"][row.topic].last if row.topic in rows["topics"] else 0,
            }
            for row in readers[:limit]
        ],
        "operations": [
            {
                "id": row.id,
                "kind": row.kind,
                "operator": row.operator,
                "state": row.state,
                "attempt": row.attempt,
                "since": _text(row.since),
            }
            for row in operations[:limit]
        ],
    }


def _job(row: JobRow, rows: Rows) -> dict[str, Any]:
    return {
        "id": row.id,
        "state": row.state,
        "version": row.version,
        "attempt": row.attempt,
        "used": row.used,
        "max_attempts": row.max_attempts,
        "priority": row.priority,
        "worker": row.worker,
        "lease_until": _until(rows, row.id) if row.state == "claimed" else None,
        "since": _text(row.since),
        "reason": row.reason,
        "paths": list(row.paths),
        "depends_on": list(row.depends_on),
    }


def _until(rows: Rows, job: str) -> str | None:
    lease = rows["leases"].get(job_stream(job))
    return None if lease is None else _text(lease.lease_until)


def _text(us: int) -> str:
    return utc_text(to_datetime(us))


def _lines(told: dict[str, Any]) -> Iterator[str]:
    counts = told["counts"]
    when = "before the first event" if told["at"] is None else _local(told["at"])
    yield f"position {told['position']:,}, {when}"
    for state in _STATES:
        if counts["jobs"][state]:
            yield f"{counts['jobs'][state]:,} {state}"
            yield from (_of_job(job) for job in told["jobs"] if job["state"] == state)
    for kind, line in _KINDS.items():
        if counts[kind]:
            yield f"{counts[kind]:,} {kind if counts[kind] > 1 else kind.removesuffix('s')}"
            yield from (f"  {line(row)}" for row in told[kind])


def _of_job(job: dict[str, Any]) -> str:
    parts = [f"  {job['id']}", f"since {_local(job['since'])}", f"attempt {job['attempt']}"]
    if job["worker"] is not None:
        parts.append(f"of {job['worker']}")
    if job["lease_until"] is not None:
        parts.append(f"until {_local(job['lease_until'])}")
    if job["reason"] is not None:
        parts.append(f"({job['reason']})")
    return "  ".join(parts)


def _local(at: str | None) -> str:
    return "–" if at is None else f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"


def _of_reservation(row: dict[str, Any]) -> str:
    return f"{row['path']}  {row['worker']}, job {row['job']}, until {_local(row['until'])}"


def _of_topic(row: dict[str, Any]) -> str:
    return f"{row['name']}  {row['last']:,} messages, the last {_local(row['sent_at'])}"


def _of_reader(row: dict[str, Any]) -> str:
    positions = f"acknowledged {row['acknowledged']:,}, delivered {row['delivered']:,}, of {row['last']:,}"
    return f"{row['name']} of {row['topic']}  {positions}"


def _of_operation(row: dict[str, Any]) -> str:
    attempt = f"attempt {row['attempt']}, approved by {row['operator']}"
    return f"{row['id']}  {row['kind']}, {row['state']} since {_local(row['since'])}, {attempt}"


_KINDS = {
    "reservations": _of_reservation,
    "topics": _of_topic,
    "readers": _of_reader,
    "operations": _of_operation,
}
