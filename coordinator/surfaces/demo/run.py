"""One run of the demo, from the folder to the report."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from coordinator.surfaces.demo.cast import DemoFailed
from coordinator.surfaces.demo.checks import check_all
from coordinator.surfaces.demo.drive import Played, drive
from coordinator.surfaces.demo.plan import Plan
from coordinator.surfaces.demo.progress import progress
from coordinator.surfaces.demo.report import Report, report
from coordinator.surfaces.demo.workspace import read_workspace


def run(plan: Plan, *, workers: int, database: Path | None, keep: bool) -> Report:
    """Play the demo, and read the log.

    Args:
        database: a new file, which stays; None for one in a temporary folder.
        keep: leave the temporary folder where it is, as is done anyway if something did not hold.

    Raises:
        DemoFailed: it did not come to its end.
    """
    temporary = None
    if database is None:
        temporary = Path(tempfile.mkdtemp(prefix="coordinator-demo-"))
        database = temporary / "demo.db"
    file = database.absolute()
    try:
        with progress() as seen:
            played = asyncio.run(_until_told_to_end(drive(plan, file, workers, seen)))
        workspace = read_workspace(file)
        found = report(plan, workers, played, workspace, check_all(plan, played, workspace, file))
        keep = keep or not found.ok
    except DemoFailed as failed:
        keep = True
        raise DemoFailed(f"{failed}\nkept: {file}") from failed
    finally:
        if temporary is not None and not keep:
            shutil.rmtree(temporary, ignore_errors=True)
    return replace(found, database=str(file)) if keep or temporary is None else found


async def _until_told_to_end(playing: Coroutine[Any, Any, Played]) -> Played:
    """SIGTERM ends it as Ctrl-C does: no process is left behind."""
    task = asyncio.ensure_future(playing)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task
