"""What users get: the wheel is built, installed away from the tree, and used among strangers of the same names."""

import os
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300  # an installation from a slow index

PROGRAM = """
import asyncio
from coordinator import Coordinator

async def main():
    async with Coordinator.open("work.db") as coordinator:
        ada = coordinator.agent("ada")
        claim = await ada.claim(await ada.add_job("parser", {"rules": 12}, paths=["src/parser"], review="none"))
        async with claim.working():
            await claim.submit({"rules": 12})
        print((await coordinator.job("parser")).state)

asyncio.run(main())
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own, which knows nothing of the tree."""

    folder: Path

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        program = self.folder / "bin" / command[0]
        return subprocess.run(
            [program, *command[1:]], cwd=cwd, env=clean, timeout=TIMEOUT_S, capture_output=True, text=True
        )

    def python(self, text: str, *, cwd: Path) -> str:
        (cwd / "program.py").write_text(text)
        ended = self.run("python", "program.py", cwd=cwd)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()


def new_environment(folder: Path, *requirements: str) -> Environment:
    venv.create(folder, with_pip=True)
    environment = Environment(folder)
    ended = environment.run(
        *("python", "-m", "pip", "install", "-qq", "-c", str(ROOT / "constraints.txt"), *requirements), cwd=folder
    )
    assert ended.returncode == 0, ended.stderr
    return environment


def build(*options: str, into: Path, temporary: Path) -> dict[str, Path]:
    """What was built, by the end of its name."""
    temporary.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), *options, str(ROOT)]
    ended = subprocess.run(command, env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return {file.suffix: file for file in into.iterdir()}


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the builds put what they need for a while."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, temporary: Path) -> dict[str, Path]:
    """The sdist, and the wheel that was built from it."""
    return build(into=tmp_path_factory.mktemp("dist"), temporary=temporary)


@pytest.fixture(scope="module")
def among_strangers(tmp_path_factory: pytest.TempPathFactory, built: dict[str, Path]) -> Environment:
    """The wheel without extras, beside opensearch-py, which brings the Events of PyPI: import name `events`."""
    return new_environment(tmp_path_factory.mktemp("strangers"), str(built[".whl"]), "opensearch-py")


@pytest.fixture(scope="module")
def with_cli(tmp_path_factory: pytest.TempPathFactory, built: dict[str, Path]) -> Environment:
    return new_environment(tmp_path_factory.mktemp("cli"), f"async-coordinator[cli] @ {built['.whl'].as_uri()}")


def test_the_wheel_owns_one_import_name_and_says_that_it_is_typed(built: dict[str, Path]) -> None:
    files = ZipFile(built[".whl"]).namelist()

    assert {file.split("/")[0] for file in files} == {"coordinator", "async_coordinator-0.1.0.dist-info"}
    assert {"coordinator/py.typed", "coordinator/events/jobs.py", "coordinator/projections/jobs.py"} <= set(files)
    assert "async_coordinator-0.1.0.dist-info/licenses/LICENSE" in files


def test_the_wheel_from_the_sdist_is_byte_for_byte_the_wheel_from_the_tree(
    built: dict[str, Path], tmp_path: Path, temporary: Path
) -> None:
    from_the_tree = build("--wheel", into=tmp_path, temporary=temporary)

    assert from_the_tree[".whl"].read_bytes() == built[".whl"].read_bytes()


def test_the_sdist_brings_the_tests_and_what_they_need(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as sdist:
        files = {name.split("/", 1)[1] for name in sdist.getnames()}

    assert {"Makefile", "build_hook.py", "constraints.txt", "docs/api.txt", "tests/test_layers.py"} <= files
    assert not [file for file in files if file.startswith((".venv", ".git/")) or "__pycache__" in file]


def test_building_leaves_nothing_behind(built: dict[str, Path], temporary: Path) -> None:
    assert list(temporary.iterdir()) == []


def test_the_wheel_works_beside_a_distribution_whose_import_name_is_events(
    among_strangers: Environment, tmp_path: Path
) -> None:
    strangers = "import opensearchpy, events; print(events.Events.__module__)"

    assert among_strangers.python(strangers, cwd=tmp_path) == "events.events"
    assert among_strangers.python(PROGRAM, cwd=tmp_path) == "accepted"


def test_the_wheel_works_in_a_folder_with_an_events_and_a_projections_of_its_own(
    among_strangers: Environment, tmp_path: Path
) -> None:
    (tmp_path / "events.py").write_text("MINE = True")
    (tmp_path / "projections").mkdir()
    (tmp_path / "projections" / "__init__.py").write_text("MINE = True")

    theirs = "import events, projections; print(events.MINE, projections.MINE)"

    assert among_strangers.python(PROGRAM + theirs, cwd=tmp_path).split() == ["accepted", "True", "True"]


@pytest.mark.parametrize("command", [["coordinator"], ["python", "-m", "coordinator"]])
@pytest.mark.parametrize("arguments", [["--version"], ["demo"]])
def test_without_the_extra_the_command_line_says_how_to_get_it(
    among_strangers: Environment, tmp_path: Path, command: list[str], arguments: list[str]
) -> None:
    ended = among_strangers.run(*command, *arguments, cwd=tmp_path)

    assert ended.returncode != 0
    assert 'pip install "async-coordinator[cli]"' in ended.stderr
    assert "Traceback" not in ended.stderr


def test_with_the_extra_the_command_line_knows_its_version_and_the_demo(with_cli: Environment, tmp_path: Path) -> None:
    version = with_cli.run("coordinator", "--version", cwd=tmp_path)
    demo = with_cli.run("python", "-m", "coordinator", "demo", "--help", cwd=tmp_path)

    assert "0.1.0" in version.stdout, version.stderr
    assert "--workers" in demo.stdout, demo.stderr


def test_every_module_of_the_wheel_can_be_imported(with_cli: Environment, tmp_path: Path) -> None:
    program = """
import coordinator, importlib, pkgutil, sys
for module in pkgutil.walk_packages(coordinator.__path__, "coordinator."):
    importlib.import_module(module.name)
print([name for name in sys.modules if name.split(".")[0] in ("events", "projections")])
"""

    assert with_cli.python(program, cwd=tmp_path) == "[]"
