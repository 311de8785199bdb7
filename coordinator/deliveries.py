"""The loop's side of the writer: answers reach their callers, news those who wait, and the observer hears of both."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from coordinator.calls import Call, CommandRecord, outcome_name
from coordinator.commands import type_of
from coordinator.errors import CoordinatorError
from coordinator.request import News, Outcome, Request, undo_unheard

log = logging.getLogger("coordinator")

Answered = tuple[Call, Outcome]


class Deliveries:
    """Brings what became of a batch from the store's thread to one event loop.

    Args:
        loop: where callers wait.
        committed: called there after each batch.
        observe: called there with a record of each command.
        post: queues what gives back a claim that nobody has heard of.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        committed: Callable[[News], None],
        observe: Callable[[CommandRecord], None] | None,
        post: Callable[[Request], None],
    ) -> None:
        self._loop = loop
        self._committed = committed
        self._observe = observe
        self._post = post

    def send(self, answered: Sequence[Answered], news: News) -> None:
        """From the store's thread."""
        done_at = time.monotonic()
        for call, outcome in answered:
            if call.done is not None:
                _report(call.done, outcome)
        try:
            self._loop.call_soon_threadsafe(self._deliver, answered, news, done_at)
        except RuntimeError:  # the loop was closed in the middle
            for call, outcome in answered:
                if call.future is not None and call.request is not None:
                    self.unheard(call.request, outcome)

    def unheard(self, request: Request, outcome: Outcome) -> None:
        """A claim that its caller cannot ask for again, for want of the receipt, would only block others."""
        undo = undo_unheard(request, outcome)
        if undo is not None:
            try:
                self._post(undo)
            except CoordinatorError:
                log.warning("a claim of %s was left to lapse: its caller had gone", request.actor)

    def _deliver(self, answered: Sequence[Answered], news: News, done_at: float) -> None:
        for call, outcome in answered:
            if call.future is None:
                continue
            if not call.future.done():
                call.future.set_result(outcome)
            elif call.request is not None:
                self.unheard(call.request, outcome)
        self._committed(news)
        if self._observe is not None:
            for call, outcome in answered:
                _tell(self._observe, call, outcome, len(answered), done_at)


def _report(done: Callable[[Outcome], None], outcome: Outcome) -> None:
    try:
        done(outcome)
    except Exception:
        log.exception("what was to be done with an outcome failed")


def _tell(observe: Callable[[CommandRecord], None], call: Call, outcome: Outcome, batch: int, done_at: float) -> None:
    if call.request is None:
        return
    record = CommandRecord(
        type=type_of(call.request.command),
        actor=call.request.actor,
        outcome=outcome_name(outcome),
        queue_s=call.drawn_at - call.asked_at,
        commit_s=done_at - call.drawn_at,
        batch=batch,
        position=outcome.position,
    )
    try:
        observe(record)
    except Exception:
        log.exception("the observer failed")
