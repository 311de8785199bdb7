"""Who gets the turn when several wait: they form a line, and nobody can hold it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from coordinator.stores import turn as turns
from coordinator.stores.line import HEADER, PLACES, WAITING, Line
from coordinator.stores.turn import Turn
from tests.stores.rows import once


@pytest.fixture
def turn_at(path: Path) -> Iterator[Callable[[int], Turn]]:
    """One more process's way to the turn, at a place of its own in the line."""
    with ExitStack() as stack:

        def turn_at(place: int) -> Turn:
            turn = stack.enter_context(closing(Turn(str(path))))
            turn._place = place  # pyright: ignore[reportPrivateUsage]
            return turn

        yield turn_at


class HasToWait(Exception):
    pass


def looks(most: int) -> Callable[[], bool]:
    """As `still_wanted`: allows so many looks, and fails at one more."""
    left = [None] * most

    def still_wanted() -> bool:
        if not left:
            raise HasToWait
        left.pop()
        return True

    return still_wanted


def comes_at_once(turn: Turn) -> bool:
    """Whether it gets the turn without waiting."""

    try:
        turn.take(looks(0))
    except HasToWait:
        return False
    return True


class Meanwhile:
    """Does something while a process waits in line, and lets it wait on."""

    def __init__(self, something: Callable[[], object]) -> None:
        self._something = something
        self._looks = looks(1_000)
        self.done = False

    def __call__(self) -> bool:
        if not self.done:
            self.done = True
            self._something()
        return self._looks()


def line(*waiting: int, last: int = 0) -> Line:
    return Line(last, 0, bytes(WAITING if place in waiting else 0 for place in range(PLACES)))


def test_the_line_goes_round_from_whoever_had_the_turn_last() -> None:
    waiting = (3, 7, 100, 255)

    ahead = {last: [line(*waiting, last=last).ahead_of(place) for place in waiting] for last in (0, 3, 5, 7, 200, 255)}

    assert ahead == {
        0: [0, 1, 2, 3],
        3: [3, 0, 1, 2],
        5: [3, 0, 1, 2],
        7: [2, 3, 0, 1],
        200: [1, 2, 3, 0],
        255: [0, 1, 2, 3],
    }


def test_a_line_of_which_the_file_holds_only_the_beginning_is_empty_behind_it() -> None:
    assert Line.read(b"").ahead_of(PLACES - 1) == 0
    assert Line.read(bytes([2, 0]) + bytes([0, 0, 0, WAITING])).ahead_of(5) == 1


def test_whoever_had_the_turn_cannot_take_it_anew_before_those_who_wait(turn_at: Callable[[int], Turn]) -> None:
    holder, waiter = turn_at(1), turn_at(2)
    holder.take(once)
    came: list[bool] = []

    def go_on() -> None:
        holder.give_back()
        came.append(comes_at_once(holder))

    waiter.take(Meanwhile(go_on))

    assert came == [False]
    assert not comes_at_once(holder)
    waiter.give_back()
    assert comes_at_once(holder)


def test_those_who_wait_get_the_turn_one_after_another(turn_at: Callable[[int], Turn]) -> None:
    holder, first, second = turn_at(9), turn_at(20), turn_at(200)
    holder.take(once)
    came: list[bool] = []

    def go_on() -> None:
        holder.give_back()
        came.append(comes_at_once(second))

    first.take(Meanwhile(go_on))

    assert came == [False]


def test_whoever_does_not_come_when_it_is_next_is_passed_over_and_keeps_nobody_waiting_again(
    turn_at: Callable[[int], Turn],
) -> None:
    holder, stopped, other = turn_at(1), turn_at(2), turn_at(3)
    holder.take(once)
    came: list[bool] = []

    def stop() -> None:  # while this runs, it waits in line and does not look
        holder.give_back()
        other.take(looks(1_000))
        other.give_back()
        for turn in (holder, other):
            came.append(comes_at_once(turn))
            turn.give_back()

    stopped.take(Meanwhile(stop))

    assert came == [True, True]


def test_a_turn_that_was_given_back_in_this_moment_is_left_to_whoever_is_next(
    turn_at: Callable[[int], Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "GRACE_S", -1)  # it tries at each look, as if nobody had come for long
    holder, following, other = turn_at(1), turn_at(2), turn_at(3)
    holder.take(once)
    following._mark(WAITING)  # pyright: ignore[reportPrivateUsage]
    looked: list[str] = []

    def look() -> bool:
        if looked:
            looked.append("free" if following._try() else "taken")  # pyright: ignore[reportPrivateUsage]
            following.give_back()
        else:
            looked.append("given back")
            holder.give_back()
        return True

    other.take(look)

    assert looked[:2] == ["given back", "free"]


def test_nobody_waits_for_one_that_gave_up(turn_at: Callable[[int], Turn]) -> None:
    holder, other = turn_at(1), turn_at(2)
    holder.take(once)
    assert not comes_at_once(other)

    holder.give_back()

    assert comes_at_once(holder)


def test_two_that_share_a_place_find_places_of_their_own(turn_at: Callable[[int], Turn]) -> None:
    holder, one, two = turn_at(1), turn_at(2), turn_at(2)
    holder.take(once)

    one.take(Meanwhile(lambda: (comes_at_once(two), holder.give_back())))

    assert one._place != two._place  # pyright: ignore[reportPrivateUsage]


def test_whoever_can_wait_no_longer_takes_a_turn_that_is_free_although_others_come_first(
    turn_at: Callable[[int], Turn],
) -> None:
    holder, first, second = turn_at(1), turn_at(2), turn_at(3)
    holder.take(once)
    tried = Meanwhile(lambda: (holder.give_back(), second.take(once), second.give_back()))

    first.take(tried)

    assert tried.done


def test_nonsense_in_the_file_keeps_nobody_out_for_long(path: Path, turn_at: Callable[[int], Turn]) -> None:
    path.write_bytes(b"\xff" * 16 + bytes(HEADER) + bytes([WAITING]) * PLACES)
    turn = turn_at(1)

    turn.take(looks(1_000))
    turn.give_back()

    assert comes_at_once(turn)
