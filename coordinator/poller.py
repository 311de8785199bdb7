"""Notices what other processes commit, for all who wait in this one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection

from coordinator.errors import CoordinatorError
from coordinator.rebuild import check_head
from coordinator.stores.interface import Snapshot, Store
from coordinator.threads import start_thread

log = logging.getLogger("coordinator")

POLL_S = 0.004
QUIET_POLL_S = 0.008  # while nobody has committed anything for a second

_QUIET_AFTER_S = 1.0
_SLOWEST_POLL_S = 1.0  # while the store cannot be asked
_MANY = 1_000  # where more was committed at once, nobody asks what it was


class Poller:
    """One thread, which looks for news while anybody waits, and sleeps for good when nobody does.

    Args:
        watch: opens a store, on the thread that will use it.
        wake: told of the streams to which somebody appended; None for any.
    """

    def __init__(self, watch: Callable[[], Store], wake: Callable[[Collection[str] | None], None]) -> None:
        self._watch = watch
        self._wake = wake
        self._waiters = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._news_at = time.monotonic()
        self._told = 0  # everybody was told of what the log holds up to this position

    def more(self) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = start_thread(self._run, "coordinator-poller")
            self._waiters += 1
            self._changed.notify()

    def fewer(self) -> None:
        with self._changed:
            self._waiters -= 1

    def told(self, after: int, until: int) -> None:
        """Everybody was told of what the log holds behind position `after`, up to `until`. From any thread."""
        with self._changed:
            if after <= self._told:  # else there is something in between that another process has appended
                self._told = max(self._told, until)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        store: Store | None = None
        pause_s = 0.0  # beyond an interval, while the store cannot be asked
        try:
            while self._wanted(pause_s):
                try:
                    if store is None:
                        store = self._watch()
                        end = store.read(lambda snapshot: snapshot.head().position)
                        self._wake(None)  # whatever was committed before the first look
                        self.told(0, end)
                    elif store.changed():
                        self._news_at = time.monotonic()
                        if (streams := self._news(store)) != set():
                            self._wake(streams)
                except CoordinatorError:
                    if not pause_s:
                        log.warning("the store does not say whether it changed; trying again", exc_info=True)
                    pause_s = min(2 * pause_s or POLL_S, _SLOWEST_POLL_S)
                    self._wake(None)  # whoever waits looks too, and hears what is wrong
                else:
                    pause_s = 0.0
        finally:
            if store is not None:
                store.close()

    def _wanted(self, pause_s: float) -> bool:
        """Wait one interval and a pause, or for as long as nobody waits; False when it is time to end."""
        quiet = time.monotonic() - self._news_at > _QUIET_AFTER_S
        time.sleep(QUIET_POLL_S if quiet else POLL_S)  # costs half of what a wait costs that `close` could cut short
        with self._changed:
            if pause_s:
                self._changed.wait(pause_s)
            while not self._waiters and not self._closed:
                self._changed.wait()
            return not self._closed

    def _news(self, store: Store) -> set[str] | None:
        """The streams of which nobody was told yet; None if there is much."""
        after = self._told

        def look(snapshot: Snapshot) -> tuple[int, set[str] | None]:
            streams = snapshot.streams(after=after, limit=_MANY)
            if not streams:  # newer software may have taken the workspace over, and appended nothing yet
                check_head(snapshot.head())
            if len(streams) == _MANY:
                return snapshot.head().position, None
            return after + len(streams), set(streams)

        end, streams = store.read(look)
        self.told(after, end)
        return streams
