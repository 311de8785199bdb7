"""What the end of a program means."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec import Raw

from coordinator.children import Exit, How
from coordinator.kinds import Work
from coordinator.program import Program, ProgramFailed, ProgramStopped

RESULT = b'{"result":{"ordered":40}}'


@pytest.fixture
def program(tmp_path: Path) -> Program:
    work = Work("order-7", 1, 1, Raw(b"{}"), make_folder=lambda: tmp_path, tell=lambda progress: None)
    nothing: Any = None
    return Program(nothing, nothing, work, nothing, nothing)


def end(how: How, last_line: bytes, returncode: int | None = 0) -> Exit:
    return Exit(returncode=returncode, how=how, killed=False, left=2, last_line=last_line, line_cut=False, stderr=b"")


@pytest.mark.parametrize("how", get_args(How))
def test_whatever_ended_it_a_program_that_told_its_result_has_one(program: Program, how: How) -> None:
    assert program._result(end(how, RESULT)) == Raw(b'{"ordered":40}')


def test_a_program_that_ended_by_itself_without_a_result_has_failed(program: Program) -> None:
    with pytest.raises(ProgramFailed, match="without a result"):
        program._result(end("itself", b"bye"))


@pytest.mark.parametrize("returncode", [0, 1, -15, None])
@pytest.mark.parametrize(
    ("how", "why"),
    [("asked", "asked to stop"), ("deadline", "not renewed in time"), ("abandoned", "process that kept it ended")],
)
def test_a_program_that_was_stopped_without_a_result_says_what_stopped_it_and_what_it_left(
    program: Program, how: How, why: str, returncode: int | None
) -> None:
    with pytest.raises(ProgramStopped, match=f"{why}; 2 of its processes"):
        program._result(end(how, b"bye", returncode))


@pytest.mark.parametrize("result", [b'{"result":{"text":"%s"}}' % (b"x" * 300_000), b'{"result":{"number":1e999}}'])
def test_a_result_that_cannot_be_kept_is_none_for_who_was_stopped(program: Program, result: bytes) -> None:
    with pytest.raises(ProgramStopped):
        program._result(end("deadline", result))
