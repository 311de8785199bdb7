"""What a subprocess reads and writes never blocks it, never fills memory, and never holds up the loop or its end."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os

import pytest

from coordinator.pipes import MAX_LINE, TAIL
from tests.processes.family import ADOPTS, Family, boot_in


async def test_a_child_that_floods_its_stderr_is_not_held_up_and_the_last_of_it_is_kept(family: Family):
    child = await family.python("import os\nfor _ in range(400): os.write(2, b'x' * 99_999 + b'!')\nprint('done')")

    end = await child.wait()

    assert end.last_line == b"done"
    assert end.stderr == b"x" * (TAIL - 1) + b"!"


async def test_a_child_that_floods_its_stdout_is_not_held_up_and_every_line_arrives(family: Family):
    lengths: list[int] = []
    child = await family.python(
        "import os\nfor _ in range(400): os.write(1, b'x' * 99_999 + b'\\n')",
        line=lambda line: lengths.append(len(line)),
    )

    end = await child.wait()

    assert end.returncode == 0
    assert lengths == [99_999] * 400


async def test_a_flood_of_short_lines_leaves_the_loop_to_others(family: Family):
    lines = 0
    most = 0

    def line(_: bytes) -> None:
        nonlocal lines
        lines += 1

    child = await family.python("import os\nfor _ in range(20): os.write(1, b'\\n' * 65_536)", line=line)
    ending = asyncio.ensure_future(child.wait())
    while not ending.done():
        before = lines
        await asyncio.sleep(0)
        most = max(most, lines - before)

    assert lines == 20 * 65_536
    assert 0 < most <= 256


async def test_a_line_that_is_too_long_is_cut_and_the_next_one_is_whole(family: Family):
    child = await family.python(f"print('x' * {3 * MAX_LINE}); print('next')")

    end = await child.wait()

    assert [family.lines.get_nowait() for _ in range(family.lines.qsize())] == [b"x" * MAX_LINE, b"next"]
    assert (end.last_line, end.line_cut) == (b"next", True)


async def test_a_last_line_counts_without_its_newline_and_blank_ones_do_not(family: Family):
    ended, unended = [
        await (await family.python(f"import sys; sys.stdout.write({text!r})")).wait()
        for text in ("one\n\n \n", "a\ntwo")
    ]

    assert [ended.last_line, unended.last_line] == [b"one", b"two"]
    assert not ended.line_cut


async def test_a_child_without_a_word_has_no_last_line(family: Family):
    end = await (await family.run("/bin/true")).wait()

    assert (end.returncode, end.last_line, end.stderr) == (0, b"", b"")


async def test_a_child_that_closes_its_output_early_runs_on(family: Family):
    child = await family.python(
        "import os, signal; print('last', flush=True); os.close(1); os.close(2)\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(4)); open('closed', 'w'); signal.pause()"
    )
    while not (family.folder / "closed").exists():
        await asyncio.sleep(0.005)

    child.stop()
    end = await child.wait()

    assert (end.returncode, end.how, end.last_line) == (4, "asked", b"last")


@ADOPTS
async def test_an_end_is_not_held_up_by_who_else_holds_the_output_open(family: Family):
    child = await family.python("import signal; print('first', flush=True); signal.pause()")
    await family.lines.get()
    held = [os.open(f"/proc/{child.pid}/fd/{number}", os.O_WRONLY) for number in (1, 2)]

    os.write(held[0], b"last")
    child.stop()
    end = await child.wait()
    for descriptor in held:
        os.close(descriptor)

    assert end.last_line == b"last"


async def test_a_child_that_does_not_read_its_stdin_is_not_waited_for(family: Family, caplog: pytest.LogCaptureFixture):
    stdin = b"x" * 10_000_000

    ignoring = await family.run("/bin/true", stdin=stdin)
    waiting = await family.python("import signal; signal.pause()", stdin=stdin)
    waiting.renew(boot_in(0))

    assert (await ignoring.wait()).returncode == 0
    assert (await waiting.wait()).how == "deadline"
    assert not caplog.records  # where the loop says what failed


async def test_a_long_stdin_arrives_whole_and_ends(family: Family):
    stdin = os.urandom(3_000_000)

    child = await family.python(
        "import hashlib, sys; print(hashlib.md5(sys.stdin.buffer.read()).hexdigest())", stdin=stdin
    )
    end = await child.wait()

    assert end.last_line.decode() == hashlib.md5(stdin).hexdigest()


async def test_a_line_that_cannot_be_handled_is_logged_and_the_rest_is_handled(
    family: Family, caplog: pytest.LogCaptureFixture
):
    def line(text: bytes) -> None:
        family.lines.put_nowait(text)
        if text == b"bad":
            raise ValueError("not that one")

    with caplog.at_level(logging.ERROR, "coordinator"):
        end = await (await family.python("print('bad'); print('good')", line=line)).wait()

    assert (end.returncode, end.last_line, family.lines.qsize()) == (0, b"good", 2)
    assert "not that one" in caplog.text
