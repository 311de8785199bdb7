"""`coordinator diff`."""

from __future__ import annotations

from contextlib import closing

import click

from coordinator.clock import to_datetime, utc_text
from coordinator.differences import differences
from coordinator.moments import Moment
from coordinator.printable import printable
from coordinator.stores.inspection import Inspection
from coordinator.surfaces.cli.changes import is_told, line
from coordinator.surfaces.cli.folding import find, fold, tell
from coordinator.surfaces.cli.looking import builtins
from coordinator.surfaces.cli.shared import FAILED, Command, database_option, json_option, print_json

_EXAMPLE = """\b
Example:
  coordinator diff 1207 1290 --database work.db
  coordinator diff 10m 0s --database work.db        what happened in the last ten minutes
"""


@click.command(cls=Command, epilog=_EXAMPLE)
@click.argument("before")
@click.argument("after")
@database_option()
@json_option
@click.pass_context
def diff(context: click.Context, before: str, after: str, database: str, as_json: bool) -> None:
    """Show what changed between two moments: the rows added, removed and changed, field by field.

    BEFORE and AFTER are positions of the log, times, or how long ago (10m), as for `coordinator at`. With --json every
    row of every view that differs; in words only those that people ask for.
    """
    with closing(Inspection(database)) as inspection:
        wanted = find(inspection, before), find(inspection, after)
        first, second = sorted(wanted, key=lambda one: (one.position, one.at or 0))
        now = Moment()
        fold(inspection, first._replace(at=None), now)
        then = now.copy()
        fold(inspection, first, then)
        fold(inspection, second, now)
    old, new = (then, now) if wanted == (first, second) else (now, then)
    changes = list(differences(old.rows, new.rows))
    if as_json:
        print_json(
            {
                "before": _moment(old),
                "after": _moment(new),
                "changes": builtins(changes),
                "problems": now.problems,
            }
        )
    else:
        told = [change for change in changes if is_told(change)]
        for change in told:
            click.echo(printable(line(change)))
        click.echo(f"{len(told):,} rows differ between positions {old.position:,} and {new.position:,}")
    tell(now)
    if now.problems:
        context.exit(FAILED)


def _moment(moment: Moment) -> dict[str, object]:
    return {"position": moment.position, "at": utc_text(to_datetime(moment.at)) if moment.at else None}
