"""`coordinator demo`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

_EXAMPLE = """\b
Example:
  coordinator demo              index Python's standard library
  coordinator demo src --json   the same with a folder of yours, and one JSON object at the end
"""


@click.command(epilog=_EXAMPLE)
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--workers",
    type=click.IntRange(4, 64),
    default=4,
    show_default=True,
    help="Worker processes: one stalls, one is killed, two take over.",
)
@click.option(
    "--database",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A new file to use, which stays. Default: one in a temporary folder that is removed at the end.",
)
@click.option("--keep", is_flag=True, help="Leave the temporary folder where it is, and say where.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output instead of text.")
@click.pass_context
def demo(
    context: click.Context, folder: Path | None, workers: int, database: Path | None, keep: bool, as_json: bool
) -> None:
    """Let real processes index the Python files in FOLDER, one job for each package or module.

    Every worker claims a job, reads its files and submits what they define; a reviewer hears of it by a topic, reads
    the files again and accepts. On the way one worker is stopped until its lease has lapsed and somebody else has its
    job, another is killed, one loses an answer and asks again, and the reviewer is killed before it acknowledges what
    it has read. At the end the log has to tell of every job accepted exactly once, of the late worker refused and the
    page handed out again, and fold into the same rows; the merged index has to be the one that a single process builds.
    Exit status 0 only if all of that held.

    FOLDER is the standard library of the running Python if none is named, without its regression tests (test/).
    Folders called site-packages, dist-packages or __pycache__ are left out everywhere, and so are hidden ones. Nothing
    is written into FOLDER.
    """
    from coordinator.surfaces.demo import plan as plans
    from coordinator.surfaces.demo.cast import DemoFailed
    from coordinator.surfaces.demo.merged import artifact_path
    from coordinator.surfaces.demo.report import as_json as in_json
    from coordinator.surfaces.demo.report import as_text
    from coordinator.surfaces.demo.run import run

    for file in (database, database and artifact_path(database)):
        if file is not None and file.exists():
            raise click.BadParameter(f"{file} exists already", context, param_hint="--database")
    if database is not None and not database.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {database.absolute().parent}", context, param_hint="--database")
    chosen = plans.plan(folder) if folder is not None else plans.plan(plans.standard_library(), without=("test",))
    if len(chosen.pieces) < plans.PIECES_MIN:
        problem = f"there are fewer than {plans.PIECES_MIN} Python files below {chosen.folder}"
        raise click.BadParameter(problem, context, param_hint="FOLDER")
    try:
        report = run(chosen, workers=workers, database=database, keep=keep)
    except DemoFailed as failed:
        click.echo(f"the demo failed: {failed}", err=True)
        if as_json:
            click.echo(json.dumps({"ok": False, "problem": str(failed)}))
        context.exit(1)
    except (KeyboardInterrupt, asyncio.CancelledError) as stopped:
        click.echo("stopped; its processes are gone", err=True)
        context.exit(130 if isinstance(stopped, KeyboardInterrupt) else 143)
    click.echo(in_json(report) if as_json else as_text(report))
    context.exit(0 if report.ok else 1)
