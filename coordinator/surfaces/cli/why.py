"""`coordinator why`."""

from __future__ import annotations

import click

from coordinator import limits
from coordinator.printable import printable
from coordinator.surfaces.cli.looking import builtins, look
from coordinator.surfaces.cli.shared import Command, database_option, json_option, print_json
from coordinator.why import why as reasons_of

_EXAMPLE = """\b
Example:
  coordinator why parser --database work.db
  coordinator why parser --database work.db --json
"""


@click.command(cls=Command, epilog=_EXAMPLE)
@click.argument("job")
@database_option()
@json_option
def why(job: str, database: str, as_json: bool) -> None:
    """Tell why JOB cannot be claimed now: all reasons at once, down the chain, and what would change each.

    The state it is in, the dependencies that are not accepted and why not, the paths that others hold and until when,
    the jobs of higher priority that come first at a path, and attempts that are used up. Of a closed job: how that
    came, and what reopening needs. Exit status 0 whether it can be claimed or not, 4 if there is no such job.
    """
    named = limits.name("JOB", job)
    found = look(database, lambda seen: reasons_of(seen, named))
    if as_json:
        print_json(builtins(found))
    else:
        for line in found.lines():
            click.echo(printable(line))
