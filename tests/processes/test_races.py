"""Many processes want the same at once."""

from __future__ import annotations

import pytest

from tests.processes.support import Team, answers, ask_all
from tests.public.support import turn_held


def types(log: list) -> list[str]:
    return [type for type, _, _ in log]


def test_of_twenty_claimers_one_wins_and_the_others_are_told_that_the_job_has_changed(team: Team):
    planner, *workers = team.open("planner", *[f"worker-{number}" for number in range(20)])
    planner.ask("add", job="parser", paths=["src"])

    with turn_held(team.database):
        asked = ask_all(workers, "claim", job="parser", version=1)
    outcomes = answers(workers, asked)

    won = [answer for answer in outcomes if answer.error is None]
    lost = [answer for answer in outcomes if answer.error is not None]
    assert len(won) == 1
    assert {answer.error for answer in lost} == {"VersionChanged"}
    log = planner.ask("log")
    assert types(log)[:2] == ["job.added", "job.claimed"]
    assert types(log).count("job.claimed") == 1
    assert sorted(actor for type, actor, _ in log if type == "command.refused") == sorted(
        f"worker-{number}" for number, answer in enumerate(outcomes) if answer.error is not None
    )


def test_whoever_comes_later_is_told_who_holds_the_job(team: Team):
    winner, *others = team.open("winner", *[f"worker-{number}" for number in range(9)])
    winner.ask("add", job="parser")
    winner.ask("claim", job="parser", version=1)

    outcomes = answers(others, ask_all(others, "claim", job="parser"))

    assert {answer.error for answer in outcomes} == {"AlreadyClaimed"}
    assert all("held by 'winner' until" in answer.said for answer in outcomes)


def test_twenty_claimers_of_twenty_jobs_get_one_each(team: Team):
    planner, *workers = team.open("planner", *[f"worker-{number}" for number in range(20)])
    for number in range(20):
        planner.ask("add", job=f"job-{number}")

    with turn_held(team.database):
        asked = ask_all(workers, "next_claim")
    claims = [answer.value for answer in answers(workers, asked)]

    assert sorted(claim["job"] for claim in claims) == sorted(f"job-{number}" for number in range(20))
    assert len({claim["digest"] for claim in claims}) == 20


def test_jobs_that_want_the_same_paths_are_never_held_at_once(team: Team):
    planner, *workers = team.open("planner", *[f"worker-{number}" for number in range(10)])
    for number in range(10):
        planner.ask("add", job=f"job-{number}", paths=["src" if number % 2 else f"src/{number}"])

    with turn_held(team.database):
        asked = [worker.send("claim", job=f"job-{number}", version=1) for number, worker in enumerate(workers)]
    outcomes = answers(workers, asked)

    held = [number for number, answer in enumerate(outcomes) if answer.error is None]
    assert held in ([1], [3], [5], [7], [9], [0, 2, 4, 6, 8])
    assert {answer.error for answer in outcomes} == {None, "PathClash"}


@pytest.mark.parametrize(
    ("do", "how", "type"),
    [
        ("claim", {"job": "parser", "version": 1, "receipt": "ada-1"}, "job.claimed"),
        ("add", {"job": "lexer", "receipt": "ada-1"}, "job.added"),
    ],
    ids=["claim", "add"],
)
def test_ten_equal_receipts_at_once_have_one_effect_and_equal_answers(do: str, how: dict, type: str, team: Team):
    planner, *workers = team.open("planner", *["ada"] * 10)
    planner.ask("add", job="parser")
    before = types(planner.ask("log")).count(type)

    with turn_held(team.database):
        asked = ask_all(workers, do, **how)
    outcomes = answers(workers, asked)

    assert [answer.error for answer in outcomes] == [None] * 10
    assert [answer.value for answer in outcomes] == [outcomes[0].value] * 10
    log = planner.ask("log")
    assert types(log).count(type) == before + 1
    assert "command.refused" not in types(log)


@pytest.mark.parametrize("exists", [False, True], ids=["no file", "an empty file"])
def test_ten_processes_that_open_a_new_file_at_once_create_it_once(exists: bool, team: Team):
    members = [team.bystander() for _ in range(10)]
    answers(members, ask_all(members, "close"))  # all of them are up

    for number in range(4):
        database = team.database.with_name(f"{number}.db")
        if exists:
            database.touch()
        with turn_held(database):
            asked = ask_all(members, "open", path=str(database), actor="ada")
        opened = answers(members, asked)
        outcomes = answers(members, ask_all(members, "add", job="parser", receipt="ada-1"))
        answers(members, ask_all(members, "close"))

        assert [answer.error for answer in opened] == [None] * 10
        assert [answer.value for answer in outcomes] == [{"id": "parser", "version": 1, "position": 1}] * 10
