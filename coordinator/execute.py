"""The one journey: from commands that wait to events on disk.

    take the turn · draw the batch · read head and time · lapse what is due
    for each command: receipt? -> decide -> evolve
    append the events · put the changed rows · commit · give the turn back

Everything here is synchronous, and nothing is awaited inside a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec

from coordinator.answers import Answer, answer
from coordinator.clock import Clock, log_time
from coordinator.commands import type_of
from coordinator.decisions.attempts import due, lapse
from coordinator.decisions.claims import LookDeeper
from coordinator.decisions.decide import GRANTS, decide
from coordinator.decisions.moment import Moment
from coordinator.decisions.operations import CheckOutdated
from coordinator.envelopes import StoredLog, envelope_of, events_of_command, reading
from coordinator.errors import CoordinatorError, damaged
from coordinator.rebuild import check_head
from coordinator.refusal_limit import RefusalLimit
from coordinator.refusals import ReceiptConflict, Refused
from coordinator.request import NOTHING_ADDED, Added, Outcome, Request
from coordinator.stores.interface import Head, LogColumns, LogRow, Store, Transaction, TurnTaken, ViewColumns
from coordinator.tokens import draw
from coordinator.views import NEVER, RowCache, Views
from events.codec import chain, encode
from events.codec import type_of as event_type
from events.commands import CommandRefused
from events.envelope import Envelope
from events.union import AnyEvent
from projections.registry import FOLDS_VERSION

log = logging.getLogger("coordinator")

_encode_values = msgspec.json.Encoder(enc_hook=str).encode


class Journal:
    """What one writer keeps from batch to batch: remembered rows, the count of refusals, and its origin.

    Attributes:
        added: what its last commit added.
        outcomes: what the last batch came to, also if it could not be kept, until its callers are told.
    """

    def __init__(self, clock: Clock, origin: str) -> None:
        self.clock = clock
        self.origin = origin
        self.cache = RowCache()
        self.refusals = RefusalLimit()
        self.added = NOTHING_ADDED
        self.outcomes: list[Outcome] = []


def commit(
    store: Store, draw_batch: Callable[[], Sequence[Request]], journal: Journal, *, still_wanted: Callable[[], bool]
) -> list[Outcome]:
    """Run the commands that wait when the turn has come, in one transaction; their outcomes in the same order.

    An empty batch still records the lapses that are due.

    Raises:
        TurnTaken: the turn did not come; no batch was drawn.
        Unavailable: nothing was applied.
        CommitUnknown: reopen the store and ask again with the same receipts.
    """
    batch: Batch | None = None
    journal.outcomes = []
    journal.added = NOTHING_ADDED

    def work(transaction: Transaction) -> list[Outcome]:
        nonlocal batch
        batch = Batch(store, transaction, journal)
        batch.lapse_due()
        requests = draw_batch()
        batch.fetch(requests)
        journal.outcomes = [batch.run(request) for request in requests]
        batch.write()
        return journal.outcomes

    try:
        with reading():
            outcomes = store.write(work, still_wanted=still_wanted)
    except TurnTaken:
        raise  # nothing was begun, and so nothing that is remembered became wrong
    except BaseException:
        journal.cache.drop()
        journal.refusals.undo()
        raise
    if batch is not None:
        batch.remember()
    return outcomes


class Batch:
    """One transaction in the making: the commands of a batch see what those before them changed."""

    def __init__(self, store: Store, transaction: Transaction, journal: Journal) -> None:
        self._key = store.key
        self._transaction = transaction
        self._journal = journal
        self._head = transaction.head()
        check_head(self._head)
        cache = journal.cache
        cache.valid_at(self._head.generation, self._head.position, self._head.digest)
        self._views = Views(transaction, cache)
        self._boot = journal.clock.boot()
        self._now = now(self._head, journal.clock, boot=self._boot)
        self._envelopes: list[Envelope] = []
        self._log = StoredLog(transaction, self._views, self._envelopes, cache.described)
        self._receipts: dict[tuple[str, str], Envelope] = {}
        self._used: dict[tuple[str, str], LogRow] = {}  # receipts of this batch that are in the log already
        self._new_head = self._head
        self._streams: set[str] = set()

    def lapse_due(self) -> None:
        """Record every lease that has run out, before anybody decides anything."""
        cache = self._journal.cache
        if self._now < cache.quiet_until:
            return
        for lease in due(self._views, self._now):
            self._append(self._enclosed([lapse(lease, self._views)], None), None)
        first = next(self._views.leases.scan("live"), None)
        cache.quiet_until = NEVER if first is None else first.lease_until

    def fetch(self, requests: Sequence[Request]) -> None:
        """Read what the commands will look at first, all at once: each statement lets other threads take over."""
        self._views.fetch(place for request in requests for place in request.command.rows)
        asked = {(request.actor, request.receipt) for request in requests if not request.fresh}
        if asked:
            self._used = self._transaction.receipts(asked)

    def run(self, request: Request) -> Outcome:
        """One command's outcome. Whatever goes wrong with it leaves its neighbours alone."""
        try:
            earlier = self._earlier(request)
            if earlier is not None:
                return self._repeat(request, earlier)
            events = decide(request.command, self._views, self._moment(request))
            if not events:
                return Outcome()
            envelopes = self._enclosed(events, request)
            told = self._answer(envelopes)  # first, so that nothing is kept of a command whose answer fails
            self._append(envelopes, request)
            return Outcome(told, position=envelopes[0].position)
        except Refused as refusal:
            refusal.receipt = request.receipt
            refusal.position = self._record(request, refusal)
            # Its traceback would keep this whole batch for as long as somebody keeps the refusal.
            return Outcome(error=refusal.with_traceback(None), position=refusal.position)
        except (LookDeeper, CheckOutdated) as more_wanted:
            return Outcome(error=more_wanted)
        except CoordinatorError as error:
            return Outcome(error=error)  # if the store is at fault, it ends the whole batch anyway
        except msgspec.DecodeError as error:
            return Outcome(error=damaged(error))
        except Exception as error:
            log.exception("%s of %s failed unexpectedly", type_of(request.command), request.actor)
            return Outcome(error=error)

    def write(self) -> None:
        """Hand everything to the transaction: the events, the new head, the changed rows."""
        if not self._envelopes:
            return
        digest = self._head.digest
        rows: list[LogColumns] = []
        for envelope in self._envelopes:
            event = envelope.event
            columns = (
                envelope.position,
                envelope.at,
                event.stream,
                event_type(event),
                envelope.actor,
                envelope.origin,
                envelope.context,
                envelope.receipt,
                envelope.fingerprint,
                envelope.command,
                encode(event),
            )
            digest = chain(digest, columns)
            rows.append((*columns, digest))
        self._streams.update(columns[2] for columns in rows)
        self._new_head = Head(
            position=self._envelopes[-1].position,
            digest=digest,
            at=self._now,
            boot_id=self._journal.clock.boot_id,
            boot_at=self._boot,
            generation=self._head.generation,
            folds=FOLDS_VERSION,
            format=self._head.format,
        )
        self._transaction.append(rows, self._new_head)
        self._write_views()

    def remember(self) -> None:
        """After COMMIT: what this batch changed is what the store holds."""
        head = self._new_head
        self._journal.refusals.keep()
        for envelope in self._envelopes:
            self._journal.cache.describe(envelope)
        self._journal.added = Added(self._head.position, head.position, self._streams)
        self._journal.cache.merge(self._views, head.generation, head.position, head.digest)

    def _write_views(self) -> None:
        put: list[ViewColumns] = []
        gone: list[tuple[str, str]] = []
        for table in self._views.tables:
            if table.pending:
                changed, removed = table.changes()
                put += changed
                gone += removed
        if put:
            self._transaction.put(put)
        if gone:
            self._transaction.delete(gone)

    def _moment(self, request: Request) -> Moment:
        if request.nonce is None and type(request.command) in GRANTS:
            request.nonce = draw(self._key)
        return Moment(request.actor, self._now, request.nonce, request.candidate, request.approval, request.checked)

    def _earlier(self, request: Request) -> Envelope | None:
        """The first event of the command that had this receipt before, in this batch or in the log."""
        pending = self._receipts.get((request.actor, request.receipt))
        if pending is not None or request.fresh:
            return pending
        row = self._used.get((request.actor, request.receipt))
        return None if row is None else envelope_of(row)

    def _repeat(self, request: Request, first: Envelope) -> Outcome:
        if first.fingerprint != request.fingerprint:
            raise ReceiptConflict(request.receipt, first.position)
        envelopes = self._of_command(first)
        return Outcome(self._answer(envelopes), position=first.position, repeated=True)

    def _of_command(self, first: Envelope) -> list[Envelope]:
        if first.position > self._head.position:
            pending = self._envelopes[first.position - self._head.position - 1 :]
            return [envelope for envelope in pending if envelope.command == first.command]
        return events_of_command(self._transaction, first.position)

    def _answer(self, envelopes: Sequence[Envelope]) -> Answer:
        return answer(envelopes, key=self._key, log=self._log)

    def _enclosed(self, events: Sequence[AnyEvent], request: Request | None) -> list[Envelope]:
        """Give the events their positions."""
        position = self._head.position + len(self._envelopes) + 1
        return [
            _enclose(event, position, i, self._now, self._journal.origin, request) for i, event in enumerate(events)
        ]

    def _append(self, envelopes: Sequence[Envelope], request: Request | None) -> None:
        """Fold the events and keep them; nothing is kept if a fold fails."""
        self._views.evolve(envelopes)
        self._envelopes += envelopes
        if request is not None:
            self._receipts[request.actor, request.receipt] = envelopes[0]

    def _record(self, request: Request, refusal: Refused) -> int | None:
        left_out = self._journal.refusals.admit(request.actor, self._now)
        if left_out is None:
            return None
        event = CommandRefused(
            command=type_of(request.command),
            code=refusal.code,
            subject=request.command.subject,
            values=msgspec.Raw(_encode_values(refusal.values)),
            receipt_digest=sha256(request.receipt.encode()).hexdigest(),
            left_out=left_out,
        )
        position = self._head.position + len(self._envelopes) + 1
        self._envelopes.append(
            Envelope(
                position, self._now, request.actor, self._journal.origin, request.context, None, None, position, event
            )
        )
        return position


def now(head: Head, clock: Clock, *, boot: int | None = None) -> int:
    """Log time: never before the last event, never frozen."""
    return log_time(
        wall=clock.wall(),
        boot=clock.boot() if boot is None else boot,
        boot_id=clock.boot_id,
        last_at=head.at,
        last_boot_id=head.boot_id,
        last_boot_at=head.boot_at,
    )


def _enclose(event: AnyEvent, first: int, index: int, at: int, origin: str, request: Request | None) -> Envelope:
    """The receipt stands on a command's first event only; what the store found out itself has no actor."""
    if request is None:
        return Envelope(first + index, at, None, origin, None, None, None, first, event)
    return Envelope(
        first + index,
        at,
        request.actor,
        origin,
        request.context,
        request.receipt if index == 0 else None,
        request.fingerprint if index == 0 else None,
        first,
        event,
    )
