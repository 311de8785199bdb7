"""The stories that are played, one after the other: what happens in each, and what it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from examples.reorder import bridge
from examples.reorder.bridge import No, Stands, TimedOut
from examples.reorder.stage import ARGUMENTS, Bridge, OffScript, Stage

OPERATOR = "ada"

_SLOW_S = 0.1  # after each of fifty pages: the worker has not ordered for as long as a story needs it not to
_SHORT_LEASE_S = 1.0


@dataclass(frozen=True, slots=True)
class Story:
    """One operation, and how it goes.

    Attributes:
        operation: its id.
        title: a heading.
        shows: what to see in its log.
        play: everything that happens, to the operation's success.
    """

    operation: str
    title: str
    shows: str
    play: Callable[[Stage, str], Awaitable[None]]


async def approve_and_apply(stage: Stage, operation: str) -> None:
    async with stage.bridge(OPERATOR) as bridge_:
        await bridge_.approve(operation)
        expect(await bridge_.wait(operation), state="succeeded", attempt=1, advice="done")


async def time_out_and_retry(stage: Stage, operation: str) -> None:
    stage.rehearse(pause_s=_SLOW_S)
    async with stage.bridge(OPERATOR) as bridge_:
        grant = (await bridge_.preview(operation)).grant
        late = bridge.Apply(operation=operation, arguments=ARGUMENTS, grant=grant, within_s=0.05, busy_s=0.5)
        await bridge_.ask(late, TimedOut)
        again = await bridge_.apply(operation, grant)
        if again.started is not None:
            raise OffScript("the request that timed out had started nothing")
        expect(await bridge_.status(operation), attempt=1, advice="wait")
        stage.rehearse_nothing()
        expect(await bridge_.wait(operation), state="succeeded", attempt=1, advice="done")


async def restart_the_bridge(stage: Stage, operation: str) -> None:
    stage.rehearse(pause_s=_SLOW_S)
    async with stage.bridge(OPERATOR, lease_s=_SHORT_LEASE_S) as first:
        grant = (await first.preview(operation)).grant
        await first.apply(operation, grant)
        await first.kill()
    async with stage.bridge(OPERATOR) as second:
        expect(await second.wait(operation), state="interrupted", attempt=1, advice="look, then approve again")
        stage.rehearse_nothing()
        if (await second.apply(operation, grant)).started is not None:
            raise OffScript("the first bridge's grant has started something again")
        await approve_again(second, operation)


async def die_before_the_draft(stage: Stage, operation: str) -> None:
    stage.rehearse(dies="before the draft")
    async with stage.bridge(OPERATOR) as bridge_:
        await bridge_.approve(operation)
        expect(await bridge_.wait(operation), state="failed", attempt=1, advice="look, then approve again")
        await approve_again(bridge_, operation)


async def die_after_the_draft(stage: Stage, operation: str) -> None:
    stage.rehearse(dies="after the draft")
    async with stage.bridge(OPERATOR) as bridge_:
        await bridge_.approve(operation)
        expect(await bridge_.wait(operation), state="failed", attempt=1, advice="reconcile first")
        again = bridge.Apply(operation=operation, arguments=ARGUMENTS, grant=(await bridge_.preview(operation)).grant)
        refused = await bridge_.ask(again, No)
        if refused.code != "reconcile_first":
            raise OffScript(f"the second approval was refused with {refused.code}")
        stands = await bridge_.reconcile(operation, stage.order(operation))
        expect(stands, state="succeeded", attempt=1, advice="done")


async def approve_again(bridge_: Bridge, operation: str) -> None:
    await bridge_.approve(operation)
    expect(await bridge_.wait(operation), state="succeeded", attempt=2, advice="done")


def expect(stands: Stands, **wanted: object) -> None:
    """Raises:
    OffScript: the operation stands otherwise.
    """
    if any(getattr(stands, name) != value for name, value in wanted.items()):
        raise OffScript(f"it stands at {stands}, instead of {wanted}")


STORIES = (
    Story(
        "reorder-approved",
        "Approve and apply",
        "Apply answers when the approval is on the disk; the work goes on by itself, and ends with a recorded result.",
        approve_and_apply,
    ),
    Story(
        "reorder-timed-out",
        "The request times out and is retried",
        "Nobody heard the first answer, and the work was started all the same; the same grant again starts nothing.",
        time_out_and_retry,
    ),
    Story(
        "reorder-bridge-restarted",
        "The bridge is killed behind its answer, and another one is started",
        "The worker ended with its runner. The log says interrupted; the old grant starts nothing, a new one does.",
        restart_the_bridge,
    ),
    Story(
        "reorder-died-before",
        "The worker dies before the draft",
        "Nothing was ordered, which was looked up and not guessed: a new approval starts attempt 2.",
        die_before_the_draft,
    ),
    Story(
        "reorder-died-after",
        "The worker dies after the draft, before its result is recorded",
        "There is an order that the log does not know: a retry is refused until its operator has said what was found.",
        die_after_the_draft,
    ),
)
