"""One actor's handle: everything it can ask for."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from coordinator import limits
from coordinator.answers import (
    AttemptQueued,
    ClaimGranted,
    LeaseRenewed,
    MessageNumbered,
    MessagesKept,
    NoteTaken,
    OperationLeft,
    PageDelivered,
    PathsReserved,
    SessionOpened,
    expect,
)
from coordinator.approving import Approving
from coordinator.arguments import seen_version, send_message
from coordinator.claim import Claim
from coordinator.claims import Claims
from coordinator.clock import to_datetime
from coordinator.commands import ClaimJob, ClaimNext
from coordinator.jobs import JobRef
from coordinator.messages import Message
from coordinator.operation import Operation
from coordinator.payloads import Payload
from coordinator.planning import Planning
from coordinator.reader import Reader
from coordinator.request import Outcome
from coordinator.resuming import as_if_sent_at, as_it_stands, claim_of
from coordinator.tokens import Token


class Agent(Planning, Approving):
    """What one actor can ask of a workspace.

    Every write takes two more arguments:

    * `receipt`: the actor's own idempotency key for this request, up to 256 bytes. Repeating the call with it applies
      nothing twice and returns the old answer; using it for another request raises `ReceiptConflict`.
    * `context`: up to 256 bytes that the log keeps beside the events, such as a traceparent or the id of a run.

    Every write raises `Refused` with a stable `code` where the rules say no, `InvalidInput` where the arguments are no
    command at all, `Busy` where the turn did not come in time (certainly not applied), `Unavailable` where the store
    cannot be used (not applied), and `OutcomeUnknown` where only repeating it with the receipt can tell.
    """

    @property
    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<Agent {self._name!r}>"

    async def claim(
        self,
        job: JobRef | str,
        *,
        version: int | None = None,
        lease_s: float = limits.LEASE_DEFAULT_S,
        receipt: str | None = None,
        context: str | None = None,
    ) -> Claim:
        """Take `job` for this agent and reserve every path it names, or nothing.

        Args:
            job: the job as this agent saw it, or its id together with `version`.
            version: the version that was seen; required with an id.
            lease_s: seconds until the claim lapses unless it is renewed, 1 to 86,400.

        Raises:
            VersionChanged: the job changed since it was seen.
            AlreadyClaimed, AlreadySubmitted, JobClosed: it is not to be had.
            DependenciesUnaccepted: names each dependency that is not accepted.
            AttemptsExhausted: too many attempts came to nothing.
            PathClash: names each clash, its holder and until when.
            ReceiptConflict: the receipt was used for another request.
        """
        id, version = seen_version(job, version)
        command = ClaimJob(job=id, version=version, lease_us=limits.lease_us("lease_s", lease_s))
        sent_at = self._session.clock.boot()
        outcome = await self._session.ask(self._name, command, receipt, context)
        return await self._granted(outcome, receipt, sent_at)

    async def claim_next(
        self,
        *,
        wait_s: float = 0,
        lease_s: float = limits.LEASE_DEFAULT_S,
        receipt: str | None = None,
        context: str | None = None,
    ) -> Claim | None:
        """Take the best job that is ready: the highest priority, then the one that is ready for longest.

        A job whose paths clash with a claim is passed over, and so are jobs of lower priority whose paths clash with a
        job that was passed over.

        Args:
            wait_s: if there is none, wait so many seconds for one, 0 to 86,400. Who waits is woken by what happens, and
                those who came first are served first.
            lease_s: seconds until the claim lapses unless it is renewed, 1 to 86,400.

        Returns:
            The claim, or None if there is nothing to claim.
        """
        ask = partial(self._ask_next, ClaimNext(lease_us=limits.lease_us("lease_s", lease_s)), receipt, context)
        wait_us = round(limits.seconds("wait_s", wait_s, 0, limits.WAIT_MAX_S) * 1e6)
        recall = None if receipt is None else partial(self._session.recall, self._name, limits.name("receipt", receipt))
        return await self._session.seekers.find(ask, waits=wait_us > 0, wait_us=wait_us, recall=recall)

    def claims(
        self, *, until_settled: bool = False, lease_s: float = limits.LEASE_DEFAULT_S, context: str | None = None
    ) -> Claims:
        """Claims one after another, waiting for work: `async for claim in agent.claims()`.

        Args:
            until_settled: end when no job is ready, claimed or submitted, and so none can come by itself.
            lease_s: seconds until each claim lapses unless it is renewed, 1 to 86,400.
        """
        command = ClaimNext(lease_us=limits.lease_us("lease_s", lease_s))
        ask = partial(self._ask_next, command, None, limits.context("context", context))
        return Claims(self._session.seekers, ask, until_settled)

    async def resume(self, token: Token | str) -> Claim:
        """The claim of a token, for a worker that was started anew and kept it.

        Args:
            token: the claim's token, or what its `reveal()` gave.

        Raises:
            TokenUnknown: no claim of this agent has it.
            TokenSuperseded, LeaseLapsed, ClaimEnded: the claim is over.
        """
        proof = Token.parse("token", token)

        before = self._session.clock.boot()
        claim, now = await self._session.see(lambda seen: (claim_of(seen, proof, self._name), seen.now or 0))
        return self._claim(claim, as_if_sent_at(claim, before, now))

    async def send(self, topic: str, body: Payload, *, receipt: str | None = None, context: str | None = None) -> int:
        """Tell all readers of a topic, present and future ones.

        Args:
            topic: the topic's name, up to 256 bytes; it begins with its first message.
            body: a mapping, a dataclass, a msgspec struct or a pydantic model; as JSON at most 256 KiB.

        Returns:
            The number of the message: 1, 2, 3 … within the topic.
        """
        outcome = await self._session.ask(self._name, send_message(topic, body), receipt, context)
        return expect(MessageNumbered, outcome.answer).number

    def reader(
        self, topic: str, name: str | None = None, *, receipt: str | None = None, context: str | None = None
    ) -> Reader:
        """A reader of a topic: `async with agent.reader("builds") as reader`.

        Opening it locks out an older session of the same topic and name, and goes on behind what was acknowledged.

        Args:
            name: the reader's name; by default the agent's. A new reader starts at message 1.
        """
        limits.context("context", context)
        if receipt is not None:
            limits.name("receipt", receipt)
        name = self._name if name is None else limits.name("name", name)
        return Reader(self._session, self._name, limits.name("topic", topic), name, receipt, context)

    async def recall(self, receipt: str) -> Recalled:
        """The original answer to the command that this agent gave this receipt, or None if it was never applied.

        A claim comes back as a `Claim` with its token (which may be over by now), a renewal as the end of the lease, a
        note as its log position, a reservation as the paths, a sent message as its number, a page as its messages, an
        acknowledgment and the opening of a reader as the acknowledged number, what was asked of an operation as its
        `Operation`, everything else as a `JobRef`.
        """
        found = await self._session.recall(self._name, limits.name("receipt", receipt))
        match found:
            case ClaimGranted():
                return await self._again(found)
            case LeaseRenewed(lease_until=until):
                return to_datetime(until)
            case NoteTaken(position):
                return position
            case PathsReserved(paths):
                return paths
            case MessageNumbered(number) | MessagesKept(number):
                return number
            case PageDelivered(messages):
                return messages
            case SessionOpened(acknowledged=acknowledged):
                return acknowledged
            case AttemptQueued(operation=operation) | OperationLeft(operation=operation):
                return self.operation(operation)
            case _:
                return found

    async def _ask_next(
        self, command: ClaimNext, receipt: str | None, context: str | None, candidate: str | None
    ) -> Claim | None:
        self._session.check_here()
        request = self._session.request(self._name, command, receipt, context, candidate)
        sent_at = self._session.clock.boot()
        outcome = await self._session.writer.ask(request)
        return None if outcome.answer is None else await self._granted(outcome, receipt, sent_at)

    async def _granted(self, outcome: Outcome, receipt: str | None, sent_at: int) -> Claim:
        """The claim that was asked for at `sent_at`, or long ago if the caller's receipt was known.

        Under a receipt of ours it was asked for just now, also where the writer had to look up what became of it. And
        nothing may be awaited any more: whoever is cancelled while he waits could never ask for the claim again.
        """
        claim = expect(ClaimGranted, outcome.answer)
        return await self._again(claim) if outcome.repeated and receipt is not None else self._claim(claim, sent_at)

    def _claim(self, claim: ClaimGranted, sent_at: int) -> Claim:
        return Claim(self._session, self._name, claim, sent_at)

    async def _again(self, claim: ClaimGranted) -> Claim:
        """A claim that was granted earlier, with the lease and the paths that it has now, if it still holds."""
        before = self._session.clock.boot()
        claim, now = await self._session.see(lambda seen: (as_it_stands(seen, claim), seen.now or 0))
        return self._claim(claim, as_if_sent_at(claim, before, now))


Recalled = Claim | JobRef | datetime | int | tuple[str, ...] | tuple[Message, ...] | Operation | None
"""What `recall` gives."""
