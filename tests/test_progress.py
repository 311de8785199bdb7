"""How far work is: at most once a second something is told on, and then the newest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from coordinator.progress import Progress


class Loop:
    """A loop whose time passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[Timer] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        self._timers.append(timer := Timer(self.now + delay, callback))
        return timer

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self._timers if timer.at <= self.now]
        self._timers = [timer for timer in self._timers if timer.at > self.now]
        for timer in due:
            if not timer.cancelled:
                timer.callback()


class Timer:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def told() -> list[bytes]:
    return []


@pytest.fixture
def progress(loop: Loop, told: list[bytes]) -> Progress:
    return Progress(cast("Any", loop), told.append)


def test_the_first_is_told_at_once(progress: Progress, told: list[bytes]) -> None:
    progress.tell(b"1")

    assert told == [b"1"]


def test_of_those_within_a_second_only_the_newest_is_told_when_it_is_over(
    progress: Progress, loop: Loop, told: list[bytes]
) -> None:
    for number in (b"1", b"2", b"3", b"4"):
        progress.tell(number)
        loop.pass_(0.25)
    progress.tell(b"5")

    assert told == [b"1", b"4"]

    loop.pass_(1)

    assert told == [b"1", b"4", b"5"]


def test_however_much_is_told_once_a_second_something_is_told_on(
    progress: Progress, loop: Loop, told: list[bytes]
) -> None:
    for number in range(80):
        progress.tell(b"%d" % number)
        loop.pass_(0.125)

    assert len(told) == 11


def test_after_a_pause_without_news_the_next_is_told_at_once(progress: Progress, loop: Loop, told: list[bytes]) -> None:
    progress.tell(b"1")
    loop.pass_(1)

    progress.tell(b"2")

    assert told == [b"1", b"2"]


def test_the_same_is_not_told_twice(progress: Progress, loop: Loop, told: list[bytes]) -> None:
    progress.tell(b"1")
    progress.tell(b"2")

    loop.pass_(5)
    loop.pass_(5)

    assert told == [b"1", b"2"]


@pytest.mark.parametrize("before", [[], [b"1"], [b"1", b"2"]])
def test_after_the_end_nothing_is_told(progress: Progress, loop: Loop, told: list[bytes], before: list[bytes]) -> None:
    for number in before:
        progress.tell(number)

    progress.end()
    progress.tell(b"late")
    loop.pass_(5)
    progress.tell(b"later still")

    assert told == before[:1]
