"""What a process has for operations: the kinds it knows, its grants, what it runs, and its look at the world."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec.structs import replace

from coordinator.approval import Checked
from coordinator.artifacts import Artifacts, compare
from coordinator.grants import Grants
from coordinator.kinds import Kind, KindFailed, Registry, asked, has_check, validated
from coordinator.limits import fitting_reason
from coordinator.operations import ADVICE, AttemptRecord, Finding, OperationStatus
from projections.operations import LIVE

if TYPE_CHECKING:
    from coordinator.runner import Runner, Surroundings

log = logging.getLogger("coordinator")


class Operating:
    """Belongs to one open coordinator."""

    def __init__(self, session: Surroundings, registry: Registry, artifacts: Artifacts) -> None:
        self._session = session
        self.registry = registry
        self.artifacts = artifacts
        self.grants = Grants(session.clock)

    @cached_property
    def runner(self) -> Runner:
        """Made when it is first wanted: most programs run no operations."""
        from coordinator.runner import Runner

        return Runner(self._session, self.registry, self.artifacts)

    async def close(self) -> None:
        if "runner" in self.__dict__:
            await self.runner.close()
        self.artifacts.close()

    async def status(self, operation: str, operator: str) -> OperationStatus:
        """Where it stands, by the log and by the world.

        Raises:
            OperationUnknown: this actor has none of this id.
        """
        status = await self._session.see(lambda seen: seen.operation(operation, operator))
        findings = await self._findings(status)
        agrees = all(finding.agrees for finding in findings)
        return replace(status, findings=findings, advice=ADVICE[status.state, agrees])

    async def checked(self, operation: str, operator: str) -> Checked:
        """What stands in the way of another attempt, for `apply`."""
        status = await self.status(operation, operator)
        wrong = [finding.note for finding in status.findings if not finding.agrees]
        return Checked(attempt=status.attempt, disagreement=fitting_reason("; ".join(wrong)) if wrong else None)

    async def _findings(self, status: OperationStatus) -> tuple[Finding, ...]:
        if status.state in LIVE:
            return ()
        folder = self.artifacts.folder(status.id, status.attempt)
        findings: list[Finding] = []
        if status.artifacts:
            findings += await asyncio.to_thread(compare, status.artifacts, folder)
        if status.reconciled is not None:
            return tuple(findings)  # its operator has looked
        kind = self.registry.get(status.kind)
        if kind is not None and has_check(kind):
            findings.append(await self._check(kind, status, folder))
        elif kind is None and status.state != "succeeded":
            note = f"kind {status.kind!r} is not registered here: nobody has looked at the world"
            findings.append(Finding(agrees=False, note=note))
        return tuple(findings)

    async def _check(self, kind: Kind[Any], status: OperationStatus, folder: Path) -> Finding:
        """The kind's own finding; whatever goes wrong with it is one too."""
        record = AttemptRecord(
            operation_id=status.id,
            attempt=status.attempt,
            state=status.state,
            artifacts=status.artifacts,
            folder=folder,
            _result=status._result,  # pyright: ignore[reportPrivateUsage]
        )

        async def check() -> object:
            arguments = validated(kind, bytes(status._arguments))  # pyright: ignore[reportPrivateUsage]
            return await kind.check(arguments, record)

        try:
            finding = await asked(check, kind.check_limit_s)
        except KindFailed as failed:
            log.warning("the check of operation %s %s", status.id, failed, exc_info=failed.__cause__)
            return Finding(agrees=False, note=fitting_reason(f"the check {failed}"))
        if not _is_finding(finding):
            return Finding(agrees=False, note=f"the check returned no Finding, but a {type(finding).__name__}")
        return finding


def _is_finding(found: object) -> TypeGuard[Finding]:
    """With all in it as it was declared, which nothing but this ensures."""
    return isinstance(found, Finding) and (type(found.agrees), type(found.note), type(found.about)) == (bool, str, str)
