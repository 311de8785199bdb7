"""`python -m examples.reorder` as people run it, and its verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from coordinator import Coordinator
from examples.reorder import kills, orders
from examples.reorder.plan import Line, Plan
from examples.reorder.report import judge
from examples.reorder.stage import Stage
from examples.reorder.warehouse import opened
from tests.examples.support import ROOT

TIMEOUT_S = 240
PLAN = Plan(supplier="north", weeks=4, lines=(Line(product=1, packs=1, units=1, cents=1),))


def test_every_operation_of_the_play_orders_once_whatever_befalls_it() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "examples.reorder", "--kills", "3", "--seed", "1"],
        cwd=ROOT,
        timeout=TIMEOUT_S,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "ok      The runner is killed at 3 random moments: 3 operations, 3 orders\n" in ended.stdout
    assert "ok      Orders in all: 11, of 11 operations\n" in ended.stdout
    assert "FAILED" not in ended.stdout
    assert "apply_operation was refused: reconcile first" in ended.stdout
    assert "attempt 1 was interrupted: nobody renewed it" in ended.stdout


@pytest.fixture
async def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    async with Coordinator.open(stage.workspace) as coordinator:
        await coordinator.agent("ada").send("news", {})
    return stage


@pytest.mark.parametrize(("there", "held"), [
    ([], False),
    (["a"], True),
    (["a", "b"], False),
])  # fmt: skip
async def test_the_verdict_is_bad_if_an_order_is_missing_or_nobody_asked_for_it(
    stage: Stage, there: list[str], held: bool
) -> None:
    with opened(stage.warehouse) as connection:
        for operation in there:
            orders.place(connection, PLAN, operation=operation, attempt=1, fence=1)

    verdicts = list(judge(stage, {"Once": ["a"]}))

    assert all(verdict.held for verdict in verdicts) is held


async def test_the_verdict_names_what_is_wrong(stage: Stage) -> None:
    first, *_ = judge(stage, {"Once": ["a"]})

    assert str(first) == "FAILED  Once: 1 operations, 0 orders; a has 0"


def test_the_moments_of_the_kills_are_spread_and_follow_from_the_seed() -> None:
    drawn = kills.draw(20, seed=3)

    assert drawn == kills.draw(20, seed=3) != kills.draw(20, seed=4)
    assert sorted(int(kill.share * 20) for kill in drawn) == list(range(20))
