"""What every engine does alike."""

from __future__ import annotations

import pytest

from coordinator.errors import Closed
from coordinator.stores.interface import FORMAT, BodyRow, Head, LogRow, RowExists, Snapshot, Store, Transaction
from tests.stores.rows import append, append_in, event, head_at, head_of, keys, log_of, once, positions, put, row, write


class Stop(Exception):
    """An error of the caller's."""


def test_a_new_workspace_has_its_own_id_and_key_and_a_head_before_the_first_event(store: Store) -> None:
    head = head_of(store)

    assert len(store.workspace) == 32
    assert len(store.key) == 32
    assert store.workspace != store.key
    assert head == Head(0, store.workspace, 0, boot_id="", boot_at=0, generation=0, folds=0, format=FORMAT)
    assert log_of(store) == []


def test_an_event_comes_back_as_it_was_appended(store: Store) -> None:
    full = LogRow(
        1, 7, "job/ä", "job.added", "ada", "h/1/2", "trace", "r", b"\x00\xff", 1, '{"x":"\\u0000 é 🦆"}', b"\x01" * 32
    )
    bare = LogRow(2, 7, "job/ä", "job.lapsed", None, None, None, None, None, 1, "{}", b"")

    append(store, full, bare)

    assert store.read(lambda snapshot: snapshot.event(1)) == full
    assert store.read(lambda snapshot: snapshot.event(2)) == bare
    assert store.read(lambda snapshot: snapshot.events(after=0, limit=9)) == [full, bare]


def test_there_is_no_event_outside_the_log(store: Store) -> None:
    append(store, event(1))

    assert store.read(lambda snapshot: snapshot.event(0)) is None
    assert store.read(lambda snapshot: snapshot.event(-1)) is None
    assert store.read(lambda snapshot: snapshot.event(2)) is None


def test_the_head_is_what_the_last_append_said(store: Store) -> None:
    def work(transaction: Transaction) -> None:
        head = head_at(transaction.head(), event(1))
        transaction.append([event(1)], head._replace(boot_id="b", boot_at=2**62, generation=3, folds=4))

    write(store, work)

    assert head_of(store) == Head(1, event(1).digest, 10, "b", 2**62, generation=3, folds=4, format=FORMAT)


def test_the_head_can_move_without_an_event(store: Store) -> None:
    write(store, lambda transaction: transaction.append([], transaction.head()._replace(generation=1)))

    assert head_of(store).generation == 1


def test_events_are_paged_in_order(store: Store) -> None:
    append(store, *(event(position) for position in range(1, 8)))

    assert positions(store.read(lambda snapshot: snapshot.events(after=0, limit=3))) == [1, 2, 3]
    assert positions(store.read(lambda snapshot: snapshot.events(after=3, limit=3))) == [4, 5, 6]
    assert positions(store.read(lambda snapshot: snapshot.events(after=6, limit=3))) == [7]
    assert positions(store.read(lambda snapshot: snapshot.events(after=7, limit=3))) == []


def test_one_streams_events_are_paged_in_order(store: Store) -> None:
    append(store, *(event(position, stream=f"job/{position % 2}") for position in range(1, 10)))

    def page(after: int, limit: int) -> list[int]:
        return positions(store.read(lambda snapshot: snapshot.events(after=after, limit=limit, stream="job/1")))

    assert page(0, 2) == [1, 3]
    assert page(3, 2) == [5, 7]
    assert page(7, 2) == [9]
    assert store.read(lambda snapshot: snapshot.events(after=0, limit=2, stream="job/2")) == []


def test_the_bodies_of_one_type_in_one_stream_are_paged_in_order(store: Store) -> None:
    wanted, other_type, other_stream = ("topic/a", "message.sent"), ("topic/a", "refused"), ("topic/b", "message.sent")
    kinds = [wanted, other_type, wanted, other_stream, wanted, other_type, wanted]
    append(
        store, *(event(n, actor=f"agent-{n}", stream=stream, type=type) for n, (stream, type) in enumerate(kinds, 1))
    )

    def page(after: int, limit: int) -> list[BodyRow]:
        return store.read(lambda snapshot: snapshot.bodies("topic/a", "message.sent", after=after, limit=limit))

    assert page(0, 2) == [BodyRow(1, 10, "agent-1", '{"n":1}'), BodyRow(3, 30, "agent-3", '{"n":3}')]
    assert [row.position for row in page(3, 9)] == [5, 7]
    assert page(7, 9) == []


def test_a_receipt_is_found_for_its_actor_only(store: Store) -> None:
    append(
        store, event(1, receipt="r", actor="ada"), event(2), event(3, receipt="r", actor="bob"), event(4, receipt="s")
    )

    assert store.read(lambda snapshot: snapshot.receipt("ada", "r")) == event(1, receipt="r", actor="ada")
    assert store.read(lambda snapshot: snapshot.receipt("bob", "r")) == event(3, receipt="r", actor="bob")
    assert store.read(lambda snapshot: snapshot.receipt("bob", "s")) is None
    assert store.read(lambda snapshot: snapshot.receipt("cyd", "r")) is None


def test_many_receipts_are_looked_up_at_once(store: Store) -> None:
    used = [event(1, receipt="r"), event(2, receipt="r", actor="bob"), event(3, receipt="s"), event(4)]
    append(store, *used)
    asked = [("ada", "r"), ("bob", "r"), ("cyd", "r"), ("bob", "s"), ("ada", "s"), ("ada", "unknown")]

    found = store.read(lambda snapshot: snapshot.receipts(asked))

    assert found == {("ada", "r"): used[0], ("bob", "r"): used[1], ("ada", "s"): used[2]}
    assert store.read(lambda snapshot: snapshot.receipts([])) == {}


def test_many_rows_are_looked_up_at_once(store: Store) -> None:
    put(store, *(row(str(n), body=str(n)) for n in range(0, 600, 2)), row("1", view="other"))
    asked = [("jobs", str(n)) for n in range(600)]

    found = store.read(lambda snapshot: snapshot.rows([*asked, *asked]))

    assert found == {("jobs", str(n)): str(n) for n in range(0, 600, 2)}
    assert store.read(lambda snapshot: snapshot.rows([])) == {}


@pytest.mark.parametrize(("at", "position"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 4), (29, 4), (30, 5), (99, 5)])
def test_a_time_means_the_last_event_that_is_not_later(store: Store, at: int, position: int) -> None:
    append(store, event(1, at=10), event(2, at=20), event(3, at=20), event(4, at=20), event(5, at=30))

    assert store.read(lambda snapshot: snapshot.position_at(at)) == position


def test_an_empty_log_has_no_position_at_any_time(store: Store) -> None:
    assert store.read(lambda snapshot: snapshot.position_at(2**62)) == 0


def test_a_row_is_put_replaced_and_deleted(store: Store) -> None:
    put(store, row("a", body="1"), row("a", view="other", body="2"))
    put(store, row("a", body="3", bucket="claimed", rank=5))

    assert store.read(lambda snapshot: snapshot.row("jobs", "a")) == "3"
    assert store.read(lambda snapshot: snapshot.row("other", "a")) == "2"
    assert keys(store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=9))) == []
    assert store.read(lambda snapshot: snapshot.bucket("jobs", "claimed", limit=9)) == [
        row("a", body="3", bucket="claimed", rank=5)
    ]

    write(store, lambda transaction: transaction.delete([("jobs", "a"), ("jobs", "unknown"), ("unknown", "a")]))

    assert store.read(lambda snapshot: snapshot.row("jobs", "a")) is None
    assert store.read(lambda snapshot: snapshot.row("other", "a")) == "2"
    assert store.read(lambda snapshot: snapshot.bucket("jobs", "claimed", limit=9)) == []
    assert store.read(lambda snapshot: snapshot.range("jobs", "", None, limit=9)) == []


def test_all_rows_of_all_views_can_be_removed_and_put_anew(store: Store) -> None:
    append(store, event(1))
    put(store, row("a", rank=1), row("b"), row("a", view="other"))
    assert keys(store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=9))) == ["b", "a"]

    def work(transaction: Transaction) -> None:
        transaction.clear_views()
        assert transaction.range("jobs", "", None, limit=9) == []
        transaction.put([row("c"), row("b", rank=1)])

    write(store, work)

    assert keys(store.read(lambda snapshot: snapshot.range("jobs", "", None, limit=9))) == ["b", "c"]
    assert keys(store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=9))) == ["c", "b"]
    assert store.read(lambda snapshot: snapshot.row("other", "a")) is None
    assert log_of(store) == [1]


def test_removing_all_rows_is_rolled_back_too(store: Store) -> None:
    put(store, row("a"), row("b", bucket="claimed"))
    before = everything(store)

    def work(transaction: Transaction) -> None:
        transaction.clear_views()
        transaction.put([row("c")])
        raise Stop

    with pytest.raises(Stop):
        write(store, work)

    assert everything(store) == before


def test_the_last_put_of_a_row_wins(store: Store) -> None:
    put(store, row("a", body="1"), row("b"), row("a", body="2", bucket="later"))

    assert store.read(lambda snapshot: snapshot.row("jobs", "a")) == "2"
    assert keys(store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=9))) == ["b"]


@pytest.mark.parametrize("count", [1, 7, 63, 64, 255, 256, 700])
def test_any_number_of_rows_is_put_and_deleted(store: Store, count: int) -> None:
    names = [f"{n:04d}" for n in range(count)]

    put(store, *(row(name, body=name) for name in names))

    assert [found.body for found in store.read(lambda snapshot: snapshot.range("jobs", "", None, limit=999))] == names

    write(store, lambda transaction: transaction.delete([("jobs", name) for name in names[1:]]))

    assert keys(store.read(lambda snapshot: snapshot.range("jobs", "", None, limit=999))) == names[:1]


def test_a_bucket_is_read_by_rank_and_key(store: Store) -> None:
    put(
        store, row("c", rank=1), row("b", rank=2), row("a", rank=2), row("d", rank=-5), row("x", rank=1, bucket="other")
    )
    put(store, row("e", rank=1, view="other"))

    found = store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=9))

    assert [(each.rank, each.key) for each in found] == [(-5, "d"), (1, "c"), (2, "a"), (2, "b")]


def test_a_bucket_is_paged_behind_a_row_and_up_to_a_rank(store: Store) -> None:
    put(store, row("a", rank=1), row("b", rank=1), row("c", rank=2), row("d", rank=3))

    def page(limit: int = 9, after: tuple[int, str] | None = None, up_to: int | None = None) -> list[str]:
        return keys(
            store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=limit, after=after, up_to=up_to))
        )

    assert page(limit=2) == ["a", "b"]
    assert page(after=(1, "a")) == ["b", "c", "d"]
    assert page(after=(1, "b"), limit=1) == ["c"]
    assert page(after=(1, "aa")) == ["b", "c", "d"]
    assert page(after=(3, "d")) == []
    assert page(up_to=0) == []
    assert page(up_to=2) == ["a", "b", "c"]
    assert page(after=(1, "a"), up_to=2) == ["b", "c"]
    assert page(after=(2, "c"), up_to=1) == []


def test_a_row_that_moves_leaves_its_old_place(store: Store) -> None:
    put(store, row("a", rank=1), row("b", rank=2))
    assert keys(store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=9))) == ["a", "b"]

    put(store, row("a", rank=3))

    assert keys(store.read(lambda snapshot: snapshot.bucket("jobs", "ready", limit=9))) == ["b", "a"]


def test_the_bucket_without_a_name_can_be_read_too(store: Store) -> None:
    put(store, row("b", bucket="", rank=1), row("a", bucket="", rank=2), row("c"))

    assert keys(store.read(lambda snapshot: snapshot.bucket("jobs", "", limit=9))) == ["b", "a"]


def test_a_range_is_half_open_and_in_the_binary_order_of_utf_8(store: Store) -> None:
    names = ["", "A", "a", "a-b", "a/", "a/b", "a/b/c", "a0", "aé", "z", "é", "一", "\ue000", "🦆"]
    assert names == sorted(names, key=lambda name: name.encode())
    put(store, *(row(name) for name in reversed(names)), row("a", view="other"))

    def between(low: str, high: str | None, limit: int = 99) -> list[str]:
        return keys(store.read(lambda snapshot: snapshot.range("jobs", low, high, limit=limit)))

    assert between("", None) == names
    assert between("a/", "a0") == ["a/", "a/b", "a/b/c"]
    assert between("a", "a") == []
    assert between("z", None) == ["z", "é", "一", "\ue000", "🦆"]
    assert between("z", "🦆") == ["z", "é", "一", "\ue000"]
    assert between("", None, limit=2) == names[:2]


def test_a_transaction_sees_its_own_changes(store: Store) -> None:
    put(store, row("old"))

    def work(transaction: Transaction) -> None:
        append_in(transaction, event(1, receipt="r"))
        transaction.put([row("new", rank=1)])
        transaction.delete([("jobs", "old")])

        assert transaction.head().position == 1
        assert transaction.event(1) == event(1, receipt="r")
        assert transaction.receipt("ada", "r") == event(1, receipt="r")
        assert positions(transaction.events(after=0, limit=9, stream="job/a")) == [1]
        assert transaction.row("jobs", "old") is None
        assert keys(transaction.range("jobs", "", None, limit=9)) == ["new"]
        assert keys(transaction.bucket("jobs", "ready", limit=9)) == ["new"]

    write(store, work)


def test_what_the_work_returns_comes_back(store: Store) -> None:
    assert write(store, lambda transaction: transaction.head().position + 1) == 1
    assert store.read(lambda snapshot: "read") == "read"


def test_an_exception_rolls_everything_back_and_passes_on_unchanged(store: Store) -> None:
    append(store, event(1, receipt="r"))
    put(store, row("a", rank=1, body="1"), row("b", rank=2, body="2"))
    before = everything(store)
    stop = Stop()

    def work(transaction: Transaction) -> None:
        append_in(transaction, event(2, receipt="s"), event(3, stream="job/new"))
        transaction.put([row("a", bucket="claimed", body="3"), row("c"), row("a", body="4")])
        transaction.delete([("jobs", "b"), ("jobs", "c")])
        raise stop

    with pytest.raises(Stop) as caught:
        write(store, work)

    assert caught.value is stop
    assert everything(store) == before
    append(store, event(2, receipt="s"))


def test_a_position_is_never_given_twice(store: Store) -> None:
    append(store, event(1))
    before = everything(store)

    def work(transaction: Transaction) -> None:
        transaction.put([row("a")])
        append_in(transaction, event(2), event(2, stream="job/b"))

    with pytest.raises(RowExists):
        write(store, work)
    with pytest.raises(RowExists):
        append(store, event(1))

    assert everything(store) == before


def test_an_actors_receipt_is_never_used_twice(store: Store) -> None:
    append(store, event(1, receipt="r"))
    before = everything(store)

    with pytest.raises(RowExists):
        append(store, event(2), event(3, receipt="r"))
    with pytest.raises(RowExists):
        append(store, event(2, receipt="s"), event(3, receipt="s"))

    assert everything(store) == before


def test_work_that_swallows_a_failure_of_the_store_cannot_commit_the_rest(store: Store) -> None:
    append(store, event(1))

    def work(transaction: Transaction) -> None:
        transaction.put([row("a")])
        with pytest.raises(RowExists):
            append_in(transaction, event(1))

    with pytest.raises(RowExists):
        write(store, work)

    assert store.read(lambda snapshot: snapshot.row("jobs", "a")) is None


def test_a_transaction_cannot_begin_inside_another(store: Store) -> None:
    def work(transaction: Transaction) -> None:
        transaction.put([row("a")])
        with pytest.raises(RuntimeError):
            put(store, row("b"))
        with pytest.raises(RuntimeError):
            store.read(lambda snapshot: snapshot.head())

    write(store, work)

    assert keys(store.read(lambda snapshot: snapshot.range("jobs", "", None, limit=9))) == ["a"]


def test_one_try_is_made_even_if_nobody_wants_to_wait(store: Store) -> None:
    store.write(lambda transaction: transaction.put([row("a")]), still_wanted=once)

    assert store.read(lambda snapshot: snapshot.row("jobs", "a")) == "{}"


def test_its_own_commits_are_no_news(store: Store) -> None:
    append(store, event(1))
    put(store, row("a"))

    assert not store.changed()


def test_a_closed_store_says_so_and_can_be_closed_again(store: Store) -> None:
    store.close()
    store.close()

    with pytest.raises(Closed):
        store.read(lambda snapshot: snapshot.head())
    with pytest.raises(Closed):
        put(store, row("a"))


def test_reopening_changes_nothing_else(store: Store) -> None:
    append(store, event(1))
    workspace, key = store.workspace, store.key

    store.reopen()

    assert (store.workspace, store.key) == (workspace, key)
    assert log_of(store) == [1]
    append(store, event(2))


def everything(store: Store) -> object:
    """All that can be read, by each way that leads to it."""

    def work(snapshot: Snapshot) -> object:
        return (
            snapshot.head(),
            snapshot.events(after=0, limit=99),
            [snapshot.events(after=0, limit=99, stream=stream) for stream in ("job/a", "job/b", "job/new")],
            [snapshot.receipt("ada", receipt) for receipt in ("r", "s")],
            snapshot.range("jobs", "", None, limit=99),
            [snapshot.bucket("jobs", bucket, limit=99) for bucket in ("ready", "claimed", "")],
            [snapshot.row("jobs", key) for key in "abc"],
        )

    return store.read(work)
