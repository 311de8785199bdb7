"""`coordinator audit`."""

from __future__ import annotations

import re
import sys

import click

from coordinator.auditing.audit import Anchor
from coordinator.auditing.audit import audit as read
from coordinator.printable import printable
from coordinator.surfaces.cli.shared import FAILED, Command, database_option, json_option, print_json, show_progress

_EXAMPLE = """\b
Example:
  coordinator audit --database work.db
  coordinator audit --file copy.db --head 1207:9f86d081884c7d65...
"""


def _anchor(context: click.Context, parameter: click.Parameter, value: str | None) -> Anchor | None:
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,19}):([0-9a-f]{64})", value.strip())
    if found is None:
        raise click.BadParameter("must be a position, a colon and 64 hex digits, as `coordinator head` prints it")
    return Anchor(int(found[1]), found[2])


@click.command(cls=Command, epilog=_EXAMPLE)
@database_option("--file")
@click.option(
    "--head",
    "anchor",
    metavar="POSITION:DIGEST",
    callback=_anchor,
    help="Where the log ended once, as `coordinator head` printed it.",
)
@json_option
@click.pass_context
def audit(context: click.Context, database: str, anchor: Anchor | None, as_json: bool) -> None:
    """Read the whole log by rules of its own, and say everything that cannot have come about by the rules.

    The chain of digests, gaps, log time; one live claim a job, no clashing reservations, every guarded write inside its
    lease, attempts within limits, dependencies accepted before a claim, acknowledged <= delivered <= last, no grant
    twice; then all views folded anew and compared, and SQLite's own check. It never writes. Exit status 0 if all holds.
    """
    found = 0
    positions = 0

    bar = sys.stderr.isatty()

    def progress(done: int, of: int) -> None:
        nonlocal positions
        positions = done
        if bar:
            show_progress(done, of)

    for violation in read(database, anchor=anchor, progress=progress):
        found += 1
        if as_json:
            print_json({"rule": violation.rule, "position": violation.position, "problem": violation.problem})
        else:
            place = "" if violation.position is None else f" at {violation.position}"
            click.echo(printable(f"{violation.rule}{place}: {violation.problem}"))
    if as_json:
        print_json({"ok": not found, "events": positions, "violations": found})
    else:
        click.echo(f"{positions:,} events, {found:,} violations" if found else f"{positions:,} events: all rules hold")
    if found:
        context.exit(FAILED)
