"""Keeping one claim's lease alive, from the timers' thread, so that a busy event loop does not lose it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from coordinator.answers import LeaseRenewed
from coordinator.clock import Clock
from coordinator.errors import CoordinatorError
from coordinator.refusals import ClaimLost, LeaseLapsed, Refused
from coordinator.request import Outcome, Request
from coordinator.timers import Timer, Timers
from coordinator.writer import Writer

_SHARE = 1 / 3  # of the lease is gone when it is renewed
_JITTER = 0.1


class Renewal:
    """Renews at a third of the lease, ±10 %, and says so once if the lease is lost.

    It is lost when the store refuses a renewal, or when the lease has passed since the last renewal that succeeded was
    *sent*: whatever the store would say, by then somebody else may hold the job.

    Args:
        request: makes the request for one renewal.
        lease_us: length of the lease.
        sent_at: `boot()` when the claim, or its last renewal, was sent.
        renewed: told of each renewal (length, end in µs of log time, when it was sent), on the store's thread.
        lost: told why, once, on another thread.
        lapsed: makes the refusal for a lease that passed while the store did not answer.
    """

    def __init__(
        self,
        writer: Writer,
        timers: Timers,
        clock: Clock,
        *,
        request: Callable[[], Request],
        lease_us: int,
        sent_at: int,
        renewed: Callable[[int, int, int], None],
        lost: Callable[[ClaimLost], None],
        lapsed: Callable[[], LeaseLapsed],
    ) -> None:
        self._writer = writer
        self._timers = timers
        self._clock = clock
        self._request = request
        self._lease_us = lease_us
        self._renewed = renewed
        self._lost = lost
        self._lapsed = lapsed
        self._lock = threading.Lock()
        self._running = True
        self._timers_set: list[Timer] = []
        self._schedule(sent_at)

    def stop(self) -> None:
        """No more renewals, and nothing more is told."""
        with self._lock:
            self._running = False
            self._cancel_timers()

    def moved(self, lease_us: int, sent_at: int) -> None:
        """The lease was renewed in another way, by what was sent at `sent_at`."""
        self._lease_us = lease_us
        self._schedule(sent_at)

    def _schedule(self, sent_at: int) -> None:
        """The lease holds from `sent_at`: when to renew it, and when it is over."""
        renew_at = sent_at + round(self._lease_us * _SHARE * random.uniform(1 - _JITTER, 1 + _JITTER))
        with self._lock:
            if not self._running:
                return
            self._cancel_timers()
            self._timers_set = [
                self._timers.at(renew_at, self._renew),
                self._timers.at(sent_at + self._lease_us, self._expire),
            ]

    def _cancel_timers(self) -> None:
        for timer in self._timers_set:
            timer.cancel()
        self._timers_set = []

    def _renew(self) -> None:
        sent_at = self._clock.boot()
        try:
            self._writer.post(self._request(), lambda outcome: self._answered(outcome, sent_at))
        except CoordinatorError:
            return  # closed: the lease will be seen to expire

    def _answered(self, outcome: Outcome, sent_at: int) -> None:
        match outcome:
            case Outcome(answer=LeaseRenewed(lease_us, lease_until)):
                with self._lock:
                    if not self._running:
                        return
                self._lease_us = lease_us
                self._renewed(lease_us, lease_until, sent_at)
                self._schedule(sent_at)
            case Outcome(error=ClaimLost() as why):
                self._end(why)
            case Outcome(error=Refused()):
                self._end(self._lapsed())
            case _:  # the store did not answer: soon again, until the lease is over
                with self._lock:
                    if self._running:
                        soon = self._clock.boot() + self._lease_us // 20
                        self._timers_set.append(self._timers.at(soon, self._renew))

    def _expire(self) -> None:
        self._end(self._lapsed())

    def _end(self, why: ClaimLost) -> None:
        with self._lock:
            if not self._running:
                return
            self._running = False
            self._cancel_timers()
        self._lost(why)
