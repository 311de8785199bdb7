"""A workspace that the library wrote through its handles, and the means to break its log so that one rule sees it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from coordinator import ClaimLost, Coordinator, NothingToReview
from coordinator.auditing.audit import Anchor, audit
from coordinator.envelopes import envelope_of
from coordinator.stores.interface import LogRow
from coordinator.testing import ManualClock
from events.base import Event
from events.codec import encode, type_of
from projections.replay import as_stored, fold, replay
from tests.public.operating import Reorder, applied, ended
from tests.support import digests

LEASE_S = 3_600
LEASE_US = LEASE_S * 1_000_000


async def tell(database: Path) -> None:
    """Jobs in all states, messages, a reader, an operation, a lapse and a refusal.

    In the end job `live` is held by bob, with `src`; `waits` waits for it, `top` is ready since `done` was accepted,
    `handed` waits for a review of bob's work, and `spent` has failed.
    """
    clock = ManualClock()
    async with Coordinator.open(database, clock=clock) as coordinator:
        coordinator.register(Reorder())
        ada, bob = coordinator.agent("ada"), coordinator.agent("bob")
        done = await ada.add_job("done", receipt="first")
        await ada.add_job("top", depends_on=["done"])
        claim = await bob.claim(done)
        await claim.renew()
        await claim.note({"half": "done"})
        await claim.reserve(["doc"])
        await claim.send("news", {"n": 1})
        await claim.add_job("ready", max_attempts=2)
        await claim.submit({"all": "done"})
        await ada.accept(await coordinator.job("done"))
        handed = await bob.claim(await ada.add_job("handed"))
        await handed.submit()
        spent = await bob.claim(await ada.add_job("spent", max_attempts=1), lease_s=1)
        clock.advance(2)
        with suppress(ClaimLost):
            await spent.note({"too": "late"})
        with suppress(NothingToReview):
            await ada.accept(await coordinator.job("ready"))
        returned = await bob.claim(await coordinator.job("ready"))
        await returned.release()
        await ada.send("news", {"n": 2})
        await ada.send("news", {"n": 3})
        async with ada.reader("news") as reader:
            page = await reader.read(limit=2)
            await reader.acknowledge(page[0].number)
        operation = await applied(ada, id="ordered")
        await ended(operation)
        live = await ada.add_job("live", paths=["src"])
        await bob.claim(live, lease_s=LEASE_S)
        await ada.add_job("waits", depends_on=["live"])


def found(database: Path, anchor: Anchor | None = None) -> list[tuple[str, int | None]]:
    """The rules that an audit says are broken, and where."""
    return [(violation.rule, violation.position) for violation in audit(database, anchor=anchor)]


class Tampered:
    """Somebody who can write to the file, and knows how digests and views are made."""

    def __init__(self, database: Path) -> None:
        self.path = database
        self._connection = sqlite3.connect(database, isolation_level=None)

    def sql(self, sql: str, *values: object) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def log(self) -> list[LogRow]:
        return [
            LogRow._make(row) for row in self.sql(f"SELECT {', '.join(LogRow._fields)} FROM events ORDER BY position")
        ]

    def at(self, type: str, stream: str = "%") -> int:
        """The first position of an event."""
        sql = "SELECT min(position) FROM events WHERE type = ? AND stream LIKE ?"
        position = self.sql(sql, type, stream)[0][0]
        assert position is not None, f"no {type} of {stream}"
        return position

    def change(self, position: int, **fields: object) -> int:
        """Other fields in the body of an event; the position."""
        body = json.loads(self.sql("SELECT body FROM events WHERE position = ?", position)[0][0])
        text = json.dumps({**body, **fields}, separators=(",", ":"))
        self.sql("UPDATE events SET body = ? WHERE position = ?", text, position)
        return position

    def append(self, actor: str | None, event: Event, *, after_us: int = 0, command: int | None = None) -> int:
        """One more event at the end of the log; its position."""
        last = self.log()[-1]
        place = last.position + 1
        values = (place, last.at + after_us, event.stream, type_of(event), actor, command or place, encode(event))  # type: ignore[arg-type]
        columns = "position, at, stream, type, actor, command, body, digest"
        self.sql(f"INSERT INTO events({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, x'00')", *values)
        return place

    @property
    def now(self) -> int:
        return self.log()[-1].at

    def chain(self) -> None:
        """Digests as they follow from the columns, and a head that fits."""
        log = self.log()
        (workspace,) = self.sql("SELECT id FROM workspace")[0]
        chained = digests(workspace, log)
        for row, digest in zip(log, chained, strict=True):
            self.sql("UPDATE events SET digest = ? WHERE position = ?", digest, row.position)
        self.sql("UPDATE head SET position = ?, digest = ?, at = ?", log[-1].position, chained[-1], log[-1].at)

    def fold(self) -> None:
        """Views as they follow from the events."""
        rows = replay([])
        for row in self.log():
            with suppress(Exception):
                fold(envelope_of(row), rows)
        self.sql("DELETE FROM views")
        for view, keyed in rows.items():
            for key, row in keyed.items():
                self.sql("INSERT INTO views VALUES (?, ?, ?, ?, ?)", view, key, *as_stored(view, row))

    def found(self) -> list[tuple[str, int | None]]:
        """What an audit finds once all that can be calculated fits again."""
        self.chain()
        self.fold()
        return found(self.path)

    def close(self) -> None:
        self._connection.close()


def tampering(database: Path) -> Iterator[Tampered]:
    with closing(Tampered(database)) as tampered:
        yield tampered
