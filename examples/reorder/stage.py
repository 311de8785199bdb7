"""Where the play takes place: a folder with a workspace and an ordering system, and the bridges that share both."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from examples.reorder import bridge, orders, warehouse
from examples.reorder.bridge import AnyAnswer, AnyAsk, Applied, Previewed, Stands
from examples.reorder.kind import ROOT
from examples.reorder.orders import Order
from examples.reorder.plan import Arguments
from examples.reorder.rehearsal import Point, rehearse
from examples.reorder.work import result_of

ARGUMENTS = Arguments(supplier="north", weeks=4)
LEASE_S = 20.0
USUAL_S = 0.002

_ANSWER_S = 60

T = TypeVar("T", bound=bridge.Answer)


class OffScript(Exception):
    """Something else happened than the story tells."""


class BridgeGone(Exception):
    """It ended before it had answered."""


class Bridge:
    """A bridge process as those see it who ask it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, ask: AnyAsk, answer: type[T]) -> T:
        """Raises:
        OffScript: it answers something else.
        BridgeGone: it was killed.
        """
        given = await self.tell(ask)
        if not isinstance(given, answer):
            raise OffScript(f"to {ask} the bridge answered {given}")
        return given

    async def tell(self, ask: AnyAsk) -> AnyAnswer:
        """Whatever it answers."""
        if self._process.stdin is None or self._process.stdout is None:
            raise BridgeGone
        try:
            self._process.stdin.write(msgspec.json.encode(ask) + b"\n")
            async with asyncio.timeout(_ANSWER_S):
                line = await self._process.stdout.readline()
        except ConnectionError:
            line = b""
        except TimeoutError:
            raise OffScript(f"to {ask} the bridge answered nothing for {_ANSWER_S} s") from None
        if not line.endswith(b"\n"):
            raise BridgeGone
        return msgspec.json.decode(line, type=AnyAnswer)

    async def preview(self, operation: str) -> Previewed:
        return await self.ask(bridge.Preview(operation=operation, arguments=ARGUMENTS), Previewed)

    async def apply(self, operation: str, grant: str) -> Applied:
        return await self.ask(bridge.Apply(operation=operation, arguments=ARGUMENTS, grant=grant), Applied)

    async def approve(self, operation: str) -> Applied:
        """Preview it and, as the plan looks good, apply it."""
        return await self.apply(operation, (await self.preview(operation)).grant)

    async def status(self, operation: str) -> Stands:
        return await self.ask(bridge.Status(operation=operation), Stands)

    async def wait(self, operation: str) -> Stands:
        return await self.ask(bridge.Wait(operation=operation), Stands)

    async def reconcile(self, operation: str, order: Order | None) -> Stands:
        """Say what its operator has found in the ordering system."""
        if order is None:
            ask = bridge.Reconcile(operation=operation, finding="not done", note="there is no draft order")
        else:
            note = f"draft order {order.number} stands in the ordering system, with {len(order.lines)} lines"
            ask = bridge.Reconcile(operation=operation, finding="done", note=note, result=result_of(order))
        return await self.ask(ask, Stands)

    async def kill(self) -> None:
        """With SIGKILL: it has no moment to say anything."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def leave(self) -> None:
        """Let it end by itself, if it has not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._process.wait()
        finally:
            await self.kill()


class Stage:
    """Everything that lasts longer than a process."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace.db"
        self.warehouse = folder / "warehouse.db"
        self.complaints = folder / "bridges.log"
        warehouse.create(self.warehouse)

    @asynccontextmanager
    async def bridge(self, operator: str, *, lease_s: float = LEASE_S) -> AsyncGenerator[Bridge]:
        """A new process, gone afterwards. Its process group is its own, so that Ctrl-C reaches the play alone."""
        with self.complaints.open("ab") as complaints:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "examples.reorder.bridge"),
                *(str(self.workspace), str(self.warehouse), operator, str(lease_s)),
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=complaints,
                process_group=0,
            )
        opened = Bridge(process)
        try:
            yield opened
        except BaseException:
            await opened.kill()
            raise
        await opened.leave()

    def rehearse(self, *, pause_s: float | None = None, dies: Point | None = None) -> None:
        with warehouse.opened(self.warehouse) as connection:
            rehearse(connection, pause_s=pause_s, dies=dies)

    def rehearse_nothing(self) -> None:
        """Workers that are as slow as usual, and live."""
        self.rehearse(pause_s=USUAL_S)

    def order(self, operation: str) -> Order | None:
        """What the ordering system has of this operation."""
        with warehouse.opened(self.warehouse) as connection:
            return orders.find(connection, operation)

    def count_orders(self, operation: str | None = None) -> int:
        with warehouse.opened(self.warehouse) as connection:
            return orders.count_orders(connection, operation)
