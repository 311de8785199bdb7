"""Processes that are stopped or killed while they hold the turn, in any moment of a commit.

LONGER=20 in the environment makes it 200 kills.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from coordinator.stores.turn import Turn
from tests.processes.support import LONGER, NAMES_HOLDERS, Member, Team

pytestmark = NAMES_HOLDERS

KILLS = 10
STOPS = 4
LANES = 4


@pytest.fixture
def turn(team: Team) -> Iterator[Turn]:
    """To look who holds it."""
    with closing(Turn(f"{team.database}.turn")) as turn:
        yield turn


def set_to_work(team: Team, *actors: str, busy_timeout_s: float = 20) -> dict[str, tuple[Member, int]]:
    """They work until told to stop."""
    members = team.open(*actors, busy_timeout_s=busy_timeout_s)
    return {
        actor: (member, member.send("work", diary=team.diary(actor), lanes=LANES))
        for actor, member in zip(actors, members, strict=True)
    }


def stop_working(working: dict[str, tuple[Member, int]]) -> None:
    for member, _ in working.values():
        member.ask("stop_working")
    for member, number in working.values():
        answer = member.answer(number)
        assert answer.error is None, answer.said
        member.ask("close")


def test_a_process_that_is_killed_with_the_turn_loses_nothing_and_doubles_nothing(team: Team, turn: Turn):
    working = set_to_work(team, "ada", "bob", "cleo", "dan")

    for _ in range(KILLS * LONGER):
        actor = random.choice(list(working))
        victim, _ = working[actor]
        victim.stall_with_turn(turn)
        victim.kill()
        working |= set_to_work(team, actor)  # goes on, and first repeats what was not answered, with its receipts
    stop_working(working)

    log = team.reckon()
    submitted = {row.receipt for row in log if row.type == "job.submitted"}
    assert submitted == {row.receipt.replace("add", "submit") for row in log if row.type == "job.added" and row.receipt}


@pytest.mark.parametrize("busy_timeout_s", [20, 0.1], ids=["has time", "is in a hurry"])
def test_a_process_that_is_stopped_with_the_turn_is_named_and_goes_on_as_if_nothing_had_happened(
    busy_timeout_s: float, team: Team, turn: Turn
):
    working = set_to_work(team, "ada", busy_timeout_s=busy_timeout_s)
    ada, _ = working["ada"]
    (bob,) = team.open("bob", busy_timeout_s=0.2)

    for number in range(STOPS * LONGER):
        ada.stall_with_turn(turn)
        outcome = bob.attempt("add", job=f"bob/{number}", receipt=f"bob-{number}")
        log = bob.ask("log")
        ada.go_on()

        assert outcome.error == "Busy"
        assert f"held by process {ada.pid} for more than 0.2 s" in outcome.said
        assert ["bob" for _, actor, _ in log if actor == "bob"] == ["bob"] * number
        while bob.attempt("add", job=f"bob/{number}", receipt=f"bob-{number}").error is not None:
            pass
    stop_working(working)
    bob.ask("close")

    assert len([row for row in team.reckon() if row.actor == "bob"]) == STOPS * LONGER
