"""One process writes at a time, and nobody waits for ever."""

from __future__ import annotations

from tests.processes.support import Team


def test_whoever_waits_too_long_is_told_which_process_holds_the_turn_and_nothing_was_applied(team: Team):
    ada, bob = team.open("ada", "bob", busy_timeout_s=0.3)
    holder = team.bystander()
    holder.ask("take_turn", path=str(team.database))

    outcome = ada.attempt("add", job="parser", receipt="ada-1")
    read_meanwhile = bob.ask("log")
    holder.ask("give_turn_back")

    assert outcome.error == "Busy"
    assert f"held by process {holder.pid} for more than 0.3 s" in outcome.said
    assert "nothing was applied" in outcome.said
    assert read_meanwhile == []
    assert bob.ask("log") == []
    assert ada.ask("add", job="parser", receipt="ada-1")["position"] == 1


def test_opening_too_says_which_process_holds_the_turn(team: Team):
    team.open("ada")
    holder, other = team.bystander(), team.bystander()
    holder.ask("take_turn", path=str(team.database))

    outcome = other.attempt("open", path=str(team.database), actor="bob", busy_timeout_s=0.1)
    holder.ask("give_turn_back")

    assert outcome.error == "Busy"
    assert f"process {holder.pid}" in outcome.said


def test_the_turn_of_a_process_that_is_killed_goes_to_the_next(team: Team):
    (ada,) = team.open("ada")
    holder = team.bystander()
    holder.ask("take_turn", path=str(team.database))
    adding = ada.send("add", job="parser")

    holder.kill()

    assert ada.answer(adding).value["position"] == 1


def test_a_process_that_stalls_with_the_turn_holds_up_writers_but_not_readers(team: Team):
    ada, bob = team.open("ada", "bob")
    holder = team.bystander()
    bob.ask("add", job="parser")
    holder.ask("take_turn", path=str(team.database))
    holder.stall()
    claiming = ada.send("claim", job="parser", version=1)

    assert bob.ask("wait_for", job="parser", states=["ready"])["version"] == 1
    holder.go_on()
    holder.ask("give_turn_back")

    assert ada.answer(claiming).value["attempt"] == 1


def test_a_process_that_closes_while_its_commands_wait_answers_them_all(team: Team):
    ada, bob = team.open("ada", "bob", busy_timeout_s=0.3)
    holder = team.bystander()
    holder.ask("take_turn", path=str(team.database))
    adding = [ada.send("add", job=f"job-{number}") for number in range(5)]

    closing = ada.send("close")
    outcomes = [ada.answer(number) for number in adding]
    holder.ask("give_turn_back")

    assert [answer.error for answer in outcomes] == ["Busy"] * 5
    assert ada.answer(closing).error is None
    assert bob.ask("log") == []


def test_a_process_that_closes_finishes_the_commands_for_which_the_turn_still_comes(team: Team):
    ada, bob = team.open("ada", "bob")
    holder = team.bystander()
    holder.ask("take_turn", path=str(team.database))
    adding = [ada.send("add", job=f"job-{number}") for number in range(5)]

    closing = ada.send("close")
    holder.ask("give_turn_back")

    assert [ada.answer(number).error for number in adding] == [None] * 5
    assert ada.answer(closing).error is None
    assert len(bob.ask("log")) == 5
