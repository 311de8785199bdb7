"""The terminals on docs/timeline.md are what the commands print. `python -m tests.test_timeline_page` writes them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.story import late_worker_in

PAGE = Path(__file__).parents[1] / "docs" / "timeline.md"
BLOCK = re.compile(r"```console\n\$ coordinator (.+)\n(?:.*\n)*?```")
TIMEOUT_S = 30


def page(text: str, folder: Path) -> str:
    """The page with what its commands print now."""
    late_worker_in(folder / "work.db")
    return BLOCK.sub(lambda found: f"```console\n$ coordinator {found[1]}\n{printed(found[1], folder)}```", text)


def printed(arguments: str, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "coordinator", *shlex.split(arguments)],
        cwd=folder,
        env={**os.environ, "TZ": "UTC", "COLUMNS": "100", "PYTHONUTF8": "1"},
        timeout=TIMEOUT_S,
        capture_output=True,
        check=True,
    )
    return ended.stdout.decode()


def test_the_terminals_on_the_page_about_timelines_show_what_the_commands_print(tmp_path: Path) -> None:
    assert len(BLOCK.findall(PAGE.read_text())) == 3
    assert page(PAGE.read_text(), tmp_path) == PAGE.read_text(), "run python -m tests.test_timeline_page"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(PAGE.read_text(), Path(folder)))
