"""What `observe` is told: one record a command, and no harm done by an observer that fails."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from coordinator import Agent, Busy, CommandRecord, Coordinator, JobExists, ReceiptConflict
from coordinator.testing import ManualClock, memory_coordinator
from tests.public.support import Records, at_work, claimed, entries, turn_held
from tests.support import secret_of


@pytest.mark.both_stores
async def test_each_command_is_told_once_with_who_asked_what_and_what_became_of_it(
    coordinator: Coordinator, ada: Agent, bob: Agent, records: Records
):
    await ada.add_job("parser", receipt="a-1")
    await ada.add_job("parser", receipt="a-1")
    with pytest.raises(JobExists):
        await bob.add_job("parser")
    with pytest.raises(ReceiptConflict):
        await ada.claim_next(receipt="a-1")
    claim = await ada.claim_next()
    assert claim is not None
    await claim.submit()
    await bob.claim_next()

    told = [(record.type, record.actor, record.outcome, record.position) for record in records.all]

    assert told == [
        ("add_job", "ada", "ok", 1),
        ("add_job", "ada", "repeated", 1),
        ("add_job", "bob", "job_exists", 2),
        ("claim_next", "ada", "receipt_conflict", 3),
        ("claim_next", "ada", "ok", 4),
        ("submit_job", "ada", "ok", 5),
        ("claim_next", "bob", "nothing", None),
    ]
    assert [entry.position for entry in await entries(coordinator)] == [1, 2, 3, 4, 5]


@pytest.mark.both_stores
async def test_reads_are_not_told(coordinator: Coordinator, ada: Agent, records: Records):
    await coordinator.jobs()
    await ada.recall("r")
    await entries(coordinator)

    assert records.all == []


@pytest.mark.both_stores
async def test_a_record_is_told_after_its_caller_has_been_answered_and_before_the_callers_next_step(
    coordinator: Coordinator, ada: Agent, records: Records
):
    await ada.add_job("parser")

    assert [record.type for record in records.all] == ["add_job"]


@pytest.mark.parametrize("coordinator", ["sqlite"], indirect=True)
async def test_commands_that_waited_together_are_one_batch(
    coordinator: Coordinator, ada: Agent, database: Path, records: Records
):
    with turn_held(database):
        tasks = [asyncio.create_task(ada.add_job(f"job-{number}")) for number in range(10)]
        await asyncio.sleep(0)  # all of them are queued
        held_for = asyncio.get_running_loop().time()
    await asyncio.gather(*tasks)
    waited = asyncio.get_running_loop().time() - held_for

    assert {record.batch for record in records.all} == {10}
    assert all(0 <= record.queue_s <= waited + 1 for record in records.all)
    assert all(0 < record.commit_s <= waited + 1 for record in records.all)
    assert len({record.commit_s for record in records.all}) == 1


async def test_no_more_than_256_commands_are_one_batch(coordinator: Coordinator, ada: Agent, records: Records):
    await asyncio.gather(*[ada.add_job(f"job-{number}") for number in range(600)])

    assert len(records.all) == 600
    assert max(record.batch for record in records.all) <= 256


@pytest.mark.parametrize("clock", [None])
async def test_a_command_whose_turn_did_not_come_is_told_as_busy(clock: None, database: Path, records: Records):
    async with Coordinator.open(database, busy_timeout_s=0.05, observe=records) as coordinator:
        with turn_held(database), pytest.raises(Busy):
            await coordinator.agent("ada").add_job("parser")

        (record,) = records.all
        assert (record.type, record.outcome, record.position) == ("add_job", "busy", None)


async def test_renewals_and_the_end_of_a_block_are_told_as_well(ada: Agent, clock: ManualClock, records: Records):
    async def body() -> None:
        clock.advance(30)
        await records.until("renew_claim")
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await at_work(await claimed(ada), body)

    assert [(record.type, record.outcome) for record in records.all][-2:] == [("renew_claim", "ok"), ("fail_job", "ok")]


async def test_an_observer_that_raises_does_no_harm(caplog: pytest.LogCaptureFixture):
    def fail(record: CommandRecord) -> None:
        raise RuntimeError("the observer is broken")

    async with memory_coordinator(observe=fail) as coordinator:
        ada = coordinator.agent("ada")
        tasks = [asyncio.create_task(ada.add_job(f"job-{number}")) for number in range(3)]
        await asyncio.gather(*tasks)

        assert len(await coordinator.jobs()) == 3
    assert [record.levelno for record in caplog.records if record.name == "coordinator"] == [logging.ERROR] * 3


async def test_a_record_cannot_be_changed_and_holds_nothing_secret(
    coordinator: Coordinator, ada: Agent, records: Records
):
    claim = await claimed(ada, payload={"password": "hunter2"})

    (record,) = records.of("claim_job")

    assert not hasattr(record, "__dict__")
    assert secret_of(claim.token) not in repr(record)
    assert "hunter2" not in repr(records.all)
    with pytest.raises(AttributeError):
        record.outcome = "other"  # type: ignore[misc]


async def test_a_search_that_goes_deep_finds_nothing_at_first_and_that_is_no_failure(
    coordinator: Coordinator, ada: Agent, bob: Agent, records: Records
):
    await claimed(ada, "parser", paths=["src"])
    await asyncio.gather(*[ada.add_job(f"clash-{n}", paths=[f"src/{n}"], priority=1) for n in range(260)])
    await ada.add_job("docs")

    await bob.claim_next()
    await bob.claim_next(receipt="bob-2")

    assert [record.outcome for record in records.of("claim_next")] == ["nothing", "ok", "nothing"]
