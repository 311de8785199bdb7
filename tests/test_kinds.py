"""Registering kinds: what lacks something is told which part of it."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from msgspec import Struct

from coordinator.errors import InvalidInput
from coordinator.kinds import Kind, Registry, SubprocessKind, has_check, validated
from coordinator.operations import ADVICE, Advice, AttemptRecord, Finding
from events.operations import OperationState
from projections.operations import LIVE


class Weeks(Struct, forbid_unknown_fields=True):
    weeks: int
    supplier: str = "north"


class Reorder(Kind[Weeks]):
    name = "reorder"
    arguments = Weeks

    async def preview(self, arguments: Weeks) -> Any:
        return {"weeks": arguments.weeks}

    async def run(self, arguments: Weeks, work: Any) -> Any:
        return {}


class Recount(SubprocessKind[Weeks]):
    name = "recount"
    arguments = Weeks

    async def preview(self, arguments: Weeks) -> Any:
        return {}

    def command(self, arguments: Weeks, work: Any) -> list[str]:
        return ["true"]


class Checked(Reorder):
    async def check(self, arguments: Weeks, record: AttemptRecord) -> Finding:
        return Finding(agrees=True, note="as it should be")


def kind(base: type[Kind[Any]] = Reorder, **fields: Any) -> Kind[Any]:
    """A kind with these attributes instead of ordinary ones."""
    return type("Other", (base,), fields)()


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("registered", [Reorder(), Recount()], ids=["function", "subprocess"])
def test_a_registered_kind_is_known_by_its_name(registry: Registry, registered: Kind[Any]) -> None:
    registry.add(registered)

    assert registry.known(registered.name) is registered
    assert registry.get(registered.name) is registered
    assert registry


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "kind.name"),
        ({"name": 7}, "kind.name"),
        ({"name": "x" * 257}, "kind.name"),
        ({"name": "re\norder"}, "kind.name"),
        ({"arguments": dict}, "kind.arguments"),
        ({"arguments": Weeks(weeks=1)}, "kind.arguments"),
        ({"arguments": None}, "kind.arguments"),
        ({"time_limit_s": 0}, "kind.time_limit_s"),
        ({"time_limit_s": float("nan")}, "kind.time_limit_s"),
        ({"time_limit_s": float("inf")}, "kind.time_limit_s"),
        ({"time_limit_s": "1"}, "kind.time_limit_s"),
        ({"lease_s": 0.5}, "kind.lease_s"),
        ({"lease_s": 86_401}, "kind.lease_s"),
        ({"lease_s": True}, "kind.lease_s"),
        ({"grace_s": -1}, "kind.grace_s"),
        ({"grace_s": None}, "kind.grace_s"),
        ({"grace_s": 31}, "kind.grace_s"),
        ({"lease_s": 19}, "kind.grace_s"),
        ({"preview_limit_s": 0}, "kind.preview_limit_s"),
        ({"preview_limit_s": 3_601}, "kind.preview_limit_s"),
        ({"check_limit_s": 0}, "kind.check_limit_s"),
        ({"check_limit_s": "x"}, "kind.check_limit_s"),
        ({"preview": Kind.preview}, "kind.preview"),
        ({"run": Kind.run}, "kind.run"),
    ],
    ids=str,
)
def test_a_kind_that_cannot_work_is_not_registered_and_the_message_names_the_part(
    registry: Registry, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.add(kind(**fields))

    assert caught.value.field == field
    assert not registry


def test_a_kind_without_a_name_or_arguments_of_its_own_is_not_registered(registry: Registry) -> None:
    class Nameless(Kind[Weeks]):
        pass

    with pytest.raises(InvalidInput) as caught:
        registry.add(Nameless())

    assert caught.value.field == "kind.name"


def test_a_kind_that_is_to_run_a_program_says_which(registry: Registry) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.add(kind(Recount, command=SubprocessKind.command))

    assert caught.value.field == "kind.command"


def test_a_program_needs_no_function_beside_it(registry: Registry) -> None:
    registry.add(Recount())

    assert registry.get("recount") is not None


@pytest.mark.parametrize("other", [Reorder, "reorder", None, Weeks(weeks=1)], ids=str)
def test_what_is_no_kind_is_not_registered(registry: Registry, other: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.add(other)

    assert caught.value.field == "kind"


def test_of_two_kinds_of_one_name_the_first_stays(registry: Registry) -> None:
    first = Reorder()
    registry.add(first)

    with pytest.raises(InvalidInput, match="taken") as caught:
        registry.add(Reorder())

    assert caught.value.field == "kind.name"
    assert registry.get("reorder") is first


def test_registering_the_same_kind_again_is_harmless(registry: Registry) -> None:
    first = Reorder()

    registry.add(first)
    registry.add(first)

    assert registry.get("reorder") is first


def test_who_asks_for_a_kind_that_is_not_there_is_told_which_are(registry: Registry) -> None:
    registry.add(Reorder())
    registry.add(Recount())

    with pytest.raises(InvalidInput, match="not registered") as caught:
        registry.known("reordr")

    assert caught.value.hint == "registered: recount, reorder"
    assert registry.get("reordr") is None


@pytest.mark.parametrize("lease_s", [20, 20.0, 86_400])
def test_grace_may_take_half_of_the_lease(registry: Registry, lease_s: float) -> None:
    registry.add(kind(lease_s=lease_s, grace_s=10))

    assert registry


# Arguments


def test_arguments_become_what_the_kind_wants() -> None:
    assert validated(Reorder(), b'{"weeks":4}') == Weeks(weeks=4)


@pytest.mark.parametrize(
    ("given", "field"), [(b'{"weeks":"4"}', "weeks"), (b"{}", "weeks"), (b'{"weeks":4,"colour":1}', "colour")]
)
def test_arguments_of_the_wrong_shape_name_the_field(given: bytes, field: str) -> None:
    with pytest.raises(InvalidInput, match=field) as caught:
        validated(Reorder(), given)

    assert caught.value.field == "arguments"


def test_a_kind_has_a_check_if_it_or_what_it_is_made_from_has_one() -> None:
    class Grandchild(Checked):
        pass

    assert [has_check(kind) for kind in (Reorder(), Recount(), Checked(), Grandchild())] == [False, False, True, True]


# Advice


def test_there_is_advice_for_every_state_whether_the_world_agrees_or_not() -> None:
    states = get_args(OperationState)

    assert set(ADVICE) == {(state, agrees) for state in states for agrees in (True, False)}
    assert set(ADVICE.values()) == set(get_args(Advice))


@pytest.mark.parametrize(("state", "agrees"), ADVICE)
def test_nobody_is_advised_to_approve_again_while_the_world_disagrees(state: OperationState, agrees: bool) -> None:
    advice = ADVICE[state, agrees]

    if state in LIVE:
        assert advice == "wait"
    elif not agrees:
        assert advice == "reconcile first"
    else:
        assert advice == ("done" if state == "succeeded" else "look, then approve again")
