"""Processes that open, write, checkpoint, close and are killed, all at random and at once.

LONGER=40 in the environment makes it some minutes.
"""

from __future__ import annotations

import random
import time

from tests.processes.support import LONGER, Member, Team

ACTORS = ["ada", "bob", "cleo", "dan"]
KILLS = 8


def come(team: Team, actor: str) -> tuple[Member, int]:
    member = team.bystander()
    return member, member.send("come_and_go", path=str(team.database), actor=actor, diary=team.diary(actor))


def test_processes_that_come_and_go_and_are_killed_lose_nothing(team: Team):
    coming = {actor: come(team, actor) for actor in ACTORS}

    for _ in range(KILLS * LONGER):
        time.sleep(random.uniform(0, 0.8))  # any moment will do
        actor = random.choice(ACTORS)
        coming[actor][0].kill()
        coming[actor] = come(team, actor)
    for member, _ in coming.values():
        member.ask("stop_working")
    ends = [member.answer(number) for member, number in coming.values()]

    assert [end.error for end in ends] == [None] * len(ACTORS)
    log = team.reckon()
    assert [row for row in log if row.type not in ("job.added", "job.claimed", "job.submitted")] == []
    assert all("checkpoint" in diary.noted for diary in team.diaries().values())
