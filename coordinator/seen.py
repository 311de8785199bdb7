"""What a read sees: one snapshot, with the leases that have run out since folded in as lapsed."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.decisions.attempts import due, lapse
from coordinator.decisions.clashes import in_the_way
from coordinator.envelopes import event_at
from coordinator.errors import InvalidInput
from coordinator.jobs import Job, job_of
from coordinator.messages import ReaderPositions
from coordinator.operation_refusals import OperationUnknown
from coordinator.operations import OperationStatus, status_of
from coordinator.refusals import JobUnknown
from coordinator.stores.interface import LogRow, Snapshot
from coordinator.views import Views
from events.envelope import Envelope
from events.streams import is_kind, job_stream, operation_stream, reader_stream
from events.union import AnyEvent
from projections.jobs import SETTLED, JobRow, State
from projections.leases import falls_due
from projections.operations import OperationRow
from projections.readers import reader_key, readers_range
from projections.reservations import ReservationRow


class Seen:
    """One state of the workspace at log time `now`.

    The lapses that the next transaction will record first are already seen, with the positions that they will have.

    Args:
        log: where events are read, also those that rows point to.
        rows: where rows are read; the same snapshot, except in time travel.
        now: log time in µs; None for a state of the past, in which nothing more lapses.
        until: the last position that this state knows; None for the end of the log.
    """

    def __init__(
        self, log: Snapshot, now: int | None, *, rows: Snapshot | None = None, until: int | None = None
    ) -> None:
        self.log = log
        self.now = now
        self._until = until
        self._lapsed: set[str] = set()
        self.views = Views(rows or log)
        if now is not None:
            self._lapse_due(now)

    def job(self, job: str) -> Job:
        row = self.views.jobs.get(job)
        if row is None:
            raise JobUnknown(job)
        return self._job(row)

    def jobs(self, state: State, limit: int) -> list[Job]:
        """The first jobs of one state, in the order in which they would be claimed."""
        found: list[Job] = []
        for row in self.views.jobs.scan(state):
            if len(found) == limit:
                break
            found.append(self._job(row))
        return found

    @property
    def time(self) -> int:
        """Log time of this state, in µs; of a position of the past, that of its event."""
        if self.now is not None:
            return self.now
        position = self.log.head().position if self._until is None else self._until
        row = self.log.event(position) if position else None
        return 0 if row is None else row.at

    def came_to(self, row: JobRow) -> str | None:
        """Who brought a job into the state it is in; None for a lapse."""
        stored = self.log.event(row.position)
        return None if stored is None or "job/" + row.id in self._lapsed else stored.actor

    def reservations(self, path: str | None) -> Iterator[tuple[ReservationRow, int]]:
        """The reservations, or those in the way of `path`, each with the end of its lease in µs."""
        for row in self._reserved(path):
            lease = self.views.leases.get(job_stream(row.job))
            yield row, 0 if lease is None else lease.lease_until

    def last_message(self, topic: str) -> int:
        """Number of the last message of a topic; 0 if there is none."""
        row = self.views.topics.get(topic)
        return 0 if row is None else row.last

    def acknowledged(self, topic: str, reader: str) -> int:
        """Number of the last message that the reader has acknowledged; 0 if there is none."""
        row = self.views.readers.get(reader_key(topic, reader))
        return 0 if row is None else row.acknowledged

    def readers(self, topic: str) -> list[ReaderPositions]:
        """Where the readers of a topic stand, by name."""
        found: list[ReaderPositions] = []
        for row in self.views.readers.between(*readers_range(topic)):
            lease = self.views.leases.get(reader_stream(topic, row.reader))
            if lease is not None:
                found.append(
                    ReaderPositions(
                        topic=topic,
                        name=row.reader,
                        last=self.last_message(topic),
                        delivered=row.delivered,
                        acknowledged=row.acknowledged,
                        holder=lease.actor,
                        session=lease.attempt,
                    )
                )
        return sorted(found, key=lambda positions: positions.name)

    def own_operation(self, operation: str, operator: str) -> OperationRow:
        """An operation's row, which for anybody but its operator does not exist."""
        row = self.views.operations.get(operation)
        if row is None or row.operator != operator:
            raise OperationUnknown(operation)
        return row

    def operation(self, operation: str, operator: str) -> OperationStatus:
        """What the log says of an operation of this operator."""
        row = self.own_operation(operation, operator)
        return status_of(row, self.views.leases.get(operation_stream(operation)), self.event_at)

    def holds(self, subject: str, token_digest: str) -> bool:
        """Whether this token is that of the subject's live lease."""
        lease = self.views.leases.get(subject)
        return lease is not None and lease.ended is None and lease.token_digest == token_digest

    def on_the_way(self, job: Job, states: frozenset[State]) -> frozenset[str] | None:
        """The streams on which it depends whether a job comes into one of the states; None if it cannot.

        It cannot if somebody would have to reopen or revise a job for that.

        A settled job stays what it is, a job that waits for one that failed or was cancelled waits for ever, and no job
        comes to wait for another by itself.
        """
        if job.state in SETTLED or states <= {"blocked"}:
            return None
        if job.state != "blocked":
            return frozenset({job_stream(job.id)})
        open_ends, looked_at = list(job.depends_on), set(job.depends_on)
        while open_ends:
            row = self.views.jobs.get(open_ends.pop())
            if row is None or row.state in ("failed", "cancelled"):
                return None
            if row.state == "blocked":
                more = [name for name in row.depends_on if name not in looked_at]
                looked_at.update(more)
                open_ends += more
        return frozenset(map(job_stream, (job.id, *looked_at)))

    def due_in(self, streams: frozenset[str]) -> int | None:
        """µs until the next lapse on one of the streams is to be recorded, or None.

        That is now, if this state has seen one that no transaction has recorded yet.
        """
        if self.now is None:
            return None
        whole_kinds = any(map(is_kind, streams))
        if self._lapsed and (whole_kinds or self._lapsed & streams):
            return 0
        if whole_kinds:
            ends = (lease.lease_until for lease in self.views.leases.scan("live"))
            first = next(ends, None)
        else:
            leases = map(self.views.leases.get, streams)
            first = min((lease.lease_until for lease in leases if lease is not None and falls_due(lease)), default=None)
        return None if first is None else first - self.now

    def event_at(self, position: int) -> AnyEvent:
        return event_at(self.log, position)

    def rows(self, after: int, limit: int, stream: str | None) -> list[LogRow]:
        """Rows of the log, up to the end of what this state knows.

        Raises:
            InvalidInput: the log ends before `after`. Whoever kept that position has seen another log, and would pass
                over what this one holds.
        """
        found = self.log.events(after=after, limit=limit, stream=stream)
        rows = [row for row in found if self._until is None or row.position <= self._until]
        if not rows and after > (end := self.log.head().position if self._until is None else self._until):
            hint = "another workspace, or an older copy than the one in which the position was kept?"
            raise InvalidInput("after", f"the log ends at position {end}", hint=hint)
        return rows

    def _job(self, row: JobRow) -> Job:
        lease = self.views.leases.get(job_stream(row.id)) if row.state == "claimed" else None
        return job_of(row, lease, self.event_at)

    def _reserved(self, path: str | None) -> Iterator[ReservationRow]:
        return self.views.reservations.between("", None) if path is None else in_the_way(path, self.views)

    def _lapse_due(self, now: int) -> None:
        position = self.log.head().position if self._until is None else self._until
        for lease in due(self.views, now):
            self._lapsed.add(lease.subject)
            position += 1
            event = lapse(lease, self.views)
            self.views.evolve([Envelope(position, now, None, None, None, None, None, position, event)])
