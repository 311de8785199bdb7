"""Making the views anew when the folds that made them are older than ours."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from coordinator.envelopes import envelope_of, reading
from coordinator.errors import NewerFormat, damaged, newer_format
from coordinator.stores.interface import FORMAT, GENESIS, Head, Snapshot, Store, Transaction, ViewRow
from projections.registry import FOLDS_VERSION
from projections.replay import Rows, as_stored, replay

log = logging.getLogger("coordinator")

_PAGE = 2_000


def bring_up_to_date(store: Store, patience_s: float) -> None:
    """Rebuild the views from the log if older folds made them.

    The log is replayed without the turn, which is taken only for the last stretch and to put the rows in place; that
    raises the views' generation, so that nobody goes on with rows that were remembered before.

    Args:
        patience_s: seconds to wait for the turn, once the replay is done.

    Raises:
        NewerFormat: newer software has taken the workspace over.
        TurnTaken: the turn did not come.
    """
    head = store.read(lambda snapshot: snapshot.head())
    _check_format(head)
    if _fits(head):
        return
    log.info("the views are made anew, with folds of version %d", FOLDS_VERSION)
    rows, position = replay([]), GENESIS
    with reading():
        while (further := _further(store, rows, position)) != position:
            position = further
    give_up_at = time.monotonic() + patience_s
    store.write(
        lambda transaction: _replace(transaction, rows, position), still_wanted=lambda: time.monotonic() < give_up_at
    )


def check_head(head: Head) -> None:
    """Refuse to go on, reading or writing, with what another version of this software has taken over.

    The views of an empty log fit any folds.

    Raises:
        NewerFormat: the layout is newer, or other folds made the views.
    """
    _check_format(head)
    if not _fits(head):
        raise NewerFormat(f"the views were made by folds of version {head.folds}, not {FOLDS_VERSION}")


def replay_page(snapshot: Snapshot, rows: Rows, after: int, until: int | None = None) -> int:
    """Fold the next page of the log into `rows`; the position reached, which is `after` at its end."""
    page = snapshot.events(after=after, limit=_PAGE if until is None else min(_PAGE, until - after))
    if page and page[-1].position != after + len(page):
        raise damaged(f"events are missing between positions {after} and {page[-1].position}")
    replay(map(envelope_of, page), rows)
    return page[-1].position if page else after


def _further(store: Store, rows: Rows, position: int) -> int:
    """One page at a time: a long read would keep the write-ahead log from being checkpointed."""
    return store.read(lambda snapshot: replay_page(snapshot, rows, position))


def _check_format(head: Head) -> None:
    if head.format > FORMAT:
        raise newer_format(head.format, FORMAT)


def _fits(head: Head) -> bool:
    if head.folds > FOLDS_VERSION:
        raise NewerFormat(f"the views were made by folds of version {head.folds}, newer than our {FOLDS_VERSION}")
    return head.folds == FOLDS_VERSION or head.position == GENESIS


def _replace(transaction: Transaction, rows: Rows, position: int) -> None:
    head = transaction.head()
    _check_format(head)
    if _fits(head):
        return  # somebody else was faster
    while (further := replay_page(transaction, rows, position)) != position:
        position = further
    transaction.clear_views()
    transaction.put(list(_stored(rows)))
    transaction.append([], head._replace(generation=head.generation + 1, folds=FOLDS_VERSION))


def _stored(rows: Rows) -> Iterator[ViewRow]:
    for view, keyed in rows.items():
        for key, row in keyed.items():
            yield ViewRow(view, key, *as_stored(view, row))
