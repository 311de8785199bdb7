"""Processes that write to one file without a pause."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coordinator.stores.interface import LogRow
from tests.processes.support import Team, answers

ROUNDS = 2


def names(processes: int) -> list[str]:
    return [f"worker-{number}" for number in range(processes)]


def all_work(team: Team, actors: Sequence[str], **how: int) -> list[LogRow]:
    """The log, after all of them have worked at once."""
    members = team.open(*actors)
    working = [
        member.send_without_waiting("work", diary=team.diary(actor), **how)
        for member, actor in zip(members, actors, strict=True)
    ]
    assert [answer.error for answer in answers(members, working)] == [None] * len(actors)
    for member in members:
        member.ask("close")
    return team.reckon()


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_processes_that_write_at_once_lose_nothing(processes: int, team: Team):
    actors = names(processes)

    log = all_work(team, actors, jobs=48 // processes, lanes=4)

    assert len({row.origin for row in log}) == processes
    assert len(log) == 3 * 4 * 48
    for actor, diary in team.diaries().items():
        assert sorted(diary.told) == sorted(row.receipt or "" for row in log if row.actor == actor)


def test_the_turn_goes_round_among_eight_processes(team: Team):
    """By chance alone everybody would occur in two of five stretches of two rounds, and some would wait for long."""
    actors = names(8)

    log = all_work(team, actors, jobs=40)

    assert full_stretches([row.actor or "" for row in log], len(actors)) > 2 / 3


def full_stretches(order: Sequence[str], processes: int) -> float:
    """While all of them are at it, the share of stretches of so many rounds in which each occurs."""
    first = max(order.index(name) for name in set(order))
    last = min(len(order) - 1 - order[::-1].index(name) for name in set(order))
    size = ROUNDS * processes
    stretches = [order[start : start + size] for start in range(first, last - size, size)]
    return sum(len(set(stretch)) == processes for stretch in stretches) / len(stretches)
