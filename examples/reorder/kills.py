"""The runner is killed at random moments; each time its operator follows the advice until the operation succeeds."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median

from examples.reorder import bridge
from examples.reorder.bridge import No, Stands
from examples.reorder.stage import Bridge, BridgeGone, OffScript, Stage

LANES = 3
"""So many are killed at the same time, each in the name of another operator."""

PAUSE_S = 0.01
"""The workers' pause after each page, which makes most of the time."""

SHOWS = "Another runner tells how each operation stands, and its operator does as the status advises."

_OPERATORS = [f"operator-{lane}" for lane in range(1, LANES + 1)]
_LEASE_S = 1.0
_STEPS = 20

_BEFORE = 0.2  # this share of the kills comes before the approval
_BEYOND = 1.2  # the last ones come later than the usual end of the work


@dataclass(frozen=True, slots=True)
class Kill:
    """One operation whose runner is to be killed.

    Attributes:
        share: when, as a share of the time from before the runner's start to after the work's end.
    """

    operation: str
    share: float


@dataclass(frozen=True, slots=True)
class Usual:
    """How long it takes when nobody is killed: from a runner's start to the approval, and from there to the result."""

    start_s: float
    work_s: float


def draw(number: int, seed: int) -> list[Kill]:
    """One at random in each of so many equal parts of the whole time, in random order."""
    numbers = random.Random(seed)
    shares = [(part + numbers.random()) / number for part in range(number)]
    numbers.shuffle(shares)
    return [Kill(f"reorder-kill-{count:02}", share) for count, share in enumerate(shares, 1)]


def undisturbed() -> list[str]:
    """The operations that are timed, one a lane."""
    return [f"reorder-timed-{lane}" for lane in range(1, LANES + 1)]


async def play(stage: Stage, kills: list[Kill], say: Callable[[str], None]) -> None:
    """Raises:
    ExceptionGroup: with an `OffScript` for what did not go as it must.
    """
    left = iter(kills)
    async with AsyncExitStack() as stack:
        seconds = [await stack.enter_async_context(stage.bridge(operator)) for operator in _OPERATORS]
        for second in seconds:
            await second.tell(bridge.Status(operation="none"))  # now it has begun
        usual = await _usual(stage)
        say(f"  Undisturbed: {usual.start_s:.2f} s to the approval, from there {usual.work_s:.2f} s to the result")
        async with asyncio.TaskGroup() as group:
            for operator, second in zip(_OPERATORS, seconds, strict=True):
                group.create_task(_lane(stage, operator, second, left, usual, say))


async def _usual(stage: Stage) -> Usual:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_undisturbed(stage, operator, operation))
            for operator, operation in zip(_OPERATORS, undisturbed(), strict=True)
        ]
    usuals = [task.result() for task in tasks]
    return Usual(median(usual.start_s for usual in usuals), median(usual.work_s for usual in usuals))


async def _undisturbed(stage: Stage, operator: str, operation: str) -> Usual:
    began = time.monotonic()
    async with stage.bridge(operator) as runner:
        await runner.approve(operation)
        approved = time.monotonic()
        await runner.wait(operation)
        ended = time.monotonic()
        await see_through(stage, runner, operation)
    return Usual(approved - began, ended - approved)


async def _lane(
    stage: Stage, operator: str, second: Bridge, left: Iterator[Kill], usual: Usual, say: Callable[[str], None]
) -> None:
    for kill in left:
        async with stage.bridge(operator, lease_s=_LEASE_S) as runner:
            when = await _kill(runner, kill, usual)
        done = await see_through(stage, second, kill.operation)
        say(f"  {kill.operation}  killed {when}: {'; '.join(done)}")


async def _kill(runner: Bridge, kill: Kill, usual: Usual) -> str:
    """When it was, in words."""
    approving = asyncio.create_task(_approve(runner, kill.operation))
    if kill.share < _BEFORE:
        after_s, since = kill.share / _BEFORE * usual.start_s, "its start"
    else:
        await approving
        after_s, since = (kill.share - _BEFORE) / (1 - _BEFORE) * _BEYOND * usual.work_s, "the approval"
    await asyncio.sleep(after_s)
    await runner.kill()
    await approving
    return f"{after_s:.3f} s after {since}"


async def _approve(runner: Bridge, operation: str) -> None:
    try:
        await runner.approve(operation)
    except BridgeGone:
        return  # it was killed


async def see_through(stage: Stage, bridge_: Bridge, operation: str) -> list[str]:
    """Do what the status advises until it advises nothing more; what was done, in words."""
    done: list[str] = []
    for _ in range(_STEPS):
        stands = await bridge_.tell(bridge.Status(operation=operation))
        match stands:
            case No(code="operation_unknown"):
                done.append("nothing had been approved")
                await bridge_.approve(operation)
            case Stands(advice="wait"):
                await bridge_.wait(operation)
            case Stands(advice="look, then approve again", state=state, attempt=attempt, found=found):
                done.append(f"attempt {attempt} {state}, {', '.join(found)}, approved again")
                await bridge_.approve(operation)
            case Stands(advice="reconcile first", state=state, attempt=attempt, found=found):
                done.append(f"attempt {attempt} {state}, {', '.join(found)}, reconciled")
                await bridge_.reconcile(operation, stage.order(operation))
            case Stands(advice="done", attempt=attempt):
                return [*done, f"attempt {attempt} succeeded"]
            case _:
                raise OffScript(f"{operation}: its status is {stands}")
    raise OffScript(f"{operation} has not succeeded after {_STEPS} steps: {'; '.join(done)}")
