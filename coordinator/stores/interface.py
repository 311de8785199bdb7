"""What the journey asks of an engine. An engine keeps rows and knows no rules.

All of it is synchronous, and one object belongs to one thread. A transaction is one function: it is called with the
turn held and the transaction begun, and what it returns is handed back only after COMMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")

GENESIS = 0
"""The position of the head before the first event."""

FORMAT = 1
"""The layout that this software writes, and the newest that it can read."""


class LogRow(NamedTuple):
    """One event as it is stored, in the order of the table's columns."""

    position: int
    at: int
    stream: str
    type: str
    actor: str | None
    origin: str | None
    context: str | None
    receipt: str | None
    fingerprint: bytes | None
    command: int
    body: str
    digest: bytes


class BodyRow(NamedTuple):
    """What one event says, with who caused it and when."""

    position: int
    at: int
    actor: str | None
    body: str


LogColumns = tuple[int, int, str, str, str | None, str | None, str | None, str | None, bytes | None, int, str, bytes]
"""What a `LogRow` holds, for who writes many and reads none back."""


class ViewRow(NamedTuple):
    """One row of one projection. `bucket` and `rank` say how it is scanned; `body` is JSON text.

    Rows that nobody scans belong in the bucket "", which costs nothing to keep.
    """

    view: str
    key: str
    bucket: str
    rank: int
    body: str


ViewColumns = tuple[str, str, str, int, str]
"""What a `ViewRow` holds."""


class Head(NamedTuple):
    """Where the log ends, and what else every transaction checks first.

    `at` is the log time of the last event in µs UTC; `boot_id` and `boot_at` say where the suspend-counting clock
    of that machine stood when it was appended. `generation` rises when the views are rebuilt; `folds` is
    the version of the folds that made them; `format` rises when the layout changes.
    """

    position: int
    digest: bytes
    at: int
    boot_id: str
    boot_at: int
    generation: int
    folds: int
    format: int


class Snapshot(Protocol):
    """One consistent state of the store, for as long as the function that got it runs."""

    def head(self) -> Head: ...

    def row(self, view: str, key: str) -> str | None:
        """The body of one view row, or None."""
        ...

    def bucket(
        self, view: str, bucket: str, *, limit: int, after: tuple[int, str] | None = None, up_to: int | None = None
    ) -> list[ViewRow]:
        """Rows of one bucket by (rank, key): those strictly after `after`, with rank at most `up_to`."""
        ...

    def range(self, view: str, low: str, high: str | None, *, limit: int) -> list[ViewRow]:
        """Rows with `low <= key < high` (None: no upper bound) in the binary order of the keys' UTF-8."""
        ...

    def event(self, position: int) -> LogRow | None: ...

    def events(self, *, after: int, limit: int, stream: str | None = None) -> list[LogRow]:
        """Events with a position above `after`, in order; of one stream if it is named."""
        ...

    def bodies(self, stream: str, type: str, *, after: int, limit: int) -> list[BodyRow]:
        """Of the events of one type in one stream, those with a position above `after`, in order."""
        ...

    def streams(self, *, after: int, limit: int) -> list[str]:
        """The streams of the events with a position above `after`, one an event, in order."""
        ...

    def receipt(self, actor: str, receipt: str) -> LogRow | None:
        """The first event of the command that this actor gave this receipt."""
        ...

    def receipts(self, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], LogRow]:
        """Those of the (actor, receipt) pairs that were used, each with what `receipt` returns; one look-up for all."""
        ...

    def rows(self, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The bodies of those of the (view, key) pairs that have a row; one look-up for all."""
        ...

    def position_at(self, at: int) -> int:
        """The last position whose event is not later than log time `at`; 0 if there is none."""
        ...


class Transaction(Snapshot, Protocol):
    """A snapshot that may also be changed. Everything takes effect together, or nothing does."""

    def append(self, rows: Sequence[LogColumns], head: Head) -> None:
        """Add events at the end of the log and move the head there."""
        ...

    def clear_views(self) -> None:
        """Remove all view rows."""
        ...

    def put(self, rows: Sequence[ViewColumns]) -> None:
        """Insert or replace view rows."""
        ...

    def delete(self, keys: Sequence[tuple[str, str]]) -> None:
        """Remove view rows by (view, key); unknown ones are ignored."""
        ...


class CommitUnknown(Exception):
    """COMMIT failed in a way that leaves its outcome open. The store must be reopened before it is used again."""


class RowExists(Exception):
    """An append met a position, or an actor's receipt, that the log already has. Nothing of the transaction stays."""


class TurnTaken(Exception):
    """The turn did not come before the deadline.

    Attributes:
        holder: the process that holds it, where that can be known.
    """

    def __init__(self, holder: int | None) -> None:
        super().__init__(holder)
        self.holder = holder


class Store(Protocol):
    """One engine's connection to one workspace, for one thread."""

    @property
    def workspace(self) -> bytes:
        """The random id (32 bytes) that stands before event 1 in the chain of digests."""
        ...

    @property
    def key(self) -> bytes:
        """The workspace's secret (32 bytes), from which tokens are derived. Never logged, never exported."""
        ...

    def write(self, work: Callable[[Transaction], T], *, still_wanted: Callable[[], bool]) -> T:
        """Take the turn, begin, call `work`, commit, give the turn back, and return what `work` returned.

        `still_wanted` is asked again and again while the turn is held by somebody else; once it says no, the attempt
        ends with `TurnTaken`. An exception from `work` rolls everything back and passes on unchanged.

        Raises:
            TurnTaken: nothing was begun.
            Unavailable: nothing was applied.
            CommitUnknown: COMMIT failed, and nobody knows whether it took effect; `reopen()` and look.
        """
        ...

    def read(self, work: Callable[[Snapshot], T]) -> T:
        """Call `work` with one consistent snapshot."""
        ...

    def changed(self) -> bool:
        """Whether somebody else committed since the last call; cheap enough to ask every few milliseconds."""
        ...

    def reopen(self, still_wanted: Callable[[], bool] | None = None) -> None:
        """Close and open anew, after `CommitUnknown`, and make sure that what is there now stays.

        `still_wanted` is asked as in `write`; without it, waiting ends after a few seconds.

        Raises:
            TurnTaken, Unavailable: it is not usable yet; reopen it again.
        """
        ...

    def close(self) -> None: ...
