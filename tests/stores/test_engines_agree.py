"""Whatever is written, each engine reads the same."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.stores.interface import Snapshot, Store, Transaction, ViewRow
from coordinator.stores.memory import MemoryStore
from coordinator.stores.sqlite import SqliteStore
from tests.stores.rows import append_in, event, write

KEYS = st.text(st.sampled_from("ab/0é\uffff🦆"), max_size=3)
BUCKETS = st.sampled_from(["", "ready", "é"])
RANKS = st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1])
ROWS = st.builds(ViewRow, st.sampled_from(["v", "w"]), KEYS, BUCKETS, RANKS, st.sampled_from(["{}", '{"a":1}']))
STREAMS = st.sampled_from(["job/a", "topic/b"])


class Undo(Exception):
    pass


@st.composite
def transactions(draw: st.DrawFn) -> tuple[list[ViewRow], list[tuple[str, str]], list[str], bool]:
    """Rows to put, rows to delete, streams of events to append, and whether all that is rolled back."""
    gone = draw(st.lists(st.tuples(st.sampled_from(["v", "w"]), KEYS), max_size=3))
    return draw(st.lists(ROWS, max_size=9)), gone, draw(st.lists(STREAMS, max_size=4)), draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(transactions(), max_size=6), KEYS, st.none() | KEYS, st.none() | st.tuples(RANKS, KEYS), st.none() | RANKS
)
def test_memory_and_sqlite_agree(
    done: list[tuple[list[ViewRow], list[tuple[str, str]], list[str], bool]],
    low: str,
    high: str | None,
    after: tuple[int, str] | None,
    up_to: int | None,
) -> None:
    def look(snapshot: Snapshot) -> object:
        return (
            snapshot.head().position,
            [snapshot.range(view, low, high, limit=3) for view in "vw"],
            [snapshot.range(view, "", None, limit=99) for view in "vw"],
            [snapshot.bucket("v", b, limit=3, after=after, up_to=up_to) for b in ("", "ready", "é")],
            [snapshot.bucket("v", b, limit=99) for b in ("", "ready", "é")],
            snapshot.row("v", low),
            [snapshot.events(after=n, limit=3, stream=stream) for n in (0, 4) for stream in ("job/a", "topic/b", None)],
            [snapshot.bodies(stream, "job.added", after=n, limit=3) for n in (0, 4) for stream in ("job/a", "topic/b")],
            [snapshot.receipt("ada", str(n)) for n in range(1, 9)],
            [snapshot.position_at(n * 10 + 5) for n in range(9)],
        )

    def seen(store: Store) -> list[object]:
        states: list[object] = []
        for rows, gone, streams, undone in done:
            with suppress(Undo):
                write(store, lambda transaction: apply(transaction, rows, gone, streams, undone))  # noqa: B023
            states.append(store.read(look))
        return states

    with TemporaryDirectory() as folder, closing(SqliteStore.open(Path(folder, "work.db"))) as sqlite:
        assert seen(sqlite) == seen(MemoryStore())


def apply(
    transaction: Transaction, rows: list[ViewRow], gone: list[tuple[str, str]], streams: list[str], undone: bool
) -> None:
    first = transaction.head().position + 1
    events = [event(n, stream=stream, receipt=str(n)) for n, stream in enumerate(streams, first)]
    if events:
        append_in(transaction, *events)
    transaction.put(rows)
    transaction.delete(gone)
    if undone:
        raise Undo
