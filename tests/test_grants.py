"""Grants: what each is worth to whom, and for how long; nothing of a secret is kept."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from coordinator import grants
from coordinator.approval import Approval
from coordinator.clock import ManualClock
from coordinator.grants import EXPIRES_US, Grants, Terms, grant_digest

TERMS = Terms(operation="order", operator="ada", kind="reorder", arguments=b'{"weeks":4}')
APPROVAL = Approval(worth="fresh", attempt=2, plan=Raw(b'{"boxes":4}'), plan_digest="digest", lease_us=60_000_000)
GOOD_FOR_S = EXPIRES_US / 1_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def handed(clock: ManualClock) -> Grants:
    return Grants(clock)


def test_a_grant_is_worth_what_was_approved_as_often_as_it_is_asked_for(handed: Grants) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)

    worth = [handed.worth(grant_digest(secret), TERMS) for _ in range(2)]

    assert worth == [APPROVAL, APPROVAL]


@pytest.mark.parametrize(
    "other",
    [{"operation": "other"}, {"operator": "bob"}, {"kind": "recount"}, {"arguments": b'{"weeks":5}'}],
    ids=lambda other: next(iter(other)),
)
def test_a_grant_is_for_one_operation_operator_kind_and_arguments(handed: Grants, other: dict[str, str]) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)

    assert handed.worth(grant_digest(secret), replace(TERMS, **other)).worth == "mismatch"


def test_what_nobody_handed_out_is_unknown(handed: Grants) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)

    assert handed.worth(grant_digest(secret + "x"), TERMS).worth == "unknown"
    assert handed.worth(secret, TERMS).worth == "unknown"


def test_a_grant_is_unknown_to_any_other_process(handed: Grants, clock: ManualClock) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)

    assert Grants(clock).worth(grant_digest(secret), TERMS).worth == "unknown"


def test_no_two_grants_are_alike_also_on_the_same_terms(handed: Grants) -> None:
    secrets = {handed.hand_out(TERMS, APPROVAL)[0] for _ in range(100)}

    assert len(secrets) == 100
    assert all(len(secret) >= 40 for secret in secrets)


# Time


def test_a_grant_is_good_until_the_moment_that_it_tells(handed: Grants, clock: ManualClock) -> None:
    before = clock.wall()
    secret, until = handed.hand_out(TERMS, APPROVAL)

    clock.advance(GOOD_FOR_S - 0.000_001)
    in_time = handed.worth(grant_digest(secret), TERMS)
    clock.advance(0.000_001)
    too_late = handed.worth(grant_digest(secret), TERMS)

    assert until == before + EXPIRES_US == clock.wall()
    assert (in_time.worth, too_late.worth) == ("fresh", "expired")


def test_a_wall_clock_that_is_set_forward_ends_a_grant_early(handed: Grants, clock: ManualClock) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)

    clock.jump_wall(GOOD_FOR_S)

    assert handed.worth(grant_digest(secret), TERMS).worth == "expired"


def test_a_wall_clock_that_is_set_back_does_not_prolong_a_grant(handed: Grants, clock: ManualClock) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)

    clock.jump_wall(-3_600)
    clock.advance(GOOD_FOR_S)

    assert handed.worth(grant_digest(secret), TERMS).worth == "expired"


def test_to_who_asks_on_other_terms_an_expired_grant_is_still_for_something_else(
    handed: Grants, clock: ManualClock
) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)
    clock.advance(GOOD_FOR_S)

    assert handed.worth(grant_digest(secret), replace(TERMS, operator="bob")).worth == "mismatch"


# Memory


def test_of_very_many_grants_the_oldest_are_forgotten(handed: Grants, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "_MOST", 3)

    secrets = [handed.hand_out(TERMS, APPROVAL)[0] for _ in range(5)]

    worth = [handed.worth(grant_digest(secret), TERMS).worth for secret in secrets]
    assert worth == ["unknown", "unknown", "fresh", "fresh", "fresh"]


def test_nothing_of_a_secret_is_kept(handed: Grants) -> None:
    secret, _ = handed.hand_out(TERMS, APPROVAL)

    reached: list[Any] = [handed]
    seen: set[int] = set()
    texts: list[str] = []
    while reached:
        thing = reached.pop()
        if id(thing) in seen or isinstance(thing, type | ManualClock):
            continue
        seen.add(id(thing))
        texts += [thing] if isinstance(thing, str) else []
        reached += gc.get_referents(thing)
        if isinstance(thing, Grants):
            reached.append(vars(thing))
        if isinstance(thing, dict):
            reached += thing  # its keys, if they are texts, are no referents
    assert grant_digest(secret) in texts
    assert not [text for text in texts if secret.removeprefix("grant-") in text]


@pytest.mark.parametrize("text", ["", "grant-x", "ä", "\ud800", "x" * 100_000])
def test_any_text_has_a_digest(handed: Grants, text: str) -> None:
    assert handed.worth(grant_digest(text), TERMS).worth == "unknown"
