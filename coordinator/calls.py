"""One call on its way through the writer: what is known of it, and what its caller and the observer are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

from msgspec import Struct

from coordinator.decisions.claims import LookDeeper
from coordinator.decisions.operations import CheckOutdated
from coordinator.errors import CoordinatorError, OutcomeUnknown
from coordinator.refusals import Refused
from coordinator.request import Outcome, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord:
    """What `observe` is told of each command.

    Attributes:
        type: the command's type, such as `claim_job`.
        actor: who asked.
        outcome: "ok", "repeated" (known receipt), "nothing" (nothing to change), or the code of the refusal or error.
        queue_s: seconds from the call until its batch was drawn.
        commit_s: seconds from then until the batch was on disk.
        batch: number of commands in that batch.
        position: log position of its first event, or of the record of its refusal.
    """

    type: str
    actor: str
    outcome: str
    queue_s: float
    commit_s: float
    batch: int
    position: int | None


class Call(Struct, eq=False):
    """One request on its way. `done` hears of its outcome before `future` does, where there are such.

    Attributes:
        request: None to look only whether a lease has lapsed.
        asked_at, deadline, drawn_at: seconds of the monotonic clock.
        kept: it runs although its caller has gone.
        unknown: a COMMIT with it failed, and it has not been asked again yet.
    """

    request: Request | None
    deadline: float
    asked_at: float
    future: asyncio.Future[Outcome] | None
    done: Callable[[Outcome], None] | None
    drawn_at: float
    kept: bool = False
    unknown: bool = False

    def unwanted(self) -> bool:
        return self.future is not None and self.future.cancelled() and not self.kept and not self.unknown


def error_for(call: Call, error: CoordinatorError) -> CoordinatorError:
    if not call.unknown or call.request is None:
        return copy(error)  # each caller raises its own
    return OutcomeUnknown(f"whether it was applied is unknown: {error}", receipt=call.request.receipt)


def stands(call: Call, outcome: Outcome) -> bool:
    """Whether a batch that failed still has this to say: a refusal of a command that cannot have been applied."""
    return isinstance(outcome.error, Refused) and not call.unknown


def outcome_name(outcome: Outcome) -> str:
    if isinstance(outcome.error, CoordinatorError):
        return outcome.error.code
    if outcome.error is not None and not isinstance(outcome.error, LookDeeper | CheckOutdated):
        return "failed"
    if outcome.answer is None:
        return "nothing"
    return "repeated" if outcome.repeated else "ok"
