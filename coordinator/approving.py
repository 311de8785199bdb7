"""What an actor asks of operations: to preview one, to apply what was approved, to come back to one."""

from __future__ import annotations

from functools import partial
from hashlib import sha256

from msgspec import Raw

from coordinator import limits
from coordinator.answers import AttemptQueued
from coordinator.approval import Approval
from coordinator.clock import to_datetime
from coordinator.commands import ApplyOperation
from coordinator.decisions.operations import CheckOutdated
from coordinator.errors import InvalidInput, PreviewFailed
from coordinator.grants import Terms, grant_digest
from coordinator.kinds import KindFailed, asked, validated
from coordinator.operation import Operation
from coordinator.operation_refusals import OperationBound
from coordinator.operations import Grant, Preview
from coordinator.payloads import Payload, encode
from coordinator.receipts import generate
from coordinator.session import Session
from projections.operations import LIVE, OperationRow


class Approving:
    """The part of an agent's handle that is about operations: a mixin of `Agent`."""

    _session: Session
    _name: str

    async def preview(self, kind: str, arguments: Payload, *, operation_id: str | None = None) -> Preview:
        """What an operation would do, and the grant to approve it with. Changes nothing, and is recorded nowhere.

        Args:
            kind: name of a kind that this process has registered.
            arguments: a mapping, a dataclass, a msgspec struct or a pydantic model that fits the kind's arguments.
            operation_id: an id of the caller's choice, up to 256 bytes; that of an earlier operation of this agent to
                try it again. If it is not given, there will be a new one.

        Raises:
            InvalidInput: no such kind, or the arguments do not fit: the message names the field.
            OperationBound: the id belongs to an operation of another kind, or with other arguments.
            PreviewFailed: the kind's preview raised, or took too long.
        """
        self._session.check_here()
        operating = self._session.operating
        known = operating.registry.known(kind)
        given = encode("arguments", arguments)
        typed = validated(known, given)
        attempt = 1
        if operation_id is None:
            operation_id = generate(self._session.clock.wall())
        else:
            id = operation_id = limits.name("operation_id", operation_id)
            row = await self._session.see(lambda seen: seen.views.operations.get(id))
            attempt = self._next_attempt(row, kind, given)
        try:
            plan = encode("plan", await asked(lambda: known.preview(typed), known.preview_limit_s))
        except KindFailed as failed:
            raise PreviewFailed(f"the preview of {kind!r} {failed}") from failed.__cause__
        except InvalidInput as error:
            raise PreviewFailed(f"the preview of {kind!r} gave no plan: {error}") from error
        approval = Approval(
            worth="fresh",
            attempt=attempt,
            plan=Raw(plan),
            plan_digest=sha256(plan).hexdigest(),
            lease_us=limits.lease_us("lease_s", known.lease_s),
        )
        secret, until = operating.grants.hand_out(self._terms(operation_id, kind, given), approval)
        return Preview(
            operation_id=operation_id,
            kind=kind,
            plan_digest=approval.plan_digest,
            attempt=attempt,
            expires_at=to_datetime(until),
            grant=Grant(secret),
            _arguments=Raw(given),
            _plan=approval.plan,
        )

    async def apply(
        self,
        preview: Preview | None = None,
        *,
        operation_id: str | None = None,
        kind: str | None = None,
        arguments: Payload | None = None,
        grant: Grant | str | None = None,
        receipt: str | None = None,
        context: str | None = None,
    ) -> Operation:
        """Start what was approved. Answered as soon as the approval is on the disk; the work goes on by itself.

        Asking again is harmless: what has succeeded, or is running, or was started by this grant before, is not started
        again, and the operation's status tells how it stands.

        Args:
            preview: what `preview` returned. Or, where that is not at hand:
            operation_id, kind, arguments: as they were previewed.
            grant: the preview's grant, or what its `reveal()` gave.

        Raises:
            OperationBound: the id belongs to something else.
            ApprovalUnknown, ApprovalExpired, ApprovalMismatch: a grant is needed, and this one is not good for it.
            ReconcileFirst: how the last attempt left the world does not agree with the log.
            Busy: the turn was held for too long; the same call works later.
        """
        self._session.check_here()
        if preview is not None:
            if not isinstance(preview, Preview):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput("preview", f"must be a Preview, not {limits.kind(preview)}")
            if operation_id is not None or kind is not None or arguments is not None or grant is not None:
                raise InvalidInput("preview", "says all of it", hint="pass the preview alone")
            operation_id, kind, grant = preview.operation_id, preview.kind, preview.grant
            given = bytes(preview._arguments)  # pyright: ignore[reportPrivateUsage]
        else:
            given = encode("arguments", arguments)
        operation_id, kind = limits.name("operation_id", operation_id), limits.name("kind", kind)
        digest = grant_digest(_secret(grant))
        command = ApplyOperation(operation=operation_id, kind=kind, arguments=Raw(given), grant_digest=digest)
        operating = self._session.operating
        request = self._session.request(self._name, command, receipt, context)
        request.approval = operating.grants.worth(digest, self._terms(operation_id, kind, given))
        while True:
            sent_at = self._session.clock.boot()
            try:
                outcome = await self._session.writer.ask(request, partial(operating.runner.take, request, sent_at))
            except CheckOutdated:  # outside of transactions, since it may take long
                request.checked = await operating.checked(operation_id, self._name)
                continue
            match outcome.answer:
                case AttemptQueued(attempt=attempt, token=token):
                    started = request.drew(token)
                    return Operation(self._session, self._name, operation_id, attempt, started=started)
                case _:
                    return Operation(self._session, self._name, operation_id)

    def operation(self, id: str) -> Operation:
        """The handle of an operation that was applied earlier, perhaps by another process."""
        return Operation(self._session, self._name, limits.name("id", id))

    def _terms(self, operation: str, kind: str, arguments: bytes) -> Terms:
        return Terms(operation=operation, operator=self._name, kind=kind, arguments=arguments)

    def _next_attempt(self, row: OperationRow | None, kind: str, arguments: bytes) -> int:
        """Which attempt an approval would start: none but this, for who would approve another has not seen its end.

        Of somebody else's operation nothing shows.
        """
        if row is None or row.operator != self._name:
            return 1
        if not row.fits(kind, arguments):
            raise OperationBound(row.id)
        return row.attempt if row.state in LIVE else row.attempt + 1


def _secret(grant: Grant | str | None) -> str:
    if isinstance(grant, Grant):
        return grant.reveal()
    if not isinstance(grant, str):
        raise InvalidInput("grant", f"must be a grant or its text, not {limits.kind(grant)}")
    return grant
