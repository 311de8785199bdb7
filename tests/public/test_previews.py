"""Previews: a dry run that leaves nothing, and the grant that it hands out."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from coordinator import (
    Agent,
    ApprovalExpired,
    ApprovalMismatch,
    ApprovalUnknown,
    Closed,
    Coordinator,
    InvalidInput,
    OperationBound,
    PreviewFailed,
    Refused,
    Unavailable,
)
from coordinator.testing import ManualClock, memory_coordinator
from tests.public.operating import NORTH, Order, Reorder, Speechless, applied, ended, events, lasting
from tests.public.support import entries


@pytest.fixture
def reorder(coordinator: Coordinator) -> Reorder:
    kind = Reorder()
    coordinator.register(kind)
    return kind


@pytest.mark.both_stores
async def test_a_preview_says_what_would_be_done_and_leaves_nothing_in_the_log(
    coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder
):
    preview = await ada.preview("reorder", NORTH)

    class Plan(msgspec.Struct):
        order: int

    assert preview.plan == {"order": 40, "from": "north"}
    assert preview.plan_as(Plan) == Plan(order=40)
    assert (preview.kind, preview.arguments, preview.attempt) == ("reorder", NORTH, 1)
    assert preview.expires_at.timestamp() == clock.wall() / 1e6 + 120
    assert reorder.works == []
    assert await entries(coordinator) == []


async def test_each_preview_has_an_operation_of_its_own_unless_the_caller_names_one(ada: Agent, reorder: Reorder):
    first, second = [await ada.preview("reorder", NORTH) for _ in range(2)]
    named = await ada.preview("reorder", NORTH, operation_id="order-7")

    assert first.operation_id != second.operation_id
    assert named.operation_id == "order-7"


async def test_a_grant_shows_itself_through_reveal_alone(ada: Agent, reorder: Reorder):
    preview = await ada.preview("reorder", NORTH)

    secret = preview.grant.reveal()

    assert re.fullmatch(r"grant-[\w-]{43}", secret)
    assert all(secret not in shown for shown in (repr(preview), str(preview), f"{preview.grant}", repr(preview.grant)))


async def test_neither_a_grant_nor_a_token_stands_in_the_log(coordinator: Coordinator, ada: Agent, reorder: Reorder):
    preview = await ada.preview("reorder", NORTH)

    await ended(await ada.apply(preview))

    bodies = " ".join(str(dict(entry.body)) for entry in await entries(coordinator))
    assert "'grant_digest'" in bodies
    assert preview.grant.reveal() not in bodies
    queued = next(entry for entry in await entries(coordinator) if entry.type == "operation.queued")
    assert str(queued.body["token_digest"]) in bodies
    assert "'token'" not in bodies


# What a kind does wrong


async def raises(arguments: Order) -> Any:
    raise ConnectionError("the supplier does not answer")


async def raises_without_words(arguments: Order) -> Any:
    raise Speechless


async def cancels_itself(arguments: Order) -> Any:
    raise asyncio.CancelledError


async def refuses(arguments: Order) -> Any:
    raise Closed("something else")


async def overruns(arguments: Order) -> Any:
    await asyncio.Event().wait()


async def returns_text(arguments: Order) -> Any:
    return "a plan"


async def returns_too_much(arguments: Order) -> Any:
    return {"plan": "x" * 300_000}


@pytest.mark.parametrize(
    ("previewing", "said"),
    [
        (raises, "ConnectionError: the supplier does not answer"),
        (raises_without_words, "Speechless: its text could not be had"),
        (cancels_itself, "raised CancelledError"),
        (refuses, "Closed: something else"),
        (overruns, r"took longer than 0\.01 s"),
        (returns_text, "gave no plan: plan: must be"),
        (returns_too_much, "gave no plan: plan: is 300,011 bytes"),
    ],
)
async def test_a_preview_that_goes_wrong_says_how_and_leaves_nothing(
    previewing: Any, said: str, coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    reorder.previewing, reorder.preview_limit_s = previewing, 0.01

    with pytest.raises(PreviewFailed, match=said):
        async with asyncio.timeout(5):
            await ada.preview("reorder", NORTH, operation_id="order-7")

    assert coordinator._open().operating.grants._handed == {}
    assert await entries(coordinator) == []


async def test_a_preview_can_be_cancelled(ada: Agent, reorder: Reorder):
    begun = asyncio.Event()

    async def begins(arguments: Order) -> Any:
        begun.set()
        await asyncio.Event().wait()

    reorder.previewing = begins
    previewing = asyncio.create_task(ada.preview("reorder", NORTH))
    await begun.wait()

    previewing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await previewing


# Bad input


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "supplier"),
        ({"supplier": 7}, "supplier"),
        ({"supplier": "north", "weeks": "many"}, "weeks"),
        ({"supplier": "north", "weeks": float("nan")}, "weeks"),
        ("north", "arguments"),
    ],
)
async def test_arguments_of_the_wrong_shape_name_the_field(
    arguments: Any, field: str, coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    with pytest.raises(InvalidInput, match=field) as refused:
        await ada.preview("reorder", arguments)

    assert refused.value.field.startswith("arguments")
    assert await entries(coordinator) == []


async def test_a_kind_that_is_not_registered_is_named_with_those_that_are(ada: Agent, reorder: Reorder):
    with pytest.raises(InvalidInput, match=r"kind: 'recorder' is not registered here \(registered: reorder"):
        await ada.preview("recorder", NORTH)


async def test_registering_fails_clearly_where_artifacts_cannot_be_written(tmp_path: Any):
    (tmp_path / "file").write_text("in the way")
    opened = Coordinator.open(tmp_path / "work.db", artifacts=tmp_path / "file" / "artifacts")

    with pytest.raises(Unavailable, match=r"the artifact folder .* cannot be written: .*name another"):
        opened.register(Reorder())


async def test_a_kind_is_registered_before_or_after_the_workspace_is_entered(tmp_path: Any):
    opened = Coordinator.open(tmp_path / "work.db", artifacts=tmp_path / "kept")
    opened.register(Reorder())

    async with opened as coordinator:
        status = await ended(await applied(coordinator.agent("ada")))

    assert status.state == "succeeded"
    assert (tmp_path / "kept").is_dir()
    assert not (tmp_path / "work.db.artifacts").exists()


# What a grant is worth


@pytest.mark.parametrize(
    ("wall_s", "boot_s", "good"),
    [
        (119, 119, True),
        (120, 0, False),
        (0, 120, False),
        (-86_400, 119, True),
        (-86_400, 120, False),
        (86_400, 0, False),
    ],
)
async def test_a_grant_is_good_for_two_minutes_by_either_clock_whichever_is_over_first(
    wall_s: float, boot_s: float, good: bool, coordinator: Coordinator, ada: Agent, clock: ManualClock, reorder: Reorder
):
    preview = await ada.preview("reorder", NORTH)
    clock.advance(boot_s)
    clock.jump_wall(wall_s - boot_s)

    if good:
        assert (await ada.apply(preview)).started
    else:
        with pytest.raises(ApprovalExpired) as refused:
            await ada.apply(preview)
        assert refused.value.code == "approval_expired"
        assert await events(coordinator, preview.operation_id) == []


@pytest.mark.both_stores
async def test_a_grant_of_another_process_is_unknown(coordinator: Coordinator, ada: Agent, reorder: Reorder):
    preview = await ada.preview("reorder", NORTH)
    async with memory_coordinator() as other:
        other.register(Reorder())
        stranger = await other.agent("ada").preview("reorder", NORTH, operation_id=preview.operation_id)

    with pytest.raises(ApprovalUnknown):
        await ada.apply(stranger)

    assert await events(coordinator, preview.operation_id) == []


@pytest.mark.parametrize(
    "change",
    [{"operation_id": "another"}, {"arguments": {"supplier": "north", "weeks": 5}}, {"kind": "another"}],
)
async def test_a_grant_fits_its_operation_its_kind_and_its_arguments_alone(
    change: dict[str, Any], coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    preview = await ada.preview("reorder", NORTH)
    asked = {"operation_id": preview.operation_id, "kind": "reorder", "arguments": NORTH, **change}

    with pytest.raises(ApprovalMismatch):
        await ada.apply(grant=preview.grant, **asked)

    assert reorder.works == []
    assert (await ada.apply(preview)).started


async def test_a_grant_is_its_operators_alone(coordinator: Coordinator, ada: Agent, bob: Agent, reorder: Reorder):
    preview = await ada.preview("reorder", NORTH)

    with pytest.raises(ApprovalMismatch):
        await bob.apply(preview)

    assert await events(coordinator, preview.operation_id) == []


@pytest.mark.both_stores
async def test_of_two_grants_for_one_attempt_one_alone_starts_something(
    coordinator: Coordinator, ada: Agent, reorder: Reorder
):
    first, second = [await ada.preview("reorder", NORTH, operation_id="order-7") for _ in range(2)]
    reorder.working = fails_once(reorder)
    await ended(await ada.apply(first))

    with pytest.raises(ApprovalMismatch, match="attempt 1 was approved; the next one would be 2"):
        await ada.apply(second)

    assert (await ended(await applied(ada, id="order-7"))).state == "succeeded"
    assert [work.attempt for work in reorder.works] == [1, 2]


def fails_once(kind: Reorder) -> Any:
    async def working(arguments: Order, work: Any) -> Any:
        if work.attempt == 1:
            raise ConnectionError("the supplier does not answer")

    return working


@pytest.mark.both_stores
async def test_of_two_operators_who_preview_one_id_the_first_to_apply_binds_it(
    coordinator: Coordinator, ada: Agent, bob: Agent, reorder: Reorder
):
    of_ada = await ada.preview("reorder", NORTH, operation_id="order-7")
    of_bob = await bob.preview("reorder", NORTH, operation_id="order-7")
    await ended(await bob.apply(of_bob))

    with pytest.raises(OperationBound) as refused:
        await ada.apply(of_ada)

    assert refused.value.code == "operation_bound"
    assert "bob" not in f"{refused.value!r} {refused.value.__dict__}"
    assert len(reorder.works) == 1


async def test_a_preview_of_an_own_id_of_other_arguments_is_refused_before_anything_is_planned(
    ada: Agent, bob: Agent, reorder: Reorder
):
    await ended(await applied(ada, id="order-7"))

    with pytest.raises(OperationBound):
        await ada.preview("reorder", {"supplier": "south"}, operation_id="order-7")

    assert (await bob.preview("reorder", {"supplier": "south"}, operation_id="order-7")).attempt == 1


async def test_a_preview_of_what_runs_approves_no_attempt_after_it_for_nobody_has_seen_its_end(
    ada: Agent, reorder: Reorder
):
    lasting(reorder)
    operation = await applied(ada, id="order-7")
    early = await ada.preview("reorder", NORTH, operation_id="order-7")

    same = await ada.apply(early)

    assert (early.attempt, same.started) == (1, False)
    await operation.cancel()
    await ended(operation)
    with pytest.raises(ApprovalMismatch, match="attempt 1 was approved; the next one would be 2"):
        await ada.apply(early)
    assert (await applied(ada, id="order-7")).attempt == 2


async def test_only_so_many_grants_are_kept(ada: Agent, reorder: Reorder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("coordinator.grants._MOST", 2)
    first, second, third = [await ada.preview("reorder", NORTH) for _ in range(3)]

    with pytest.raises(ApprovalUnknown):
        await ada.apply(first)

    assert (await ada.apply(second)).started
    assert (await ada.apply(third)).started


async def test_who_holds_no_grant_is_told_so(ada: Agent, reorder: Reorder):
    await ada.preview("reorder", NORTH, operation_id="order-7")

    with pytest.raises(InvalidInput, match="grant: must be a grant or its text"):
        await ada.apply(operation_id="order-7", kind="reorder", arguments=NORTH)
    with pytest.raises(Refused, match="not known here"):
        await ada.apply(operation_id="order-7", kind="reorder", arguments=NORTH, grant="\ud800 nonsense")


async def test_the_time_of_expiry_is_that_of_the_wall(ada: Agent, clock: ManualClock, reorder: Reorder):
    before = await ada.preview("reorder", NORTH)
    clock.advance(30)

    assert (await ada.preview("reorder", NORTH)).expires_at - before.expires_at == timedelta(seconds=30)
