"""Processes that open one reader: the latest has it, and whoever dies with a page leaves it to the next."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

from tests.processes.diary import read
from tests.processes.support import LONGER, Team

MESSAGES = 300 * LONGER
KILLS = 3


def test_the_older_of_two_processes_is_locked_out_of_its_reader_and_nothing_is_skipped(team: Team):
    ada, bob = team.open("ada", "bob")
    assert ada.ask("send", topic="builds", numbers=[1, 2, 3]) == [1, 2, 3]
    ada.ask("open_reader", topic="builds", name="night")
    assert ada.ask("read", limit=2) == [1, 2]

    assert bob.ask("open_reader", topic="builds", name="night") == 0
    read, acknowledged = ada.attempt("read"), ada.attempt("acknowledge")

    assert [read.error, acknowledged.error] == ["ReaderSuperseded"] * 2
    assert "this is session 1; session 2 is bob's" in read.said
    assert bob.ask("read") == [1, 2, 3]
    assert bob.ask("acknowledge") == 3
    log = bob.ask("log")
    assert [(type, actor) for type, actor, _ in log if not type.startswith("message.")] == [
        ("reader.opened", "ada"),
        ("messages.delivered", "ada"),
        ("reader.opened", "bob"),
        ("command.refused", "ada"),
        ("command.refused", "ada"),
        ("messages.delivered", "bob"),
        ("messages.acknowledged", "bob"),
    ]


def test_a_process_that_is_killed_between_a_page_and_its_acknowledgment_leaves_the_page_to_the_next(team: Team):
    ada, bob = team.open("ada", "bob")
    ada.ask("send", topic="builds", numbers=list(range(1, 151)))
    ada.ask("open_reader", topic="builds", name="night")
    assert ada.ask("read", limit=60) == list(range(1, 61))
    ada.ask("acknowledge")
    lost = ada.ask("read", limit=60)

    ada.kill()

    assert bob.ask("open_reader", topic="builds", name="night") == 60
    assert bob.ask("read", limit=60) == lost == list(range(61, 121))
    bob.ask("acknowledge")
    assert bob.ask("read") == list(range(121, 151))


def test_of_processes_that_are_killed_while_they_read_each_goes_on_where_messages_were_not_kept(team: Team):
    team.open("ada")[0].ask("send", topic="builds", numbers=list(range(1, MESSAGES + 1)))
    work = {"topic": "builds", "name": "night", "last": MESSAGES}

    for kill in range(1, KILLS * LONGER + 1):
        victim, diary = team.open("bob")[0], team.diary(f"bob {kill:02}")
        victim.send("keep_all", **work, diary=diary)
        while len(read(Path(diary)).noted) < 10:
            time.sleep(0.001)  # any moment after that will do
        victim.kill()
    cleo = team.open("cleo")[0]
    cleo.ask("keep_all", **work, diary=team.diary("cleo"))

    kept = [[int(number) for number in diary.noted] for _, diary in sorted(team.diaries().items())]
    assert all(numbers == list(range(numbers[0], numbers[-1] + 1)) for numbers in kept)
    assert all(later[0] <= earlier[-1] + 1 for earlier, later in pairwise(kept))
    assert (kept[0][0], kept[-1][-1]) == (1, MESSAGES)
