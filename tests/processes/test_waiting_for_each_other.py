"""Processes that wait for what others do: nothing that one does is slept through by another.

A wake-up that is lost shows in a test that hangs. LONGER=50 in the environment plays 100,000 rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from coordinator.stores.turn import Turn
from tests.processes.support import LONGER, NAMES_HOLDERS, Team, answers

PAIRS = 8
ROUNDS = 250 * LONGER
LANES = 4
JOBS = 50 * LONGER


@pytest.fixture
def turn(team: Team) -> Iterator[Turn]:
    """To look who holds it."""
    with closing(Turn(f"{team.database}.turn")) as turn:
        yield turn


def test_two_processes_that_answer_each_others_messages_never_wait_in_vain(team: Team):
    ada, bob = team.open("ada", "bob")
    there, back = [f"there-{n}" for n in range(PAIRS)], [f"back-{n}" for n in range(PAIRS)]

    answering = bob.send("answer_messages", hears=there, says=back, rounds=ROUNDS, begins=False)
    beginning = ada.send("answer_messages", hears=back, says=there, rounds=ROUNDS, begins=True)

    assert [answer.value for answer in answers([ada, bob], [beginning, answering])] == [[ROUNDS] * PAIRS] * 2


def test_two_processes_of_which_one_adds_jobs_and_one_does_them_never_wait_in_vain(team: Team):
    ada, bob = team.open("ada", "bob")

    doing = bob.send("do_jobs", jobs=JOBS * LANES, lanes=LANES)
    adding = ada.send("add_and_wait", jobs=JOBS, lanes=LANES)

    assert [answer.value for answer in answers([ada, bob], [adding, doing])] == [JOBS * LANES] * 2


def test_who_follows_misses_and_doubles_nothing_while_other_processes_write(team: Team):
    ada, bob, eve = team.open("ada", "bob", "eve")
    each = 300

    following = ada.send("follow", number=2 * each, after=0)
    telling = [member.send("tell", topic="builds", number=each) for member in (bob, eve)]
    heard = ada.answer(following).value

    assert [answer.error for answer in answers([bob, eve], telling)] == [None, None]
    assert [position for position, _, _ in heard] == list(range(1, 2 * each + 1))
    assert sorted(actor for _, _, actor in heard) == ["bob"] * each + ["eve"] * each


@NAMES_HOLDERS
def test_who_waits_goes_on_waiting_when_a_process_is_killed_in_the_middle_of_a_commit(team: Team, turn: Turn):
    ada, bob, eve = team.open("ada", "bob", "eve")
    bob.ask("add", job="parser")
    waiting = [ada.send("wait_for", job="parser", states=["claimed"]), ada.send("next_claim")]
    assert ada.answer(waiting[1]).value["job"] == "parser"
    waiting[1] = ada.send("next_claim")

    bob.send("tell", topic="builds", number=1_000_000)
    bob.stall_with_turn(turn)
    bob.kill()
    eve.ask("add", job="lexer")

    assert ada.answer(waiting[0]).value["state"] == "claimed"
    assert ada.answer(waiting[1]).value["job"] == "lexer"


@NAMES_HOLDERS
def test_the_lease_of_a_process_that_was_killed_in_the_middle_of_a_commit_lapses_for_those_who_wait(
    team: Team, turn: Turn
):
    """Nobody writes any more: those who wait have it recorded themselves."""
    ada, bob = team.open("ada", "bob")
    bob.ask("add", job="parser")
    bob.ask("claim", job="parser", lease_s=2)
    following = ada.send("follow", number=3, job="parser")
    working = ada.send("next_claim")

    bob.send("tell", topic="builds", number=1_000_000)
    bob.stall_with_turn(turn)
    bob.kill()

    assert [type for _, type, _ in ada.answer(following).value] == ["job.added", "job.claimed", "job.lapsed"]
    assert ada.answer(working).value["attempt"] == 2
