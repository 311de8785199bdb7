"""Breaks one protection after the other, each in a copy of the tree, and expects the named test to notice.

    python -m tests.mutants [WORD]      only the lines of tests/mutants.toml that contain WORD

A mutant that survives means that a protection could be lost without anybody hearing of it.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests import contained

ROOT = Path(__file__).parents[1]
IN_PARALLEL = 2
TIMEOUT_S = 120
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".hypothesis", ".*_cache", "build", "dist")

# How pytest ends: 1 when a test failed; 2 to 5 when it could not run what was asked for.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Mutant:
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


class Broken(Exception):
    """The line itself is wrong: it says nothing about the protection."""


def main() -> int:
    word = " ".join(sys.argv[1:])
    mutants = [mutant for mutant in read_mutants(ROOT / "tests" / "mutants.toml") if word in repr(mutant)]
    if not mutants:
        print(f"no mutant matches {word!r}")
        return 1

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(IN_PARALLEL):
            copies.put(copy_tree(Path(folder, str(number), "tree")))
        with ThreadPoolExecutor(IN_PARALLEL) as pool:
            if complaint := check_unmutated(copies, mutants):
                print(complaint)
                return 1
            killed = sum(pool.map(lambda mutant: is_killed(mutant, copies), mutants))

    print(f"{len(mutants)} mutants, {killed} killed")
    return 0 if killed == len(mutants) else 1


def read_mutants(file: Path) -> list[Mutant]:
    return [
        Mutant(
            line["file"],
            line["text"],
            line["replacement"],
            tuple([line["test"]] if isinstance(line["test"], str) else line["test"]),
            line["why"],
        )
        for line in tomllib.loads(file.read_text()).get("mutant", [])
    ]


def copy_tree(copy: Path) -> Path:
    """A copy that Python imports instead of the tree: the editable install only comes later on the path."""
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    program = "import coordinator, events, projections as p; print(coordinator.__file__, events.__file__, p.__file__)"
    # Not from within the copy, as the tests' own processes may run elsewhere too.
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd="/", env=environment(copy), check=True, capture_output=True, text=True
    )
    assert all(file.startswith(f"{copy}/") for file in shown.stdout.split()), f"imported from elsewhere: {shown.stdout}"
    return copy


def environment(copy: Path) -> dict[str, str]:
    # No bytecode: a change within the same second and of the same length would go unnoticed.
    return {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}


def check_unmutated(copies: SimpleQueue[Path], mutants: list[Mutant]) -> str:
    """A test that fails anyway would kill everything."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with borrowed(copies) as copy:
        status, output = run_tests(copy, tests, timeout_s=TIMEOUT_S * len(tests))
    if status == PASSED:
        return ""
    return f"{output}\nthe named tests do not pass on the unchanged tree (pytest ended with {status})"


def is_killed(mutant: Mutant, copies: SimpleQueue[Path]) -> bool:
    try:
        with borrowed(copies) as copy, mutated(copy / mutant.file, mutant):
            status, output = run_tests(copy, mutant.tests, timeout_s=TIMEOUT_S)
        if status is not None and status > FAILED:
            raise Broken(f"pytest ended with {status} instead of a failed test\n{output}")
    except Broken as broken:
        print(f"BROKEN    {mutant}: {broken}", flush=True)
        return False
    # A test that hangs, or a crash of the interpreter, is noticed as well.
    fate = {PASSED: "SURVIVED", FAILED: "killed", None: "hung"}.get(status, "crashed")
    print(f"{fate:9} {mutant}", flush=True)
    return status != PASSED


@contextmanager
def borrowed(copies: SimpleQueue[Path]) -> Iterator[Path]:
    copy = copies.get()
    try:
        yield copy
    finally:
        copies.put(copy)


@contextmanager
def mutated(file: Path, mutant: Mutant) -> Iterator[None]:
    original = file.read_text() if file.exists() else ""
    if (times := original.count(mutant.text)) != 1:
        raise Broken(f"its text stands there {times} times, not once")
    changed = original.replace(mutant.text, mutant.replacement)
    try:
        compile(changed, mutant.file, "exec")
    except SyntaxError as error:
        raise Broken(f"what it leaves is no Python: {error}") from error
    file.write_text(changed)
    try:
        yield
    finally:
        file.write_text(original)


def run_tests(copy: Path, tests: Sequence[str], *, timeout_s: float) -> tuple[int | None, str]:
    """How pytest ended (None: not in time), and the end of what it printed."""
    nodes = [test for test in tests if "/" in test]
    words = [f"({test})" for test in tests if "/" not in test]
    status, output = PASSED, ""
    for chosen in filter(None, [nodes, ["-k", " or ".join(words)] if words else []]):
        status, output = run_pytest(copy, chosen, timeout_s=timeout_s)
        if status != PASSED:
            break
    return status, output


def run_pytest(copy: Path, chosen: list[str], *, timeout_s: float) -> tuple[int | None, str]:
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *chosen]
    command = [sys.executable, contained.__file__, str(timeout_s), *pytest]
    # A file and not a pipe: a process that a broken test left behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=copy, env=environment(copy), stdout=output, stderr=output, start_new_session=True
        )
        try:
            status = process.wait()
        finally:
            process.terminate()  # if we are interrupted; it ends all others, wherever they have gone
            process.wait()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        return None if status == contained.TIME_UP else status, output.read()[-3000:]


if __name__ == "__main__":
    sys.exit(main())
