"""`coordinator head`."""

from __future__ import annotations

from contextlib import closing

import click

from coordinator.stores.inspection import Inspection
from coordinator.surfaces.cli.shared import Command, database_option, json_option, print_json

_EXAMPLE = """\b
Example:
  coordinator head --database work.db > yesterday
  coordinator audit --database work.db --head $(cat yesterday)
"""


@click.command(cls=Command, epilog=_EXAMPLE)
@database_option()
@json_option
def head(database: str, as_json: bool) -> None:
    """Print where the log ends, as POSITION:DIGEST.

    Note it where nobody who can write to the workspace can change it: an audit against it notices a log that was cut
    off or written anew.
    """
    with closing(Inspection(database)) as inspection:
        found = inspection.head()
    if as_json:
        print_json({"position": found.position, "digest": found.digest.hex()})
    else:
        click.echo(f"{found.position}:{found.digest.hex()}")
