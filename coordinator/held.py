"""What a claim's handle, its renewals and its working block share: the claim as this process knows it."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.answers import ClaimGranted
from coordinator.commands import AnyCommand, RenewClaim
from coordinator.refusals import ClaimLost, LeaseLapsed
from coordinator.renewals import Renewal
from coordinator.request import Outcome, Request
from coordinator.session import Session
from events.streams import job_stream


class Held:
    """A claim that this process was granted.

    Attributes:
        sent_at: `boot()` from which the lease counts: when the claim, or its last renewal, was sent.
        lease_us: length of the lease.
        lease_until: its end in µs of log time.
        ending: the request for submit, fail or release, once there was one.
        ended: it has succeeded.
        when_ended: called then; the block under `working` has nothing more to watch.
    """

    def __init__(self, session: Session, actor: str, granted: ClaimGranted, sent_at: int) -> None:
        self.session = session
        self.actor = actor
        self.granted = granted
        self.sent_at = sent_at
        self.lease_us = granted.lease_us
        self.lease_until = granted.lease_until
        self.paths = granted.paths
        self.ending: Request | None = None
        self.ended = False
        self.when_ended: Callable[[], None] = _nothing
        self._renewing: Renewal | None = None

    @property
    def job(self) -> str:
        return self.granted.job.id

    @property
    def token_digest(self) -> str:
        return self.granted.token.digest

    async def ask(self, command: AnyCommand, receipt: str | None, context: str | None) -> Outcome:
        return await self.session.ask(self.actor, command, receipt, context)

    async def end(self, command: AnyCommand, receipt: str | None, context: str | None) -> Outcome:
        """Ask for something with which the claim ends."""
        self.session.check_here()
        self.ending = self.session.request(self.actor, command, receipt, context)
        outcome = await self.session.writer.ask(self.ending)
        self.ended = True
        self.when_ended()
        return outcome

    def renewed(self, lease_us: int, lease_until: int, sent_at: int) -> None:
        """The store moved the lease on."""
        self.lease_us = lease_us
        self.lease_until = lease_until
        self.sent_at = sent_at

    def renewed_by_hand(self, lease_us: int, lease_until: int, sent_at: int) -> None:
        """The worker itself moved the lease on, perhaps to an earlier end: the next renewal goes by that."""
        if sent_at < self.sent_at:
            return  # another renewal, sent later, has been answered already
        self.renewed(lease_us, lease_until, sent_at)
        if self._renewing is not None:
            self._renewing.moved(lease_us, sent_at)

    def keep_renewing(self, lost: Callable[[ClaimLost], None]) -> Renewal:
        """Renew until stopped; `lost` is told, on another thread, if the lease is lost."""
        self._renewing = Renewal(
            self.session.writer,
            self.session.timers,
            self.session.clock,
            request=self._renewal,
            lease_us=self.lease_us,
            sent_at=self.sent_at,
            renewed=self.renewed,
            lost=lost,
            lapsed=self._lapsed,
        )
        return self._renewing

    def _renewal(self) -> Request:
        return self.session.request(self.actor, RenewClaim(job=self.job, token_digest=self.token_digest))

    def _lapsed(self) -> LeaseLapsed:
        return LeaseLapsed(job_stream(self.job), attempt=self.granted.attempt, lease_until=self.lease_until)


def _nothing() -> None:
    pass
