"""Workers that stall, are killed, come back: the story that all of this exists for."""

from __future__ import annotations

import pytest

from tests.processes.support import Team


def refused(log: list) -> list[tuple[str, object, object]]:
    return [(actor, body["command"], body["code"]) for type, actor, body in log if type == "command.refused"]


def story(log: list) -> list[tuple[str, str | None]]:
    return [(type, actor) for type, actor, _ in log if type != "command.refused"]


def test_a_worker_that_stalled_past_its_lease_and_was_replaced_cannot_submit_even_though_it_knows_the_version(
    team: Team,
):
    ada, bob = team.open("ada", "bob")
    bob.ask("add", job="parser", paths=["src"])
    late = ada.ask("claim", job="parser", lease_s=1)

    ada.stall()
    assert bob.ask("wait_for", job="parser", states=["ready"])["attempt"] == 1
    claim = bob.ask("claim", job="parser", lease_s=60)
    ada.go_on()
    outcome = ada.attempt("submit_with_the_current_version")

    assert outcome.error == "TokenSuperseded"
    assert "this is attempt 1's token; attempt 2 is bob's" in outcome.said
    assert claim["fence"] > late["fence"]
    assert bob.ask("submit") == "submitted"
    log = bob.ask("log")
    assert refused(log) == [("ada", "submit_job", "token_superseded")]
    assert story(log) == [
        ("job.added", "bob"),
        ("job.claimed", "ada"),
        ("job.lapsed", None),
        ("job.claimed", "bob"),
        ("job.submitted", "bob"),
    ]


def test_a_worker_that_stalled_in_its_block_finds_it_cancelled_when_it_goes_on(team: Team):
    ada, bob = team.open("ada", "bob")
    bob.ask("add", job="parser")
    ada.ask("claim", job="parser", lease_s=1)
    working = ada.send("work_for_ever")

    ada.stall()
    bob.ask("wait_for", job="parser", states=["ready"])
    bob.ask("claim", job="parser", lease_s=60)
    ada.go_on()
    outcome = ada.answer(working)

    assert outcome.error in ("LeaseLapsed", "TokenSuperseded")
    assert bob.ask("submit") == "submitted"
    assert [type for type, _ in story(bob.ask("log")) if type == "job.failed"] == []


def test_a_worker_that_only_works_for_long_keeps_its_claim(team: Team):
    ada, bob = team.open("ada", "bob")
    bob.ask("add", job="parser")
    bob.ask("add", job="sentinel")
    ada.send("claim_and_work_for_ever", job="parser", lease_s=2)
    bob.ask("wait_for", job="parser", states=["claimed"])

    bob.ask("claim", job="sentinel", lease_s=2.5)
    bob.ask("wait_for", job="sentinel", states=["ready"])  # so ada's lease would be over as well

    assert bob.ask("wait_for", job="parser", states=["claimed"])["attempt"] == 1
    assert ("job.renewed", "ada") in story(bob.ask("log"))
    ada.kill()


def test_a_worker_that_was_killed_and_kept_its_token_resumes_under_its_own_name(team: Team):
    (ada,) = team.open("ada")
    ada.ask("add", job="parser")
    token = ada.ask("claim", job="parser", lease_s=60)["token"]

    ada.kill()
    (again,) = team.open("ada")
    resumed = again.ask("resume", token=token)

    assert resumed["attempt"] == 1
    assert again.ask("submit", result={"lines": 7}) == "submitted"


def test_a_worker_that_was_killed_and_knows_its_receipt_gets_its_claim_again(team: Team):
    (ada,) = team.open("ada")
    ada.ask("add", job="parser")
    claim = ada.ask("claim", job="parser", version=1, receipt="run-7/parser/claim")

    ada.kill()
    (again,) = team.open("ada")

    assert again.ask("claim", job="parser", version=1, receipt="run-7/parser/claim") == claim
    assert again.ask("submit") == "submitted"


def test_a_worker_that_was_killed_and_kept_nothing_claims_again_after_the_lapse(team: Team):
    ada, bob = team.open("ada", "bob")
    ada.ask("add", job="parser")
    ada.ask("claim", job="parser", version=1, lease_s=1)

    ada.kill()
    (again,) = team.open("ada")
    again.ask("wait_for", job="parser", states=["ready"])

    assert again.ask("claim", job="parser")["attempt"] == 2
    assert again.ask("submit") == "submitted"
    assert story(bob.ask("log"))[-3:] == [("job.lapsed", None), ("job.claimed", "ada"), ("job.submitted", "ada")]


def test_a_worker_that_waits_is_woken_by_each_job_that_another_process_adds(team: Team):
    ada, bob = team.open("ada", "bob")

    for number in range(3):
        waiting = ada.send("next_claim")
        ada.ask("observed", type="claim_next", outcome="nothing")
        bob.ask("add", job=f"job-{number}")

        assert ada.answer(waiting).value["job"] == f"job-{number}"


def test_who_waits_for_a_job_is_woken_by_what_another_process_does(team: Team):
    ada, bob = team.open("ada", "bob")
    bob.ask("add", job="parser")
    waiting = ada.send("wait_for", job="parser", states=["submitted"])

    bob.ask("claim", job="parser")
    bob.ask("submit")

    assert ada.answer(waiting).value["worker"] == "bob"


def test_a_worker_that_waits_is_woken_by_the_lapse_of_one_that_was_killed(team: Team):
    ada, bob = team.open("ada", "bob")
    ada.ask("add", job="parser")
    ada.ask("claim", job="parser", lease_s=1)
    waiting = bob.send("next_claim")
    bob.ask("observed", type="claim_next", outcome="nothing")

    ada.kill()

    claim = bob.answer(waiting).value
    assert (claim["job"], claim["attempt"]) == ("parser", 2)


@pytest.mark.parametrize("number", [5])
def test_several_that_wait_get_one_job_each(number: int, team: Team):
    planner, *workers = team.open("planner", *[f"worker-{n}" for n in range(number)])
    waiting = [worker.send("next_claim") for worker in workers]
    for worker in workers:
        worker.ask("observed", type="claim_next", outcome="nothing")

    for n in range(number):
        planner.ask("add", job=f"job-{n}")

    claims = [worker.answer(asked).value["job"] for worker, asked in zip(workers, waiting, strict=True)]
    assert sorted(claims) == [f"job-{n}" for n in range(number)]
