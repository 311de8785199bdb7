"""docs/commands.md holds every command's own help; `python -m tests.test_commands_page` writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from coordinator.surfaces.cli.group import COMMANDS

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"

HEAD = """\
# Commands

<!-- Written by `python -m tests.test_commands_page` from the commands themselves. Do not edit: a test compares. -->

Every command takes `--help`. `python -m coordinator` is the same as `coordinator`. The command line is the extra `cli`.

- **The workspace** is named by `--database`, or by the variable `COORDINATOR_DATABASE`. \
Commands that read never write, and never create a file.
- **`--json`** prints one object, or one object a line, for programs; its fields stay. \
Text for people then goes to standard error.
- **Colour** is used on a terminal only, and not if `NO_COLOR` is set. What agents wrote is shown with its \
control and direction characters written out.
- **Completion:** `eval "$(_COORDINATOR_COMPLETE=bash_source coordinator)"` in bash; `zsh_source` and \
`fish_source` for those.

| exit status | meaning |
|---|---|
| 0 | ok |
| 1 | failure; of `audit`: something does not hold |
| 2 | a call that makes no sense |
| 3 | refused |
| 4 | not found |
| 5 | the claim is lost |
| 6 | an approval is needed |
| 75 | somebody else held the turn for too long |
| 130 | Ctrl-C |
"""


def test_the_page_of_commands_says_what_the_commands_say() -> None:
    assert PAGE.read_text() == page(), "the commands changed: run `python -m tests.test_commands_page`"


def test_every_command_has_an_example_in_its_help() -> None:
    assert [name for name in COMMANDS if "Example" not in help_of(name)] == []


def page() -> str:
    return "".join([HEAD, *sections()])


def sections() -> Iterator[str]:
    for name in sorted(COMMANDS):
        yield f"\n## coordinator {name}\n\n{COMMANDS[name]}\n\n```text\n{help_of(name)}```\n"


def help_of(name: str) -> str:
    asked = subprocess.run(
        [sys.executable, "-m", "coordinator", name, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    return asked.stdout


if __name__ == "__main__":
    PAGE.write_text(page())
