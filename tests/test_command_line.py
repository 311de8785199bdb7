"""The command line: what it says of itself, and how it turns bad calls down."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.story import late_worker_in

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 60


def coordinator(*arguments: str | Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """`coordinator ARGUMENTS` in a process of its own, in which `before` was run first."""
    program = f"import sys; {before}\nfrom coordinator.__main__ import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        timeout=TIMEOUT_S,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_version_is_that_of_the_installed_package() -> None:
    try:
        expected = version("async-coordinator")
    except PackageNotFoundError:
        expected = "(from its source tree, not installed)"
    else:
        assert expected == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    asked = coordinator("--version")

    assert (asked.returncode, asked.stdout, asked.stderr) == (0, f"coordinator {expected}\n", "")


def test_python_dash_m_runs_the_same_command_line() -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "coordinator", "--help"], cwd=ROOT, timeout=TIMEOUT_S, capture_output=True, text=True
    )

    assert (asked.returncode, asked.stdout) == (0, coordinator("--help").stdout)


def test_help_shows_the_commands_and_an_example() -> None:
    asked = coordinator("--help")

    assert asked.returncode == 0
    assert "Usage: coordinator [OPTIONS]" in asked.stdout
    assert "coordinator audit --database work.db" in asked.stdout


def test_help_for_the_demo_names_its_options_and_what_it_leaves_out() -> None:
    asked = coordinator("demo", "--help")

    assert asked.returncode == 0
    for word in ("--workers", "--database", "--keep", "--json", "[FOLDER]", "test/", "site-packages", "Exit status 0"):
        assert word in asked.stdout


@pytest.mark.parametrize("library", ["click", "rich"])
def test_a_missing_extra_is_named_with_the_line_that_installs_it(library: str) -> None:
    asked = coordinator("demo", before=f"sys.modules[{library!r}] = None")

    assert (asked.returncode, asked.stdout) == (2, "")
    assert f"the command line needs {library}" in asked.stderr
    assert 'pip install "async-coordinator[cli]"' in asked.stderr
    assert "Traceback" not in asked.stderr


def test_without_a_command_the_help_goes_to_stderr() -> None:
    asked = coordinator()

    assert (asked.returncode, asked.stdout) == (2, "")
    assert "Usage: coordinator" in asked.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["dance"], "No such command 'dance'"),
        (["demo", "--loudly"], "No such option"),
        (["demo", "{folder}/nowhere"], "does not exist"),
        (["demo", "{folder}/there.db"], "is a file"),
        (["demo", "{folder}"], "fewer than 3 Python files"),
        (["demo", "--workers", "3"], "4<=x<=64"),
        (["demo", "{folder}", "--database", "{folder}/there.db"], "exists already"),
        (["demo", "{folder}", "--database", "{folder}/nowhere/work.db"], "there is no folder"),
    ],
)
def test_a_call_that_makes_no_sense_is_turned_down_with_status_2(
    arguments: list[str], problem: str, tmp_path: Path
) -> None:
    (tmp_path / "there.db").write_text("")

    asked = coordinator(*(argument.format(folder=tmp_path) for argument in arguments))

    assert (asked.returncode, asked.stdout) == (2, "")
    assert problem in asked.stderr


def test_showing_help_loads_neither_the_demo_nor_the_library() -> None:
    asked = coordinator("--help", before="import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))")

    loaded = asked.stderr.split()
    assert "coordinator.surfaces.cli" in loaded
    assert not {"coordinator.coordinator", "coordinator.surfaces.demo.drive", "aiosqlite", "rich"} & set(loaded)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command", [["timeline"], ["timeline", "--follow"], ["timeline", "--lanes"], ["head", "--json"]]
)
def test_an_output_that_is_full_is_told_in_one_line(command: list[str], tmp_path: Path) -> None:
    database = late_worker_in(tmp_path / "work.db")

    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "coordinator", *command, "--database", str(database)],
            cwd=ROOT,
            timeout=TIMEOUT_S,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert ended.returncode == 1
    assert ended.stderr == "coordinator: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", [["timeline"], ["timeline", "--lanes"], ["head"]])
def test_an_output_that_is_closed_is_no_failure(command: list[str], tmp_path: Path) -> None:
    database = late_worker_in(tmp_path / "work.db")

    ended = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "coordinator", *command, "--database", str(database)],
        cwd=ROOT,
        timeout=TIMEOUT_S,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
