"""What README.md, docs/ and the example's README show is run: programs as they stand, commands by their names.

A block that cannot be run here says why in the line above it: `<!-- not run: needs a second machine -->`.
"""

import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples" / "reorder" / "README.md"]
TIMEOUT_S = 60

BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n+)?(?P<indent>[ ]*)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
PROGRAM = re.compile(r"\b(?:asyncio|anyio)\.run\(")


class Block(NamedTuple):
    place: str  # README.md:12
    language: str
    text: str
    reason: str | None  # why it is not run


def blocks() -> Iterator[Block]:
    for file in FILES:
        text = file.read_text()
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start("indent")) + 1
            place = f"{file.relative_to(ROOT)}:{line}"
            yield Block(place, found["language"], textwrap.dedent(found["text"]), found["reason"])


def chosen(language: str, *, programs: bool | None = None) -> list[object]:
    return [
        pytest.param(block.text, id=block.place, marks=[pytest.mark.skip(block.reason)] if block.reason else [])
        for block in blocks()
        if block.language == language and programs in (None, bool(PROGRAM.search(block.text)))
    ]


@pytest.mark.parametrize("text", chosen("python", programs=True))
def test_a_program_in_the_documentation_runs_as_it_stands_in_an_empty_folder(text: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(text)
    if '"src"' in text:  # it works on the reader's own code
        (tmp_path / "src" / "shop").mkdir(parents=True)
        for name in ("src/main.py", "src/shop/cart.py", "src/shop/orders.py"):
            (tmp_path / name).write_text("def main():\n    pass\n")

    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, timeout=TIMEOUT_S, capture_output=True, text=True
    )

    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("text", chosen("python", programs=False))
def test_a_fragment_in_the_documentation_is_python(text: str) -> None:
    try:
        compile(text, "fragment", "exec")
    except SyntaxError:  # it stands in an async function
        compile("async def fragment():\n" + textwrap.indent(text, "    "), "fragment", "exec")


@pytest.mark.parametrize("text", chosen("console"))
def test_a_command_in_the_documentation_exists(text: str) -> None:
    for line in re.findall(r"^\$ (.+)$", text, re.MULTILINE):
        match shlex.split(line, comments=True):
            case ["make", *arguments]:
                assert {argument for argument in arguments if "=" not in argument} <= targets(), line
            case ["coordinator", command, *_] if not command.startswith("-"):
                ended = subprocess.run(
                    [sys.executable, "-m", "coordinator", command, "--help"], capture_output=True, text=True
                )
                assert ended.returncode == 0, f"{line}: {ended.stderr}"
            case _:
                pass


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_make_target_that_the_text_names_exists(file: Path) -> None:
    assert set(re.findall(r"`make (\w+)", file.read_text())) <= targets()


def targets() -> set[str]:
    return set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
