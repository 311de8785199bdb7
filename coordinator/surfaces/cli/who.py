"""`coordinator who`."""

from __future__ import annotations

import click

from coordinator.holders import holders
from coordinator.paths import normalise_one
from coordinator.printable import printable
from coordinator.surfaces.cli.looking import builtins, look
from coordinator.surfaces.cli.shared import Command, database_option, json_option, print_json

_EXAMPLE = """\b
Example:
  coordinator who src/index --database work.db
  coordinator who . --database work.db          everything that is held
"""


@click.command(cls=Command, epilog=_EXAMPLE)
@click.argument("path")
@database_option()
@json_option
def who(path: str, database: str, as_json: bool) -> None:
    """Tell who holds PATH, a folder above it or something inside it: for which job, and until when.

    PATH is relative to the workspace, as jobs name theirs; "." is everything. Exit status 0 also if nobody does.
    """
    wanted = normalise_one("PATH", path)
    found = look(database, lambda seen: holders(seen, wanted))
    if as_json:
        print_json({"path": wanted, "holders": builtins(found)})
        return
    if not found:
        click.echo(printable(f"nobody holds {wanted}, anything above it or below it"))
    for holder in found:
        where = "" if holder.place == "itself" else f", {holder.place} it,"
        until = f"{holder.until.astimezone():%Y-%m-%d %H:%M:%S}"
        click.echo(
            printable(f"{holder.path}{where} is held by {holder.worker} for job {holder.job}")
            + printable(f", attempt {holder.attempt}, until {until}")
        )
