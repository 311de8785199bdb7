"""A bridge: a process between people and the coordinator, which is asked on its standard input, one JSON object a line.

    python -m examples.reorder.bridge WORKSPACE DATABASE OPERATOR LEASE_S

What it approves runs under it. When its standard input ends, it stops what runs and leaves; it may also be killed at
any moment. Real ones speak HTTP or MCP; the answers would be the same.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from coordinator import Agent, Coordinator, CoordinatorError, OperationStatus
from examples.reorder.kind import Reorder
from examples.reorder.plan import Arguments, Plan
from examples.reorder.work import Result

GRACE = 0.4  # of the lease


class Ask(Struct, frozen=True, kw_only=True, tag_field="ask", tag=str.lower):
    """What a bridge is asked; each is about one operation."""

    operation: str


class Preview(Ask, frozen=True, kw_only=True):
    arguments: Arguments


class Apply(Ask, frozen=True, kw_only=True):
    """Who asks waits `within_s` at most. The bridge is busy with something else for `busy_s` meanwhile."""

    arguments: Arguments
    grant: str
    within_s: float | None = None
    busy_s: float = 0


class Status(Ask, frozen=True, kw_only=True):
    pass


class Wait(Ask, frozen=True, kw_only=True):
    pass


class Reconcile(Ask, frozen=True, kw_only=True):
    finding: Literal["done", "not done"]
    note: str
    result: Result | None = None


class Answer(Struct, frozen=True, kw_only=True, tag_field="answer", tag=str.lower):
    """What it answers."""


class Previewed(Answer, frozen=True, kw_only=True):
    grant: str
    plan: Plan


class Applied(Answer, frozen=True, kw_only=True):
    """`started` is the attempt that this call has started, if it has."""

    started: int | None


class TimedOut(Answer, frozen=True, kw_only=True):
    """Whoever asked is told no more."""


class Stands(Answer, frozen=True, kw_only=True):
    """Where the operation stands, what was found in the world, and what to do."""

    state: str
    attempt: int
    advice: str
    found: tuple[str, ...]


class No(Answer, frozen=True, kw_only=True):
    code: str
    sentence: str


AnyAsk: TypeAlias = Preview | Apply | Status | Wait | Reconcile
AnyAnswer: TypeAlias = Previewed | Applied | TimedOut | Stands | No


async def main() -> None:
    workspace, database, operator, lease = sys.argv[1:]
    lease_s = float(lease)
    async with Coordinator.open(workspace, busy_timeout_s=30) as coordinator:
        coordinator.register(Reorder(Path(database), lease_s=lease_s, grace_s=GRACE * lease_s))
        agent = coordinator.agent(operator)
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            try:
                answer = await answer_to(agent, msgspec.json.decode(line, type=AnyAsk))
            except CoordinatorError as error:
                answer = No(code=error.code, sentence=str(error))
            sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
            sys.stdout.buffer.flush()


async def answer_to(agent: Agent, ask: AnyAsk) -> AnyAnswer:
    operation = agent.operation(ask.operation)
    match ask:
        case Preview():
            preview = await agent.preview(Reorder.name, ask.arguments, operation_id=ask.operation)
            return Previewed(grant=preview.grant.reveal(), plan=preview.plan_as(Plan))
        case Apply():
            return await apply(agent, ask)
        case Status():
            return stands(await operation.status())
        case Wait():
            return stands(await operation.wait())
        case Reconcile():
            return stands(await operation.reconcile(ask.finding, ask.note, ask.result))


async def apply(agent: Agent, ask: Apply) -> Applied | TimedOut:
    if ask.busy_s:
        asyncio.get_running_loop().call_soon(time.sleep, ask.busy_s)
    try:
        async with asyncio.timeout(ask.within_s):
            operation = await agent.apply(
                operation_id=ask.operation, kind=Reorder.name, arguments=ask.arguments, grant=ask.grant
            )
    except TimeoutError:
        return TimedOut()
    return Applied(started=operation.attempt)


def stands(status: OperationStatus) -> Stands:
    found = tuple(finding.note for finding in status.findings)
    return Stands(state=status.state, attempt=status.attempt, advice=status.advice, found=found)


if __name__ == "__main__":
    asyncio.run(main())
