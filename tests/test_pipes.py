"""How output is cut into lines, and how little of it is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.pipes import Lines, Tail


def feed(sink: Lines | Tail, *pieces: bytes) -> None:
    for piece in pieces:
        sink.feed(piece)
        while sink.work():
            pass


@given(st.lists(st.text("ab\n", max_size=9).map(str.encode), max_size=9))
def test_lines_are_the_same_however_the_output_is_cut_into_pieces(pieces: list[bytes]):
    found: list[bytes] = []
    lines = Lines(found.append, limit=3)

    feed(lines, *pieces)
    lines.end()

    whole = b"".join(pieces).split(b"\n")
    if not whole[-1]:
        whole.pop()
    assert found == [line[:3] for line in whole]
    assert lines.cut == any(len(line) > 3 for line in whole)


def test_a_line_that_is_too_long_is_handed_on_before_it_ends_and_nothing_more_of_it_is_kept():
    found: list[bytes] = []
    lines = Lines(found.append, limit=10)

    feed(lines, b"x" * 11)

    assert found == [b"x" * 10]
    feed(lines, b"x" * 1_000)
    assert not lines._rest  # pyright: ignore[reportPrivateUsage]


def test_a_tail_keeps_no_more_than_its_length():
    tail = Tail(5)

    feed(tail, b"abc", b"defg")

    assert tail.kept() == b"cdefg"
