"""An operation's handle, for the agent that applied it."""

from __future__ import annotations

from msgspec import UNSET, Raw

from coordinator import limits
from coordinator.answers import OperationLeft
from coordinator.commands import CancelOperation, ReconcileOperation
from coordinator.errors import InvalidInput
from coordinator.operations import OperationStatus
from coordinator.payloads import Payload, encode
from coordinator.seen import Seen
from coordinator.session import Session
from events.operations import Reconciled
from events.streams import operation_stream
from projections.operations import LIVE

_FINDINGS: tuple[Reconciled, ...] = ("done", "not done")


class Operation:
    """One operation of an agent. For other agents it does not exist.

    Attributes:
        id: the operation's id.
        started: whether the call that gave this handle has started an attempt.
        attempt: number of that attempt, or of the one that an earlier call with the same receipt has started; None
            where there is none.
    """

    def __init__(
        self, session: Session, actor: str, id: str, attempt: int | None = None, *, started: bool = False
    ) -> None:
        self._session = session
        self._actor = actor
        self.id = id
        self.attempt = attempt
        self.started = started

    def __repr__(self) -> str:
        return f"<Operation {self.id!r}>"

    async def status(self) -> OperationStatus:
        """Where it stands: what the log says, compared with the world. Changes nothing.

        Raises:
            OperationUnknown: this agent has no operation of this id.
        """
        self._session.check_here()
        return await self._session.operating.status(self.id, self._actor)

    async def wait(self) -> OperationStatus:
        """Wait until no attempt is queued or running. There is no timeout argument: use `anyio.fail_after`.

        Raises:
            OperationUnknown: this agent has no operation of this id.
        """
        streams = frozenset({operation_stream(self.id)})

        def look(seen: Seen) -> tuple[None] | frozenset[str]:
            return streams if seen.own_operation(self.id, self._actor).state in LIVE else (None,)

        while True:
            await self._session.until(look)
            status = await self.status()
            if status.state not in LIVE:  # another attempt may have begun between the two
                return status

    async def cancel(
        self, reason: str | None = None, *, receipt: str | None = None, context: str | None = None
    ) -> OperationStatus:
        """Ask for its running attempt to be stopped, wherever it runs. What has ended is left as it is.

        Returns:
            Where it stands now; `wait` tells when it has stopped.

        Raises:
            OperationUnknown: this agent has no operation of this id.
        """
        said = None if reason is None else limits.reason("reason", reason)
        self._session.check_here()
        request = self._session.request(self._actor, CancelOperation(operation=self.id, reason=said), receipt, context)
        await self._session.writer.ask(request, self._session.operating.runner.hear)
        return await self.status()

    async def reconcile(
        self,
        finding: Reconciled,
        note: str,
        result: Payload | None = None,
        *,
        attempt: int | None = None,
        receipt: str | None = None,
        context: str | None = None,
    ) -> OperationStatus:
        """Say what its newest attempt has done in the world, after looking: then nothing stands in the way any more.

        Args:
            finding: "done": it has succeeded, with this result; "not done": another attempt may be approved.
            note: what was looked at, and found.
            result: what it came to, if it is done.
            attempt: the attempt that was looked at; the newest one if it is not given.

        Raises:
            OperationUnknown: this agent has no operation of this id.
            AttemptChanged: another attempt has begun since.
            OperationLive: it is running, or has succeeded.
        """
        limits.choice("finding", finding, _FINDINGS)
        if result is not None and finding != "done":
            raise InvalidInput("result", "belongs to what is done")
        raw = Raw(encode("result", result)) if finding == "done" else UNSET
        if attempt is None:
            attempt = await self._attempt_meant(receipt)
        command = ReconcileOperation(
            operation=self.id,
            attempt=limits.whole("attempt", attempt, 1, limits.INTEGER_MAX),
            finding=finding,
            note=limits.reason("note", note),
            result=raw,
        )
        await self._session.ask(self._actor, command, receipt, context)
        return await self.status()

    async def _attempt_meant(self, receipt: str | None) -> int:
        """The newest one; of a call that is repeated, that which was the newest when it was first made."""
        if receipt is not None:
            first = await self._session.recall(self._actor, limits.name("receipt", receipt))
            if isinstance(first, OperationLeft) and first.operation == self.id:
                return first.attempt
        return (await self._session.see(lambda seen: seen.own_operation(self.id, self._actor))).attempt
