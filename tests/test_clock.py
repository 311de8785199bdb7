"""Clocks that move only when told to, and log time, which neither runs back nor stands still."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator import clock
from coordinator.clock import Clock, ManualClock, SystemClock, from_datetime, log_time, origin, to_datetime
from coordinator.errors import InvalidInput

NEW_YEAR = 1_767_225_600_000_000
SECOND = 1_000_000
AWARE = st.datetimes(
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=11))])
)


@dataclass
class Log:
    """Only what log time needs of a log: its last event."""

    clock: Clock
    at: int = 0
    boot_id: str = ""
    boot_at: int = 0

    def append(self) -> int:
        boot, boot_id = self.clock.boot(), self.clock.boot_id
        self.at = log_time(
            wall=self.clock.wall(),
            boot=boot,
            boot_id=boot_id,
            last_at=self.at,
            last_boot_id=self.boot_id,
            last_boot_at=self.boot_at,
        )
        self.boot_id, self.boot_at = boot_id, boot
        return self.at


class Waiter(threading.Thread):
    """Waits once on a clock, in a thread, and tells when it has begun and whether it has ended."""

    def __init__(self, clock: Clock, until: int | None) -> None:
        super().__init__(daemon=True)
        self.clock = clock
        self.until = until
        self.condition = threading.Condition()
        self.begun = threading.Event()
        self.start()
        self.begun.wait(5)
        with self.condition:  # free only once the thread waits
            pass

    def run(self) -> None:
        with self.condition:
            self.begun.set()
            self.clock.wait(self.condition, self.until)

    def has_ended(self, within_s: float = 5) -> bool:
        self.join(within_s)
        return not self.is_alive()


def in_another_process(script: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


# Log time


STEPS = st.lists(
    st.tuples(st.sampled_from(["advance", "jump", "reboot", "append"]), st.integers(-(10**6), 10**6)), max_size=30
)


def move(manual: ManualClock, step: str, seconds: int) -> None:
    if step == "advance":
        manual.advance(abs(seconds))
    elif step == "jump":
        manual.jump_wall(seconds)
    elif step == "reboot":
        manual.reboot()


@given(STEPS)
def test_log_time_never_runs_back_and_is_never_behind_the_wall_clock(steps: list[tuple[str, int]]):
    log = Log(manual := ManualClock())

    for step, seconds in steps:
        before = log.at
        move(manual, step, seconds)
        assert log.append() >= max(before, manual.wall())


@given(STEPS, st.integers(1, 10**6))
def test_log_time_passes_at_least_as_fast_as_time_does_whatever_the_wall_clock_did_before(
    steps: list[tuple[str, int]], seconds: int
):
    log = Log(manual := ManualClock())
    for step, amount in steps:
        move(manual, step, amount)
        log.append()
    before = log.append()

    manual.advance(seconds)

    assert log.append() - before >= seconds * SECOND


@given(st.integers(1, 10**9), st.lists(st.integers(1, 3_600), min_size=1, max_size=10))
def test_log_time_goes_on_after_the_wall_clock_jumped_ahead_and_was_corrected(glitch: int, pauses: list[int]):
    log = Log(manual := ManualClock())
    log.append()
    manual.jump_wall(glitch)
    ahead = log.append()
    manual.jump_wall(-glitch)

    for pause in pauses:
        manual.advance(pause)
        log.append()

    assert log.at == ahead + sum(pauses) * SECOND


def test_a_clock_that_is_right_makes_log_time_the_wall_clock():
    log = Log(manual := ManualClock())

    for _ in range(3):
        manual.advance(7)
        assert log.append() == manual.wall()


def test_after_a_reboot_the_last_event_is_the_floor_and_the_old_boot_clock_counts_for_nothing():
    log = Log(manual := ManualClock())
    manual.jump_wall(1_000)
    ahead = log.append()
    manual.jump_wall(-1_000)
    manual.reboot()
    manual.advance(100_000)
    manual.jump_wall(-200_000)

    assert log.append() == ahead


def test_a_boot_clock_that_reads_less_than_before_takes_no_time_away():
    at = log_time(wall=5, boot=10, boot_id="b", last_at=100, last_boot_id="b", last_boot_at=50)

    assert at == 100


# The clock to move


def test_a_manual_clock_stands_still_until_it_is_moved():
    manual = ManualClock()

    assert to_datetime(manual.wall()) == datetime(2026, 1, 1, tzinfo=UTC)
    assert (manual.wall(), manual.boot()) == (manual.wall(), manual.boot())


def test_advancing_moves_both_clocks_and_a_jump_only_the_wall_clock():
    manual = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    wall, boot = manual.wall(), manual.boot()

    manual.advance(1.5)
    manual.jump_wall(-10)

    assert manual.wall() - wall == -8_500_000
    assert manual.boot() - boot == 1_500_000


def test_a_reboot_starts_the_boot_clock_again_under_another_name():
    manual = ManualClock()
    before = manual.boot_id
    wall = manual.wall()

    manual.reboot()

    assert manual.boot() == 0
    assert manual.boot_id != before
    assert manual.wall() == wall


def test_time_cannot_be_advanced_backwards():
    with pytest.raises(ValueError, match="jump_wall"):
        ManualClock().advance(-1)


def test_whoever_waits_on_a_manual_clock_wakes_when_it_reaches_the_time():
    manual = ManualClock()
    waiter = Waiter(manual, manual.boot() + 60 * SECOND)
    still_waiting = not waiter.has_ended(0.05)

    manual.advance(60)

    assert still_waiting
    assert waiter.has_ended()


@pytest.mark.parametrize(("step", "seconds"), [("advance", 1), ("jump", -5), ("reboot", 0)])
def test_everybody_who_waits_hears_of_every_move(step: str, seconds: int):
    manual = ManualClock()
    waiters = [Waiter(manual, None), Waiter(manual, manual.boot() + 10**12), Waiter(manual, None)]

    move(manual, step, seconds)

    assert all(waiter.has_ended() for waiter in waiters)


@pytest.mark.parametrize("make", [ManualClock, SystemClock])
def test_a_notified_waiter_wakes_before_its_time(make: Any):
    waiter = Waiter(ticking := make(), ticking.boot() + 3_600 * SECOND)

    with waiter.condition:
        waiter.condition.notify()

    assert waiter.has_ended()


@pytest.mark.parametrize("make", [ManualClock, SystemClock])
def test_waiting_for_a_time_that_has_passed_does_not_wait(make: Any):
    ticking = make()
    condition = threading.Condition()

    with condition:
        ticking.wait(condition, ticking.boot())
        ticking.wait(condition, ticking.boot() - 1)


def test_moving_the_clock_while_holding_the_condition_that_is_waited_on_is_no_deadlock():
    manual = ManualClock()
    waiter = Waiter(manual, None)

    with waiter.condition:
        manual.advance(1)

    assert waiter.has_ended()


def test_no_move_is_missed_by_waiters_that_come_while_the_clock_moves():
    manual = ManualClock()
    due = manual.boot() + 200 * SECOND
    condition = threading.Condition()

    def wait_until_due() -> None:
        with condition:
            while manual.boot() < due:
                manual.wait(condition, due)

    waiters = [threading.Thread(target=wait_until_due, daemon=True) for _ in range(8)]
    for waiter in waiters:
        waiter.start()
    movers = [threading.Thread(target=lambda: [manual.advance(1) for _ in range(50)]) for _ in range(4)]
    for mover in movers:
        mover.start()
    for thread in [*movers, *waiters]:
        thread.join(10)

    assert not any(thread.is_alive() for thread in waiters)
    assert manual.boot() == due


# The machine's clock


def test_the_system_clock_tells_utc_in_microseconds_and_a_boot_time_that_grows():
    system = SystemClock()

    first, then = system.boot(), system.boot()

    assert abs(system.wall() - time.time() * SECOND) < 60 * SECOND
    assert 0 < first <= then


def test_the_boot_id_is_the_same_for_everybody_on_the_machine():
    theirs = in_another_process("from coordinator.clock import SystemClock; print(SystemClock().boot_id)")

    assert theirs == SystemClock().boot_id
    assert theirs


def test_a_machine_that_does_not_tell_its_boot_id_gets_one_for_this_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock, "_boot_id_found", "")
    monkeypatch.setattr(clock, "_read_boot_id", lambda: "")

    assert len(SystemClock().boot_id) == 32
    assert SystemClock().boot_id == SystemClock().boot_id


def test_the_system_clock_waits_until_the_time_and_not_much_longer():
    system = SystemClock()
    until = system.boot() + 50_000
    condition = threading.Condition()

    with condition:
        system.wait(condition, until)

    assert until <= system.boot() < until + 5 * SECOND


# Origin


def test_the_origin_names_host_process_and_its_start():
    host, pid, start = origin().rsplit("/", 2)

    assert host == os.uname().nodename
    assert pid == str(os.getpid())
    assert datetime.fromisoformat(start) <= datetime.now(UTC)
    assert origin() is origin()


def test_a_forked_child_has_an_origin_of_its_own():
    script = """if True:
        import os
        from coordinator.clock import origin
        print(os.getpid(), origin(), flush=True)
        if os.fork() == 0:
            print(os.getpid(), origin(), flush=True)
        else:
            os.wait()
    """

    parent, child = in_another_process(script).splitlines()

    assert parent.split()[0] == parent.split("/")[-2]
    assert child.split()[0] == child.split("/")[-2]
    assert parent != child


# Datetimes


@given(AWARE)
def test_datetimes_keep_their_instant_to_the_microsecond(value: datetime):
    back = to_datetime(from_datetime("at", value))

    assert back == value
    assert back.tzinfo is UTC


@given(st.integers(-(10**15), 10**17))
def test_microseconds_come_back_exactly(us: int):
    assert from_datetime("at", to_datetime(us)) == us


def test_a_known_instant():
    assert from_datetime("at", datetime(2026, 1, 1, tzinfo=UTC)) == NEW_YEAR
    assert to_datetime(NEW_YEAR + 1) == datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)


def test_a_datetime_without_a_time_zone_is_refused_with_a_hint():
    with pytest.raises(InvalidInput, match="without a time zone") as caught:
        from_datetime("until", datetime(2026, 1, 1))  # noqa: DTZ001

    assert caught.value.field == "until"
    assert caught.value.hint


@pytest.mark.parametrize("value", [None, 0, NEW_YEAR, "2026-01-01", datetime(2026, 1, 1, tzinfo=UTC).date()])
def test_what_is_no_datetime_is_refused(value: Any):
    with pytest.raises(InvalidInput, match=r"^until: must be a datetime"):
        from_datetime("until", value)
