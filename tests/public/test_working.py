"""The block under `claim.working()`: however it ends, the claim ends with it. One test or more for each row of the
table in the design: what the block did, and what then becomes of the claim.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from coordinator import (
    Agent,
    Claim,
    ClaimEnded,
    ClaimLost,
    Closed,
    Coordinator,
    LeaseLapsed,
    LimitPassed,
    NotSubmitted,
    TokenSuperseded,
)
from coordinator.testing import ManualClock
from coordinator.writer import Writer
from tests.public.support import (
    PATIENCE_S,
    Gate,
    Records,
    at_work,
    claimed,
    entries,
    forever,
    refusals,
    story,
    timers_are_done,
    turn_held,
)


async def settle(coordinator: Coordinator) -> None:
    """Whatever was queued before is done when this is."""
    await coordinator.agent("nobody").add_job("barrier", receipt="barrier")


async def end_of(coordinator: Coordinator, job: str = "parser") -> tuple[str, object]:
    """How the attempt ended, and with what reason."""
    await settle(coordinator)
    last = (await entries(coordinator, job))[-1]
    return last.type, last.body.get("reason")


def background(work: Awaitable[Any]) -> asyncio.Task[Any]:
    return asyncio.ensure_future(work)  # type: ignore[arg-type]


async def outcome_of(task: asyncio.Task[Any]) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await task


class Body:
    """A body that can be waited for, waits in turn to be told to go on, and keeps the cancellation that it met."""

    def __init__(self, *, swallow: bool = False, then: Exception | None = None) -> None:
        self.begun = asyncio.Event()
        self.cancelled = False
        self._swallow = swallow
        self._then = then

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await forever()
        except asyncio.CancelledError:
            self.cancelled = True
            if self._then is not None:
                raise self._then from None
            if not self._swallow:
                raise


# Called submit, fail or release

ENDS: dict[str, Callable[[Claim], Awaitable[Any]]] = {
    "submitted": lambda claim: claim.submit({"lines": 7}),
    "failed": lambda claim: claim.fail("no luck"),
    "released": lambda claim: claim.release("lunch"),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.both_stores
async def test_a_block_that_ended_its_claim_does_nothing_more(how: str, coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    await at_work(claim, lambda: ENDS[how](claim))

    assert await story(coordinator) == ["job.added", "job.claimed", f"job.{how}"]
    assert await refusals(coordinator) == []


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.both_stores
async def test_what_a_block_raises_after_it_ended_its_claim_goes_on_alone(
    how: str, coordinator: Coordinator, ada: Agent
):
    claim = await claimed(ada)

    async def body() -> None:
        await ENDS[how](claim)
        raise ValueError("afterwards")

    with pytest.raises(ValueError, match="afterwards") as raised:
        await at_work(claim, body)

    assert not hasattr(raised.value, "__notes__")
    assert await end_of(coordinator) != ("job.failed", "ValueError: afterwards")
    assert await refusals(coordinator) == []


@pytest.mark.both_stores
async def test_a_block_hands_on_what_its_body_returns_and_can_be_left_early(coordinator: Coordinator, ada: Agent):
    for number in range(3):
        claim = await claimed(ada, f"job-{number}")
        async with claim.working() as entered:
            assert entered is None
            await claim.submit()
            if number == 1:
                break

    assert [job.id for job in await coordinator.jobs("submitted")] == ["job-0", "job-1"]


@pytest.mark.both_stores
async def test_a_renewal_that_comes_too_late_for_a_submit_does_not_count_as_a_loss(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    """It is refused, as the claim has ended by then, and that may be told before the submit is answered."""
    renewal_is_queued = threading.Event()
    post = Writer.post

    def post_and_tell(self: Writer, *arguments: Any) -> None:
        post(self, *arguments)
        renewal_is_queued.set()

    monkeypatch.setattr(Writer, "post", post_and_tell)
    claim = await claimed(ada)

    async def body() -> str:
        gate.close()
        other = background(ada.add_job("other"))
        await gate.drawn()
        submit = background(claim.submit())
        await asyncio.sleep(0)  # it is queued
        clock.advance(25)
        assert await asyncio.to_thread(renewal_is_queued.wait, PATIENCE_S)
        gate.open()
        await other
        return (await submit).state

    assert await at_work(claim, body) == "submitted"


@pytest.mark.both_stores
async def test_a_submit_that_was_in_time_counts_although_the_lease_passed_before_its_answer_came(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, gate: Gate
):
    claim = await claimed(ada)
    gate.close()
    task = background(at_work(claim, claim.submit))
    await gate.drawn()

    clock.advance(60)
    await timers_are_done(coordinator)
    await asyncio.sleep(0)  # the block has been cancelled
    gate.open()

    await outcome_of(task)
    assert await story(coordinator) == ["job.added", "job.claimed", "job.submitted"]
    assert [command for _, command, _ in await refusals(coordinator)] in ([], ["renew_claim"])


@pytest.mark.parametrize("coordinator", ["sqlite"], indirect=True)
async def test_a_submit_whose_turn_came_too_late_is_a_loss(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, database: Path
):
    claim = await claimed(ada)

    with turn_held(database):
        task = background(at_work(claim, claim.submit))
        await asyncio.sleep(0)
        clock.advance(60)
        await timers_are_done(coordinator)
        await asyncio.sleep(0)

    with pytest.raises(LeaseLapsed):
        await outcome_of(task)
    assert await story(coordinator) == ["job.added", "job.claimed", "job.lapsed"]


@pytest.mark.both_stores
async def test_after_it_ended_its_claim_a_block_goes_on_as_long_as_it_likes(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada)

    async def body() -> str:
        await claim.submit()
        clock.advance(25)  # a renewal would be due,
        await timers_are_done(coordinator)
        await settle(coordinator)
        clock.advance(100)  # the lease and the limit be over
        await timers_are_done(coordinator)
        await settle(coordinator)
        return "tidied up"

    assert await at_work(claim, body, limit_s=100) == "tidied up"
    assert await refusals(coordinator) == []


# Returned without


@pytest.mark.both_stores
async def test_a_block_that_returned_without_is_failed_and_says_so(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, max_attempts=1)

    with pytest.raises(NotSubmitted, match="end the block with submit, fail or release") as raised:
        await at_work(claim, lambda: claim.note({"nearly": "done"}))

    assert not hasattr(raised.value, "__notes__")
    assert await end_of(coordinator) == ("job.failed", "left without submit")
    assert (await coordinator.job("parser")).state == "failed"


@pytest.mark.both_stores
async def test_a_block_that_returned_without_but_had_lost_its_claim_says_that(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada)

    with pytest.raises(ClaimEnded) as raised:
        await at_work(claim, lambda: bob.revoke(claim.job, "why"))

    assert raised.value.how == "revoked"


@pytest.mark.both_stores
async def test_a_block_that_returned_without_after_everything_was_closed_says_what_stood_in_the_way(
    coordinator: Coordinator, ada: Agent
):
    claim = await claimed(ada)

    with pytest.raises(NotSubmitted) as raised:
        await at_work(claim, coordinator.close)

    assert raised.value.__notes__ == ["the attempt could not be failed: the coordinator is closed"]


# Raised


@pytest.mark.both_stores
async def test_a_block_that_raised_is_failed_with_type_and_message_and_the_exception_goes_on(
    coordinator: Coordinator, ada: Agent
):
    error = ValueError("line 7 is odd")

    async def body() -> None:
        raise error

    with pytest.raises(ValueError, match="line 7") as raised:
        await at_work(await claimed(ada), body)

    assert raised.value is error
    assert not hasattr(error, "__notes__")
    assert await end_of(coordinator) == ("job.failed", "ValueError: line 7 is odd")


@pytest.mark.parametrize(
    "message", ["", "a\0b\x1b[2J", "\ud800", "é" * 2_000], ids=["nothing", "control characters", "surrogate", "long"]
)
@pytest.mark.both_stores
async def test_whatever_an_exception_says_the_block_is_failed_with_it(
    message: str, coordinator: Coordinator, ada: Agent
):
    async def body() -> None:
        raise LookupError(message)

    with pytest.raises(LookupError):
        await at_work(await claimed(ada), body)

    type, reason = await end_of(coordinator)
    assert type == "job.failed"
    assert str(reason).startswith("LookupError: ")
    assert len(str(reason).encode()) <= 1_024


@pytest.mark.both_stores
async def test_an_exception_goes_on_with_a_note_if_failing_was_refused(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada)

    async def body() -> None:
        await bob.revoke(claim.job, "why")
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom") as raised:
        await at_work(claim, body)

    assert raised.value.__notes__ == [
        f"the attempt could not be failed: {ClaimEnded('job/parser', attempt=1, how='revoked')}"
    ]
    assert await end_of(coordinator) == ("command.refused", None)


@pytest.mark.both_stores
async def test_exceptions_arrive_bare(ada: Agent):
    """`except ValueError` around the block works: nothing is wrapped in an ExceptionGroup."""
    claim = await claimed(ada)
    caught: list[ValueError] = []

    try:
        async with claim.working():
            raise ValueError("boom")
    except ValueError as error:
        caught.append(error)

    assert [error.args for error in caught] == [("boom",)]


@pytest.mark.both_stores
async def test_a_group_that_the_body_raised_stays_the_group_that_it_was(coordinator: Coordinator, ada: Agent):
    group = ExceptionGroup("two", [ValueError("one"), KeyError("other")])

    async def body() -> None:
        raise group

    with pytest.raises(ExceptionGroup) as raised:
        await at_work(await claimed(ada), body)

    assert raised.value is group
    assert await end_of(coordinator) == ("job.failed", "ExceptionGroup: two (2 sub-exceptions)")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.both_stores
async def test_a_program_that_ends_in_a_block_fails_the_attempt_on_its_way(
    error: type[BaseException], coordinator: Coordinator, ada: Agent
):
    async def body() -> None:
        raise error("now")

    with pytest.raises(error):
        await at_work(await claimed(ada), body)

    assert await end_of(coordinator) == ("job.failed", f"{error.__name__}: now")


# Was cancelled from outside


@pytest.mark.both_stores
async def test_a_block_that_an_anyio_scope_cancelled_is_failed(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    with anyio.CancelScope() as scope:
        async with claim.working():
            scope.cancel()
            await forever()

    assert scope.cancelled_caught
    assert await end_of(coordinator) == ("job.failed", "cancelled")


@pytest.mark.both_stores
async def test_a_block_whose_time_an_asyncio_timeout_ended_is_failed(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    async def work() -> None:
        async with asyncio.timeout(0):
            await at_work(claim, forever)

    with pytest.raises(TimeoutError):
        await work()

    assert await end_of(coordinator) == ("job.failed", "cancelled")


@pytest.mark.both_stores
async def test_a_block_whose_task_was_cancelled_is_failed(coordinator: Coordinator, ada: Agent):
    body = Body()
    task = background(at_work(await claimed(ada), body))
    await body.begun.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await outcome_of(task)
    assert task.cancelled()
    assert await end_of(coordinator) == ("job.failed", "cancelled")


@pytest.mark.both_stores
async def test_a_second_cancellation_loses_nothing(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    async def work() -> None:
        async with claim.working():
            try:
                await forever()
            finally:
                task.cancel()  # strikes at the next await, whoever awaits

    task = background(work())
    await asyncio.sleep(0)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await outcome_of(task)
    assert await end_of(coordinator) == ("job.failed", "cancelled")


@pytest.mark.parametrize("on_cancel", ["fail", "release"])
@pytest.mark.both_stores
async def test_a_scope_that_cancels_again_and_again_loses_nothing(on_cancel: Any, coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)

    with anyio.CancelScope() as outer, anyio.CancelScope() as inner:
        async with claim.working(on_cancel=on_cancel):
            outer.cancel()
            inner.cancel()
            await forever()

    assert (await end_of(coordinator)) == (f"job.{on_cancel}{'ed' if on_cancel == 'fail' else 'd'}", "cancelled")


@pytest.mark.parametrize("when", ["it waits for its turn", "it is being applied"])
@pytest.mark.both_stores
async def test_a_cancellation_while_the_attempt_is_being_failed_loses_nothing(
    when: str, coordinator: Coordinator, ada: Agent, gate: Gate
):
    """The body raised, and before the writer has failed the attempt, its task is cancelled."""
    claim = await claimed(ada)
    raised = asyncio.Event()

    async def body() -> None:
        gate.close()
        if when == "it waits for its turn":
            others.append(background(ada.add_job("other")))
            await gate.drawn()
        raised.set()
        raise ValueError("boom")

    others: list[asyncio.Task[Any]] = []
    task = background(at_work(claim, body))
    await raised.wait()
    await gate.drawn()

    task.cancel()
    await asyncio.sleep(0)
    gate.open()

    with pytest.raises(asyncio.CancelledError):
        await outcome_of(task)
    await asyncio.gather(*others)
    assert await end_of(coordinator) == ("job.failed", "ValueError: boom")


@pytest.mark.both_stores
async def test_a_block_that_is_cancelled_can_give_its_claim_back_instead(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada, max_attempts=1)
    body = Body()
    task = background(at_work(claim, body, on_cancel="release"))
    await body.begun.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await outcome_of(task)
    assert await end_of(coordinator) == ("job.released", "cancelled")
    assert (await coordinator.job("parser")).used == 0


@pytest.mark.both_stores
async def test_giving_back_is_only_for_cancellation(coordinator: Coordinator, ada: Agent):
    async def body() -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await at_work(await claimed(ada), body, on_cancel="release")

    assert await end_of(coordinator) == ("job.failed", "ValueError: boom")


@pytest.mark.both_stores
async def test_a_block_that_swallowed_a_cancellation_from_outside_returned_without(
    coordinator: Coordinator, ada: Agent
):
    body = Body(swallow=True)
    task = background(at_work(await claimed(ada), body))
    await body.begun.wait()

    task.cancel()

    with pytest.raises(NotSubmitted):
        await outcome_of(task)
    assert await end_of(coordinator) == ("job.failed", "left without submit")


@pytest.mark.both_stores
async def test_a_block_that_is_cancelled_after_it_ended_its_claim_does_nothing_more(
    coordinator: Coordinator, ada: Agent
):
    claim = await claimed(ada)
    body = Body()

    async def work() -> None:
        await claim.submit()
        await body()

    task = background(at_work(claim, work))
    await body.begun.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await outcome_of(task)
    assert await end_of(coordinator) == ("job.submitted", None)


# Lost the claim

Lose = Callable[[Claim, Agent, ManualClock], Awaitable[Any]]


async def revoke(claim: Claim, bob: Agent, clock: ManualClock) -> None:
    await bob.revoke(claim.job, "why")
    clock.advance(25)  # more than a third of the lease: the next renewal is due


async def cancel(claim: Claim, bob: Agent, clock: ManualClock) -> None:
    await bob.cancel_job(claim.job)
    clock.advance(25)


async def supersede(claim: Claim, bob: Agent, clock: ManualClock) -> None:
    await bob.claim(await bob.revoke(claim.job, "why"))
    clock.advance(25)


async def lapse(claim: Claim, bob: Agent, clock: ManualClock) -> None:
    clock.advance(60)


LOSSES: dict[str, tuple[Lose, type[ClaimLost]]] = {
    "revoked": (revoke, ClaimEnded),
    "cancelled": (cancel, ClaimEnded),
    "superseded": (supersede, TokenSuperseded),
    "lapsed": (lapse, LeaseLapsed),
}
lost = pytest.mark.parametrize(("lose", "error"), LOSSES.values(), ids=LOSSES)


@lost
@pytest.mark.both_stores
async def test_a_block_that_lost_its_claim_is_cancelled_and_says_so(
    lose: Lose, error: type[ClaimLost], coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    body = Body()
    task = background(at_work(claim, body))
    await body.begun.wait()

    await lose(claim, bob, clock)

    with pytest.raises(error) as raised:
        await outcome_of(task)
    assert type(raised.value) is error
    assert raised.value.values["attempt"] == 1
    assert body.cancelled
    assert "job.failed" not in await story(coordinator)
    assert [refusal for refusal in await refusals(coordinator) if refusal[1] == "fail_job"] == []


@lost
@pytest.mark.both_stores
async def test_a_block_that_swallowed_that_it_was_cancelled_is_told_of_the_loss_all_the_same(
    lose: Lose, error: type[ClaimLost], coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    body = Body(swallow=True)
    task = background(at_work(claim, body))
    await body.begun.wait()

    await lose(claim, bob, clock)

    with pytest.raises(error):
        await outcome_of(task)
    assert body.cancelled
    assert "job.failed" not in await story(coordinator)
    assert [refusal for refusal in await refusals(coordinator) if refusal[1] == "fail_job"] == []


@lost
@pytest.mark.both_stores
async def test_what_a_block_raises_when_it_loses_its_claim_goes_on_with_a_note(
    lose: Lose, error: type[ClaimLost], coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    body = Body(then=ValueError("in the middle"))
    task = background(at_work(claim, body))
    await body.begun.wait()

    await lose(claim, bob, clock)

    with pytest.raises(ValueError, match="in the middle") as raised:
        await outcome_of(task)
    (note,) = raised.value.__notes__
    assert note.startswith("the claim was lost: job 'parser': ")
    assert "job.failed" not in await story(coordinator)


@pytest.mark.both_stores
async def test_a_write_that_is_told_of_the_loss_ends_the_block_with_it(
    coordinator: Coordinator, ada: Agent, bob: Agent
):
    claim = await claimed(ada)

    async def body() -> None:
        await bob.revoke(claim.job, "why")
        await claim.submit()

    with pytest.raises(ClaimEnded) as raised:
        await at_work(claim, body)

    assert not hasattr(raised.value, "__notes__")
    assert [command for _, command, _ in await refusals(coordinator)] == ["submit_job"]


@pytest.mark.both_stores
async def test_a_loss_leaves_no_trace_in_the_task(ada: Agent, clock: ManualClock):
    """The task can go on, wait, and be cancelled like any other."""
    claim = await claimed(ada)

    async def wait_in_vain() -> None:
        async with asyncio.timeout(0):
            await forever()

    async def work() -> int:
        with pytest.raises(LeaseLapsed):
            await at_work(claim, forever)
        with pytest.raises(TimeoutError):
            await wait_in_vain()
        return task.cancelling()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    clock.advance(60)

    assert await outcome_of(task) == 0


@pytest.mark.both_stores
async def test_a_loss_and_a_cancellation_from_outside_at_once_end_in_the_cancellation(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    body = Body(swallow=False)

    async def work() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await at_work(claim, body)

    scopes: list[anyio.CancelScope] = []
    task = background(work())
    await body.begun.wait()
    scopes[0].cancel()
    clock.advance(60)

    await outcome_of(task)

    assert scopes[0].cancelled_caught
    await coordinator.wait_for_job("parser", "ready")


@pytest.mark.both_stores
async def test_a_claim_that_was_lost_before_the_block_began_ends_it_at_once(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    clock.advance(60)
    body = Body()

    with pytest.raises(LeaseLapsed):
        await outcome_of(background(at_work(claim, body)))


# Outran its limit


@pytest.mark.both_stores
async def test_a_block_that_outran_its_limit_is_cancelled_failed_and_says_so(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    body = Body()
    task = background(at_work(await claimed(ada), body, limit_s=10))
    await body.begun.wait()

    clock.advance(10)

    with pytest.raises(LimitPassed, match="outran its limit of 10 s") as raised:
        await outcome_of(task)
    assert body.cancelled
    assert not hasattr(raised.value, "__notes__")
    type, reason = await end_of(coordinator)
    assert type == "job.failed"
    assert str(reason).startswith("the block on job 'parser' outran its limit of 10 s")


@pytest.mark.both_stores
async def test_a_block_that_swallowed_the_end_of_its_limit_says_so_all_the_same(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    body = Body(swallow=True)
    task = background(at_work(await claimed(ada), body, limit_s=10))
    await body.begun.wait()

    clock.advance(10)

    with pytest.raises(LimitPassed):
        await outcome_of(task)
    assert (await end_of(coordinator))[0] == "job.failed"


@pytest.mark.both_stores
async def test_what_a_block_raises_at_the_end_of_its_limit_goes_on(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    body = Body(then=ValueError("in the middle"))
    task = background(at_work(await claimed(ada), body, limit_s=10))
    await body.begun.wait()

    clock.advance(10)

    with pytest.raises(ValueError, match="in the middle"):
        await outcome_of(task)
    assert await end_of(coordinator) == ("job.failed", "ValueError: in the middle")


@pytest.mark.both_stores
async def test_a_block_may_take_an_hour_unless_told_otherwise(ada: Agent, clock: ManualClock):
    claim = await claimed(ada, lease_s=86_400)
    body = Body()
    task = background(at_work(claim, body))
    await body.begun.wait()

    clock.advance(3_599)
    assert await claim.note({}) > 0
    assert not body.cancelled
    clock.advance(1)

    with pytest.raises(LimitPassed):
        await outcome_of(task)


@pytest.mark.both_stores
async def test_a_block_without_a_limit_goes_on_as_long_as_it_is_renewed(
    ada: Agent, clock: ManualClock, records: Records
):
    claim = await claimed(ada, lease_s=86_400)

    async with claim.working(limit_s=None):
        for count in range(1, 4):
            clock.advance(40_000)  # whatever was due before the renewal has happened when the renewal has
            await records.until("renew_claim", "ok", count=count)
        await claim.submit()


@pytest.mark.both_stores
async def test_a_block_that_submits_on_its_way_out_at_the_end_of_its_limit_says_that_it_was_cut_off(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    claim = await claimed(ada)
    body = Body()

    async def work() -> None:
        try:
            await body()
        finally:
            with anyio.CancelScope(shield=True):
                await claim.submit({"lines": "some"})

    task = background(at_work(claim, work, limit_s=10))
    await body.begun.wait()

    clock.advance(10)

    with pytest.raises(LimitPassed):
        await outcome_of(task)
    assert await end_of(coordinator) == ("job.submitted", None)


@pytest.mark.both_stores
async def test_a_block_that_outran_its_limit_is_not_renewed_any_more(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    """Also if it does not listen to being cancelled: its job is free when the lease is over."""
    claim = await claimed(ada, lease_s=60)
    begun = asyncio.Event()

    async def stubborn() -> None:
        with anyio.CancelScope(shield=True):
            begun.set()
            await coordinator.wait_for_job("parser", "ready")
            await bob.claim(await coordinator.job("parser"))

    task = background(at_work(claim, stubborn, limit_s=10))
    await begun.wait()
    clock.advance(22)  # the limit has passed, and a renewal would be due
    await timers_are_done(coordinator)
    await settle(coordinator)
    clock.advance(38)

    with pytest.raises(TokenSuperseded):
        await outcome_of(task)
    assert await story(coordinator, "parser") == ["job.added", "job.claimed", "job.lapsed", "job.claimed"]


# Several blocks


@pytest.mark.both_stores
async def test_blocks_on_two_claims_can_be_nested(coordinator: Coordinator, ada: Agent):
    outer, inner = await claimed(ada, "outer"), await claimed(ada, "inner")

    async with outer.working():
        async with inner.working():
            await inner.submit()
        await outer.submit()

    assert await story(coordinator, "outer") == ["job.added", "job.claimed", "job.submitted"]
    assert await story(coordinator, "inner") == ["job.added", "job.claimed", "job.submitted"]


@pytest.mark.both_stores
async def test_when_the_inner_claim_is_lost_the_outer_attempt_is_failed_with_that(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    outer, inner = await claimed(ada, "outer", lease_s=3_600), await claimed(ada, "inner")
    body = Body()
    task = background(at_work(outer, lambda: at_work(inner, body)))
    await body.begun.wait()

    await revoke(inner, bob, clock)

    with pytest.raises(ClaimEnded) as raised:
        await outcome_of(task)
    assert raised.value.values["subject"] == "job/inner"
    assert await end_of(coordinator, "outer") == ("job.failed", f"ClaimEnded: {raised.value}")


@pytest.mark.both_stores
async def test_when_the_outer_claim_is_lost_the_inner_attempt_is_failed_as_cancelled(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    outer, inner = await claimed(ada, "outer"), await claimed(ada, "inner", lease_s=3_600)
    body = Body()
    task = background(at_work(outer, lambda: at_work(inner, body)))
    await body.begun.wait()

    await revoke(outer, bob, clock)

    with pytest.raises(ClaimEnded) as raised:
        await outcome_of(task)
    assert raised.value.values["subject"] == "job/outer"
    assert await end_of(coordinator, "inner") == ("job.failed", "cancelled")


@pytest.mark.both_stores
async def test_the_loss_of_an_earlier_attempt_at_the_same_job_fails_this_one(
    coordinator: Coordinator, ada: Agent, clock: ManualClock
):
    late = await claimed(ada)
    clock.advance(60)
    claim = await ada.claim(await coordinator.job("parser"))

    with pytest.raises(TokenSuperseded):
        await at_work(claim, late.submit)

    assert (await end_of(coordinator))[0] == "job.failed"


@pytest.mark.both_stores
async def test_two_workers_in_one_task_group_end_for_themselves(
    coordinator: Coordinator, ada: Agent, bob: Agent, clock: ManualClock
):
    lost, kept = await claimed(ada, "lost"), await claimed(bob, "kept", lease_s=3_600)
    body = Body()
    ended: list[str] = []

    async def work(claim: Claim, body: Callable[[], Awaitable[Any]]) -> None:
        try:
            await at_work(claim, body)
        except ClaimLost as error:
            ended.append(error.code)

    async def submit() -> None:
        while not ended:
            await coordinator.agent("nobody").claim_next()
        await kept.submit()

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(work(lost, body))
        group.create_task(work(kept, submit))
        await body.begun.wait()
        await lapse(lost, bob, clock)

    assert ended == ["lease_lapsed"]
    assert (await coordinator.job("kept")).state == "submitted"


# Entering


@pytest.mark.both_stores
async def test_no_block_begins_when_everything_is_closed(coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)
    await coordinator.close()

    with pytest.raises(Closed):
        await at_work(claim, forever)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.both_stores
async def test_no_block_begins_on_a_claim_that_has_ended(how: str, coordinator: Coordinator, ada: Agent):
    claim = await claimed(ada)
    await ENDS[how](claim)

    with pytest.raises(ClaimEnded):
        await at_work(claim, forever)

    assert await refusals(coordinator) == []


@pytest.mark.both_stores
async def test_a_block_in_which_the_work_goes_on_cannot_be_entered_again(ada: Agent):
    claim = await claimed(ada)
    block = claim.working()

    async with block:
        with pytest.raises(RuntimeError):
            await block.__aenter__()
        await claim.submit()
