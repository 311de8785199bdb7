"""Clocks: the wall, the time since boot (suspend included), and log time, which is made of both.

All times are whole microseconds; wall and log times count from 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from threading import Condition, Lock
from typing import Final, Protocol

from coordinator.errors import InvalidInput
from coordinator.limits import kind

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NAP_S: Final = 1.0


class Clock(Protocol):
    """What the coordinator needs to know of time."""

    @property
    def boot_id(self) -> str:
        """Names this run of the machine; `boot()` can be compared only within it."""
        ...

    def wall(self) -> int:
        """Now, UTC, as the machine believes it."""
        ...

    def boot(self) -> int:
        """Time on a clock that nobody sets and that counts suspend."""
        ...

    def wait(self, condition: Condition, until: int | None) -> None:
        """Wait, with `condition` held, until notified or until `boot()` reaches `until`; may return early."""
        ...


class SystemClock:
    """The machine's clocks.

    Time since boot is CLOCK_BOOTTIME on Linux. On macOS it is CLOCK_MONOTONIC_RAW, which there (unlike on Linux) reads
    `mach_continuous_time` and counts sleep; macOS's CLOCK_MONOTONIC counts it too but was seen to step backwards, and
    `time.monotonic()` stops in sleep. Elsewhere it is CLOCK_MONOTONIC, which counts suspend on the BSDs.
    """

    @property
    def boot_id(self) -> str:
        return _boot_id()

    def wall(self) -> int:
        return time.time_ns() // 1_000

    def boot(self) -> int:
        return time.clock_gettime_ns(BOOT_CLOCK) // 1_000

    def wait(self, condition: Condition, until: int | None) -> None:
        if until is None:
            condition.wait()
            return
        # The operating system's timeouts stand still in suspend, so a long wait is made of naps.
        while (remaining_us := until - self.boot()) > 0:
            if condition.wait(min(remaining_us / 1_000_000, _NAP_S)):
                return


class ManualClock:
    """A clock that moves only when told to, for tests. Safe to move from any thread.

    Args:
        start: the wall clock's first reading, an aware datetime.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._lock = Lock()
        self._wall = from_datetime("start", start)
        self._boot = 3_600_000_000  # up for an hour: not zero, so that the two clocks' readings cannot be mixed up
        self._boots = 1
        self._waiting: dict[Condition, int] = {}

    @property
    def boot_id(self) -> str:
        return f"manual-boot-{self._boots}"

    def wall(self) -> int:
        return self._wall

    def boot(self) -> int:
        return self._boot

    def wait(self, condition: Condition, until: int | None) -> None:
        # Enrolled before the clock is read: whoever moves it afterwards must notify, and can do so only once this
        # thread has let go of the condition, inside condition.wait().
        with self._lock:
            self._waiting[condition] = self._waiting.get(condition, 0) + 1
            due = until is not None and self._boot >= until
        try:
            if not due:
                condition.wait()
        finally:
            with self._lock:
                self._waiting[condition] -= 1
                if not self._waiting[condition]:
                    del self._waiting[condition]

    def advance(self, seconds: float) -> None:
        """Let time pass, on both clocks, and wake whoever waits."""
        step = round(seconds * 1_000_000)
        if step < 0:
            raise ValueError("time does not run back: use jump_wall() for a clock that was set")
        with self._lock:
            self._wall += step
            self._boot += step
        self._wake()

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or a glitch would; no time passes."""
        with self._lock:
            self._wall += round(seconds * 1_000_000)
        self._wake()

    def reboot(self) -> None:
        """Start the clock since boot again from 0, under a new boot id."""
        with self._lock:
            self._boot = 0
            self._boots += 1
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            conditions = list(self._waiting)
        for condition in conditions:
            with condition:
                condition.notify_all()


def log_time(*, wall: int, boot: int, boot_id: str, last_at: int, last_boot_id: str, last_boot_at: int) -> int:
    """The time of the next event: the wall clock, but never less than passed since the last event by the boot clock.

    So log time does not run back when the wall clock does, and does not stand still until a wall clock that had jumped
    ahead has caught up. After a reboot the boot clock says nothing, and the last event's time is the floor.
    """
    if boot > last_boot_at and boot_id == last_boot_id:
        last_at += boot - last_boot_at
    return wall if wall > last_at else last_at


def to_datetime(us: int) -> datetime:
    """Microseconds as an aware UTC datetime, exactly."""
    return _EPOCH + timedelta(microseconds=us)


def local_text(at: datetime, beside: datetime) -> str:
    """A time where the reader is; with its date if that is another than of the time beside it."""
    local, other = at.astimezone(), beside.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == other.date() else f"{local:%Y-%m-%d %H:%M:%S}"


def utc_text(at: datetime) -> str:
    """A time as all our JSON has it: UTC, to the microsecond, such as `2026-12-01T10:42:07.120000Z`."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_datetime(field: str, value: object) -> int:
    """An aware datetime as microseconds, exactly."""
    if not isinstance(value, datetime):
        raise InvalidInput(field, f"must be a datetime, not {kind(value)}")
    if value.utcoffset() is None:
        raise InvalidInput(field, "is a datetime without a time zone", hint="use datetime.now(UTC), or astimezone()")
    return to_us(value)


def to_us(value: datetime) -> int:
    """The inverse of `to_datetime`."""
    return (value - _EPOCH) // _MICROSECOND


def origin() -> str:
    """Which process this is: host, pid, and when it started (pids come round again)."""
    global _origin
    if _origin[0] != (pid := os.getpid()):  # also after a fork
        started = to_datetime(_started_us() // 1_000_000 * 1_000_000)
        _origin = (pid, f"{os.uname().nodename}/{pid}/{started:%Y-%m-%dT%H:%M:%SZ}")
    return _origin[1]


_origin: tuple[int, str] = (0, "")


def _started_us() -> int:
    """When this process started; where the system does not tell, when it was first asked."""
    now = time.time_ns() // 1_000
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])  # field 22; the name before it may hold anything
        age = time.clock_gettime(BOOT_CLOCK) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return now
    return now - round(max(age, 0.0) * 1_000_000)


def _boot_clock() -> int:
    if sys.platform == "darwin":
        return time.CLOCK_MONOTONIC_RAW
    return getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", 0))


BOOT_CLOCK: Final = _boot_clock()
"""The number of the clock that `SystemClock.boot()` reads, for a process that is to read the same."""

_boot_id_found: str = ""


def _boot_id() -> str:
    global _boot_id_found
    if not _boot_id_found:
        # A process that cannot learn it gets an id of its own: its log time then rests on the wall clock.
        _boot_id_found = _read_boot_id() or os.urandom(16).hex()
    return _boot_id_found


def _read_boot_id() -> str:
    if sys.platform == "darwin":
        import subprocess

        try:
            command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip().lower()
        except (OSError, subprocess.SubprocessError):
            return ""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
    except (OSError, ValueError):
        return ""
    try:
        # Containers share the machine's boot id, but a time namespace may shift its clock since boot.
        return f"{boot_id}/{os.readlink('/proc/self/ns/time')}" if boot_id else ""
    except OSError:
        return boot_id
