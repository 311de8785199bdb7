"""Forked children that keep running: they inherit everything, and keep nobody from anything."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coordinator.stores.turn import Turn
from tests.processes.support import NAMES_HOLDERS, Member, Team

PARENT_MEANWHILE: dict[str, Callable[[Member, Turn], object]] = {
    "goes on": lambda parent, turn: None,
    "closes": lambda parent, turn: parent.ask("close"),
    "is killed": lambda parent, turn: parent.kill(),
    "is killed with the turn": lambda parent, turn: (parent.stall_with_turn(turn), parent.kill()),
}


def end_child(until: Path) -> None:
    with until.open("w") as pipe:
        ended = select.poll()
        ended.register(pipe, 0)
        assert ended.poll(20_000)  # its end of the pipe is closed


@NAMES_HOLDERS
@pytest.mark.parametrize("parent_meanwhile", PARENT_MEANWHILE.values(), ids=PARENT_MEANWHILE)
def test_a_forked_child_that_keeps_running_holds_up_nobody_and_drops_nothing_when_it_ends(
    parent_meanwhile: Callable[[Member, Turn], object], team: Team, tmp_path: Path
):
    ada, bob = team.open("ada", "bob", busy_timeout_s=5)
    working = ada.send("work", diary=team.diary("ada"), lanes=4)
    os.mkfifo(until := tmp_path / "until")
    ada.ask("fork", until=str(until))

    with closing(Turn(f"{team.database}.turn")) as turn:
        parent_meanwhile(ada, turn)
    bob.ask("work", diary=team.diary("bob"), jobs=5)
    end_child(until)
    bob.ask("add", job="last")

    if ada.process.poll() is None:
        ada.ask("stop_working")
        assert ada.answer(working).error in (None, "Closed")
        ada.ask("close")
    bob.ask("close")
    assert len([row for row in team.reckon() if row.actor == "bob"]) == 16
    assert sorted(file.name for file in tmp_path.glob("work.db*")) == ["work.db", "work.db.turn"]
