"""Play it: `python -m examples.reorder`.

Ends with 0 if the ordering system has exactly one order for each operation, whatever befell it; else with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable
from functools import partial
from pathlib import Path

from examples.reorder import kills
from examples.reorder.report import Verdict, judge, story_lines
from examples.reorder.stage import BridgeGone, OffScript, Stage
from examples.reorder.stories import STORIES

_MOST_KILLS = 99


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.reorder", description="Plays what can befall an order.")
    parser.add_argument("--kills", type=int, default=20, metavar="N", help=f"how many, up to {_MOST_KILLS}")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="for the moments of the kills")
    parser.add_argument("--keep", action="store_true", help="keep the workspace and the ordering system")
    options = parser.parse_args()
    if not 0 <= options.kills <= _MOST_KILLS:
        parser.error(f"--kills must be 0 to {_MOST_KILLS}")
    folder = Path(tempfile.mkdtemp(prefix="reorder-"))
    try:
        return asyncio.run(play(folder, options.kills, options.seed))
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


async def play(folder: Path, number: int, seed: int) -> int:
    began = time.monotonic()
    say = partial(print, flush=True)
    stage = Stage(folder)
    scenarios: dict[str, list[str]] = {}
    failed: list[Verdict] = []
    for story in STORIES:
        scenarios[story.title] = [story.operation]
        stage.rehearse_nothing()
        failed += await _failures(story.title, story.play(stage, story.operation))
        say(*story_lines(story, stage), sep="\n")
    if number:
        title = f"The runner is killed at {number} random moments"
        drawn = kills.draw(number, seed)
        scenarios["Undisturbed, to see how long it takes"] = kills.undisturbed()
        scenarios[title] = [kill.operation for kill in drawn]
        stage.rehearse(pause_s=kills.PAUSE_S)
        say("", f"{title} (--seed {seed})", kills.SHOWS, "", sep="\n")
        failed += await _failures(title, kills.play(stage, drawn, say))
    verdicts = [*judge(stage, scenarios), *failed]
    say("", *verdicts, "", f"{time.monotonic() - began:.0f} s in all", sep="\n")
    if all(verdict.held for verdict in verdicts):
        return 0
    say("", "What the bridges said besides:", stage.complaints.read_text(), sep="\n")
    return 1


async def _failures(title: str, played: Awaitable[None]) -> list[Verdict]:
    """What did not go as it must; whatever comes after it is played all the same."""
    try:
        await played
    except (OffScript, BridgeGone) as error:
        return [Verdict(False, f"{title}: {error!r}")]
    except ExceptionGroup as group:
        if (others := group.split((OffScript, BridgeGone))[1]) is not None:
            raise others from None
        return [Verdict(False, f"{title}: {error!r}") for error in group.exceptions]
    return []


if __name__ == "__main__":
    sys.exit(main())
