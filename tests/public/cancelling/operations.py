"""Operations, cancelled at any step."""

from __future__ import annotations

from typing import Any

from coordinator import Operation
from tests.public.cancelling.row import Ask, Given, Row, losing_the_answer
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World
from tests.public.operating import NORTH, Checked, fails, finding


async def kind(world: World) -> Checked:
    """It fails; and its check agrees."""
    found = world.coordinator._open().operating.registry.get("reorder")
    if found is None:
        found = Checked(checking=finding(True), working=fails)
        world.coordinator.register(found)
    assert isinstance(found, Checked)
    return found


async def previewed(world: World) -> Any:
    await kind(world)
    return await world.ada.preview("reorder", NORTH, operation_id=world.id)


async def failed(world: World) -> Operation:
    operation = await world.ada.apply(await previewed(world))
    await operation.wait()
    await world.operations_have_ended()
    return operation


async def failed_and_previewed(world: World) -> Any:
    await failed(world)
    return await previewed(world)


def operation(covers: str, given: Given, event: str | None, ask: Ask, *, one: bool = False) -> Row:
    """What it appends is appended once or never, and asking again is harmless.

    Args:
        one: there is one command only, and it appends.
    """

    async def afterwards(world: World, given: Any, ended: Ended) -> None:
        await world.operations_have_ended()
        appended = [] if event is None else await world.since(event)
        assert len(appended) <= 1
        assert ended.cancelled or not isinstance(ended.answer, Exception), repr(ended.answer)
        if ended.command == "undrawn":
            assert appended == []
        if ended.command == "applied" and one:
            assert len(appended) == 1

        await ask(world, given)
        await world.operations_have_ended()

        assert event is None or len(await world.since(event)) == 1

    return Row(covers=covers.split(), given=given, ask=ask, afterwards=afterwards)


OPERATIONS = {
    "preview": operation(
        "Agent.preview", previewed, None, lambda w, _: w.ada.preview("reorder", NORTH, operation_id=w.id)
    ),
    "apply": operation("Agent.apply", previewed, "operation.queued", lambda w, preview: w.ada.apply(preview), one=True),
    "apply again": operation(
        "Agent.apply", failed_and_previewed, "operation.queued", lambda w, preview: w.ada.apply(preview)
    ),
    "apply whose answer is lost": operation(
        "Agent.apply",
        previewed,
        "operation.queued",
        lambda w, preview: losing_the_answer(w, w.ada.apply(preview)),
        one=True,
    ),
    "reconcile": operation(
        "Operation.reconcile",
        failed,
        "operation.reconciled",
        lambda w, operation: operation.reconcile("not done", "looked", receipt=w.receipt),
    ),
    "cancel an operation": operation("Operation.cancel", failed, None, lambda w, operation: operation.cancel()),
    "status": operation("Operation.status", failed, None, lambda w, operation: operation.status()),
    "wait for an operation": operation("Operation.wait", failed, None, lambda w, operation: operation.wait()),
}
