"""What an operation's status says: the log compared with the world, advice, and how an operator settles a doubt."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from coordinator import (
    Agent,
    AttemptChanged,
    AttemptRecord,
    Coordinator,
    Finding,
    InvalidInput,
    Operation,
    OperationLive,
    OperationStatus,
    ReconcileFirst,
    Work,
)
from coordinator.seen import Seen
from coordinator.testing import ManualClock
from tests.public.operating import (
    NORTH,
    Checked,
    Order,
    Reorder,
    Speechless,
    applied,
    ended,
    events,
    fails,
    finding,
    folder_of,
    lasting,
)
from tests.public.support import entries, refusals


@pytest.fixture
def reorder(coordinator: Coordinator) -> Reorder:
    kind = Reorder()
    coordinator.register(kind)
    return kind


@pytest.fixture
def checked(coordinator: Coordinator) -> Checked:
    kind = Checked(checking=finding(True), working=fails)
    coordinator.register(kind)
    return kind


def told(status: OperationStatus) -> list[tuple[str, bool, str]]:
    return [(finding.about, finding.agrees, finding.note) for finding in status.findings]


async def interrupted(agent: Agent, clock: ManualClock, coordinator: Coordinator) -> Operation:
    """An operation whose runner is gone: its lease ran out, and nobody knows how far it came."""
    with nobody_runs(coordinator):
        operation = await applied(agent, id="order-7")
    clock.advance(61)
    return operation


@contextmanager
def nobody_runs(coordinator: Coordinator) -> Iterator[None]:
    """As if the process were killed right after what it commits."""
    with patch.object(coordinator._open().operating.runner, "take"):
        yield


# The log alone


@pytest.mark.both_stores
async def test_a_status_changes_nothing(coordinator: Coordinator, ada: Agent, reorder: Reorder):
    operation = await applied(ada)
    await ended(operation)
    before = await entries(coordinator)

    assert await operation.status() == await operation.status()

    assert await entries(coordinator) == before


@pytest.mark.both_stores
async def test_an_operation_whose_runner_is_gone_reads_as_interrupted_and_may_be_approved_again(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder
):
    operation = await interrupted(ada, clock, coordinator)

    status = await operation.status()
    assert (status.state, status.advice, status.lease_until) == ("interrupted", "look, then approve again", None)

    again = await applied(ada, id=operation.id)
    assert again.attempt == 2
    assert (await ended(again)).state == "succeeded"
    assert await events(coordinator, operation.id) == ["queued", "lapsed", "queued", "started", "succeeded"]


@pytest.mark.both_stores
async def test_who_waits_hears_of_an_interruption(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder
):
    with nobody_runs(coordinator):
        operation = await applied(ada)
    waiting = asyncio.create_task(ended(operation))
    while coordinator._open().waiting._timed == set():
        await asyncio.sleep(0)

    clock.advance(61)

    assert (await waiting).state == "interrupted"


async def test_who_waits_goes_on_waiting_if_another_attempt_begins_before_the_end_of_the_last_was_read(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, monkeypatch: pytest.MonkeyPatch
):
    reorder.working = fails
    operation = await applied(ada, id="order-7")
    await ended(operation)
    approved = [await ada.preview("reorder", NORTH, operation_id="order-7")]
    lasting(reorder)
    session = coordinator._open()
    until = session.until

    async def overtaken(look: Callable[[Seen], Any]) -> Any:
        if not approved:
            reorder.go_on.set()
        found = await until(look)
        if approved:
            await ada.apply(approved.pop())
        return found

    monkeypatch.setattr(session, "until", overtaken)

    status = await ended(operation)

    assert (status.state, status.attempt) == ("succeeded", 2)


async def test_an_operation_of_a_kind_that_this_process_does_not_know_reads_from_the_log_and_nothing_is_lost(
    database: Path, clock: ManualClock
):
    kind = Reorder()
    async with Coordinator.open(database, clock=clock) as coordinator:
        coordinator.register(kind)
        ada = coordinator.agent("ada")
        await ended(await applied(ada, id="done"))
        kind.working = fails
        await ended(await applied(ada, id="failed"))
        before = await entries(coordinator)

    async with Coordinator.open(database, clock=clock) as coordinator:
        ada = coordinator.agent("ada")

        done, failed = [await ada.operation(id).status() for id in ("done", "failed")]

        assert (done.state, done.result, done.advice) == ("succeeded", {"ordered": 40}, "done")
        assert (failed.state, failed.reason) == ("failed", "ConnectionError: the supplier does not answer")
        assert (failed.advice, told(failed)[0][1]) == ("reconcile first", False)
        assert "'reorder' is not registered here" in failed.findings[0].note
        with pytest.raises(InvalidInput, match="not registered here"):
            await ada.preview("reorder", NORTH, operation_id="failed")
        assert await entries(coordinator) == before


async def test_a_result_is_read_as_a_type(ada: Agent, reorder: Reorder):
    class Result(msgspec.Struct):
        ordered: int

    operation = await applied(ada)
    status = await ended(operation)

    assert status.result_as(Result) == Result(40)
    lasting(reorder)
    with pytest.raises(InvalidInput, match="result"):
        (await (await applied(ada)).status()).result_as(Result)


# Artifacts


async def leaves_files(arguments: Order, work: Work) -> Any:
    (work.artifacts / "plan.csv").write_text("north,40\n")
    (work.artifacts / "more").mkdir()
    (work.artifacts / "more" / "notes.txt").write_text("none\n")


@pytest.mark.both_stores
async def test_files_that_were_left_are_recorded_and_compared_with_the_disk(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    reorder.working = leaves_files
    operation = await applied(ada)

    status = await ended(operation)
    assert [(artifact.path, artifact.size) for artifact in status.artifacts] == [
        ("plan.csv", 9),
        ("more/notes.txt", 5),
    ]
    assert status.advice == "done"
    assert all(finding.agrees for finding in status.findings)

    folder = folder_of(coordinator, operation.id)
    (folder / "plan.csv").write_text("north,41\n")
    (folder / "more" / "notes.txt").unlink()
    status = await operation.status()
    assert [(about, agrees) for about, agrees, _ in told(status)] == [("plan.csv", False), ("more/notes.txt", False)]
    assert "has changed" in status.findings[0].note
    assert "is gone" in status.findings[1].note
    assert (status.state, status.advice) == ("succeeded", "reconcile first")


async def test_a_file_that_cannot_be_read_is_a_finding(
    coordinator: Coordinator, ada: Agent, reorder: Reorder, monkeypatch: pytest.MonkeyPatch
):
    """Asking whether it is a file fails with this where a folder above it may not be searched."""
    reorder.working = leaves_files
    operation = await applied(ada)
    await ended(operation)

    def is_file(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", is_file)

    assert {agrees for _, agrees, _ in told(await operation.status())} == {False}
    assert "cannot be read" in (await operation.status()).findings[0].note


async def test_files_elsewhere_that_a_link_in_place_of_the_folder_leads_to_are_not_recorded(
    ada: Agent, reorder: Reorder, tmp_path: Path
):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "private.txt").write_text("not left by the attempt")

    async def leads_away(arguments: Order, work: Work) -> Any:
        work.artifacts.rmdir()
        work.artifacts.symlink_to(tmp_path / "elsewhere")

    reorder.working = leads_away

    status = await ended(await applied(ada))

    assert (status.state, status.artifacts) == ("failed", ())
    assert "a link in place of their folder" in (status.reason or "")


async def test_a_folder_that_an_earlier_workspace_left_is_not_taken_for_the_attempts_own(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    async def write(arguments: Order, work: Work) -> Any:
        (work.artifacts / "order.txt").write_text("bolts")

    reorder.working = write
    os.makedirs(folder_of(coordinator, "order-7"))

    status = await ended(await applied(ada, id="order-7"))

    assert status.state == "failed"
    assert "is there already" in (status.reason or "")


# The kind's own check


async def raises(arguments: Order, record: AttemptRecord) -> Any:
    raise ConnectionError("the supplier \ud800 does not answer" + "x" * 5_000)


async def raises_without_words(arguments: Order, record: AttemptRecord) -> Any:
    raise Speechless


async def cancels_itself(arguments: Order, record: AttemptRecord) -> Any:
    raise asyncio.CancelledError


async def overruns(arguments: Order, record: AttemptRecord) -> Any:
    await asyncio.Event().wait()


async def returns_text(arguments: Order, record: AttemptRecord) -> Any:
    return "fine"


async def returns_odd_finding(arguments: Order, record: AttemptRecord) -> Any:
    return Finding(agrees="yes", note=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("checking", "agrees", "note"),
    [
        (finding(True, "no order there"), True, "no order there"),
        (finding(False, "an order is there"), False, "an order is there"),
        (raises, False, "the check failed: ConnectionError: the supplier \ufffd does not answer"),
        (raises_without_words, False, "the check failed: Speechless: its text could not be had (RuntimeError)"),
        (cancels_itself, False, "the check raised CancelledError"),
        (overruns, False, "the check took longer than 0.01 s"),
        (returns_text, False, "the check returned no Finding, but a str"),
        (returns_odd_finding, False, "the check returned no Finding, but a Finding"),
    ],
)
async def test_what_a_check_finds_decides_whether_another_attempt_may_start_and_so_does_whatever_goes_wrong_with_it(
    checking: Callable[..., Awaitable[Any]],
    agrees: bool,
    note: str,
    coordinator: Coordinator,
    ada: Agent,
    checked: Checked,
):
    operation = await applied(ada, id="order-7")
    await ended(operation)
    checked.checking, checked.check_limit_s = checking, 0.01

    status = await operation.status()

    assert status.advice == ("look, then approve again" if agrees else "reconcile first")
    assert [(about, found) for about, found, _ in told(status)] == [("check", agrees)]
    assert status.findings[0].note.startswith(note)
    if agrees:
        assert (await applied(ada, id="order-7")).attempt == 2
    else:
        with pytest.raises(ReconcileFirst) as refused:
            await applied(ada, id="order-7")
        assert (refused.value.attempt, refused.value.code) == (1, "reconcile_first")
        assert refused.value.finding.startswith(note)
        assert await refusals(coordinator) == [("ada", "apply_operation", "reconcile_first")]
        assert len(checked.works) == 1


async def test_a_check_sees_what_the_attempt_left(coordinator: Coordinator, ada: Agent, checked: Checked):
    records: list[AttemptRecord] = []

    async def checking(arguments: Order, record: AttemptRecord) -> Finding:
        records.append(record)
        assert arguments == Order("north", 4)
        return Finding(agrees=True, note="looked")

    checked.checking, checked.working = checking, leaves_files
    operation = await applied(ada)
    await ended(operation)

    record = records[-1]
    assert (record.operation_id, record.attempt, record.state, record.result) == (operation.id, 1, "succeeded", {})
    assert (record.folder / record.artifacts[0].path).read_text() == "north,40\n"


async def test_what_runs_is_not_checked(coordinator: Coordinator, ada: Agent, checked: Checked):
    lasting(checked)
    checked.checking = raises

    status = await (await applied(ada)).status()

    assert (status.advice, status.findings) == ("wait", ())


async def test_a_check_can_be_cancelled_with_who_asks(ada: Agent, checked: Checked):
    operation = await applied(ada)
    await ended(operation)
    checked.checking = overruns

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await operation.status()


# Reconciliation


@pytest.mark.both_stores
async def test_what_its_operator_found_undone_may_be_approved_again(
    coordinator: Coordinator, ada: Agent, checked: Checked
):
    operation = await applied(ada, id="order-7")
    await ended(operation)
    checked.checking = finding(False)

    status = await operation.reconcile("not done", "no order is there", receipt="looked")

    assert (status.state, status.reconciled, status.advice) == ("failed", "not done", "look, then approve again")
    assert status.findings == ()
    recalled = await ada.recall("looked")
    assert isinstance(recalled, Operation)
    assert recalled.id == "order-7"
    checked.working, checked.checking = None, finding(True)
    again = await applied(ada, id="order-7")
    status = await ended(again)
    assert (again.attempt, status.state, status.reconciled) == (2, "succeeded", None)


@pytest.mark.both_stores
async def test_a_reconciliation_that_is_repeated_is_about_the_attempt_that_it_was_first_about(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    reorder.working = fails
    operation = await applied(ada, id="order-7")
    await ended(operation)
    await operation.reconcile("not done", "the shop has no such order", receipt="looked")
    await ended(await applied(ada, id="order-7"))

    status = await operation.reconcile("not done", "the shop has no such order", receipt="looked")

    assert (status.attempt, status.reconciled) == (2, None)
    assert (await events(coordinator, "order-7")).count("reconciled") == 1


@pytest.mark.both_stores
async def test_what_its_operator_found_done_has_succeeded(coordinator: Coordinator, ada: Agent, checked: Checked):
    operation = await applied(ada, id="order-7")
    await ended(operation)
    checked.checking = finding(False)

    status = await operation.reconcile("done", "the order is there", {"ordered": 39})

    assert (status.state, status.reconciled, status.result) == ("succeeded", "done", {"ordered": 39})
    assert status.advice == "done"
    assert not (await applied(ada, id="order-7")).started
    with pytest.raises(OperationLive):
        await operation.reconcile("not done", "looked again")


@pytest.mark.both_stores
async def test_an_interrupted_attempt_is_reconciled(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder
):
    operation = await interrupted(ada, clock, coordinator)

    status = await operation.reconcile("done", "the order is there", {"ordered": 40})

    assert (status.state, status.result) == ("succeeded", {"ordered": 40})
    assert await events(coordinator, operation.id) == ["queued", "lapsed", "reconciled"]


async def test_what_runs_or_has_gone_on_since_cannot_be_reconciled(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    reorder.working = fails
    operation = await applied(ada, id="order-7")
    await ended(operation)
    lasting(reorder)
    await applied(ada, id="order-7")

    with pytest.raises(OperationLive):
        await operation.reconcile("done", "looked")
    with pytest.raises(AttemptChanged):
        await operation.reconcile("done", "looked", attempt=1)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"finding": "perhaps", "note": "looked"}, "finding"),
        ({"finding": "done", "note": " "}, "note"),
        ({"finding": "not done", "note": "looked", "result": {}}, "result"),
        ({"finding": "done", "note": "looked", "result": "text"}, "result"),
        ({"finding": "done", "note": "looked", "attempt": 0}, "attempt"),
    ],
)
async def test_a_reconciliation_that_makes_no_sense_is_refused_by_its_field(
    asked: dict[str, Any], field: str, ada: Agent, reorder: Reorder
):
    reorder.working = fails
    operation = await applied(ada)
    await ended(operation)

    with pytest.raises(InvalidInput) as refused:
        await operation.reconcile(**asked)

    assert refused.value.field == field


# Cancelling


@pytest.mark.both_stores
async def test_cancelling_is_asked_for_once_and_what_has_ended_is_left_as_it_is(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    lasting(reorder)
    operation = await applied(ada)
    await reorder.until_begun()

    asked = await operation.cancel("too expensive")
    await operation.cancel("too late")
    status = await ended(operation)
    await operation.cancel()

    assert asked.cancel_asked
    assert (status.state, status.reason) == ("stopped", "cancelled")
    assert await events(coordinator, operation.id) == ["queued", "started", "cancel_asked", "stopped"]
