"""The thread that calls functions when their time has come."""

import threading

from coordinator.clock import ManualClock
from coordinator.timers import Timers


def test_timers_that_were_cancelled_do_not_pile_up() -> None:
    timers = Timers(ManualClock())

    for _ in range(10_000):
        timers.at(3_600_000_000, lambda: None).cancel()

    assert len(timers._due) < 200
    timers.close()


def test_what_is_set_is_still_called_after_closing_and_then_the_thread_ends() -> None:
    """A block that is still running must hear when its lease is over."""
    clock = ManualClock()
    timers = Timers(clock)
    called = threading.Event()
    timers.at(clock.boot() + 1_000_000, called.set)

    timers.close()
    clock.advance(1)

    assert called.wait(10)
    assert timers._thread is not None
    timers._thread.join(10)
    assert not timers._thread.is_alive()


def test_a_timer_that_was_cancelled_is_not_called() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    called: list[str] = []
    timers.at(clock.boot() + 1_000_000, lambda: called.append("cancelled")).cancel()
    done = threading.Event()
    timers.at(clock.boot() + 2_000_000, done.set)

    clock.advance(3)

    assert done.wait(10)
    assert called == []
    timers.close()
