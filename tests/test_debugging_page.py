"""docs/debugging.md shows what its program and its commands really print, but for times and processes.

`python -m tests.test_debugging_page` captures them anew.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "debugging.md"
TIMEOUT_S = 60

PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CAPTURED = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

DIFFERENT_EACH_TIME = [
    (re.compile(r"\d{4}-\d{2}-\d{2}[ T]"), ""),
    (re.compile(r"\d{2}:\d{2}:\d{2}(\.\d+)?Z?"), "10:42:07"),
    (re.compile(r"\b\d+ s( ago|, and)"), r"2 s\1"),
    (re.compile(r"  by \S+"), "  by host/4711/10:42:07"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's program has run."""
    return played(tmp_path_factory.mktemp("debugging"))


def played(folder: Path) -> Path:
    found = PROGRAM.search(PAGE.read_text())
    assert found is not None
    (folder / "program.py").write_text(found[1])
    subprocess.run([sys.executable, "program.py"], cwd=folder, check=True, timeout=TIMEOUT_S, capture_output=True)
    return folder


@pytest.mark.parametrize("block", CAPTURED.findall(PAGE.read_text()), ids=lambda block: block.splitlines()[0])
def test_a_captured_terminal_is_what_its_commands_print(block: str, folder: Path) -> None:
    shown = captured(block, folder)

    assert even(block) == even(shown), "captured terminals are out of date: python -m tests.test_debugging_page"


def captured(block: str, folder: Path) -> str:
    """The commands of a block as a terminal shows them, with what they print."""
    return "".join(ran(line, folder) for line in re.findall(r"^\$ (.+)$", block, re.MULTILINE))


def ran(line: str, folder: Path) -> str:
    program, *arguments = shlex.split(line)
    assert program == "coordinator"
    ended = subprocess.run(
        [sys.executable, "-m", "coordinator", *arguments], cwd=folder, timeout=TIMEOUT_S, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return f"$ {line}\n{ended.stdout}"


def even(text: str) -> str:
    for pattern, instead in DIFFERENT_EACH_TIME:
        text = pattern.sub(instead, text)
    return text


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = played(Path(name))
        text = CAPTURED.sub(lambda found: f"```console\n{captured(found[1], folder)}```", PAGE.read_text())
    PAGE.write_text(re.sub(r"  by [^/\s]+/\d+/\S+", "  by host/4711/2026-12-01T10:41:58Z", text))


if __name__ == "__main__":
    main()
