"""What is printed: each story from the log, and at the end how many orders there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coordinator.surfaces.demo.workspace import read_workspace
from coordinator.timelines import timeline
from events.operations import OperationProgressed, OperationRenewed
from events.streams import operation_stream
from examples.reorder.stage import Stage
from examples.reorder.stories import Story


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something is as it must be."""

    held: bool
    sentence: str

    def __str__(self) -> str:
        return ("ok      " if self.held else "FAILED  ") + self.sentence


def story_lines(story: Story, stage: Stage) -> Iterator[str]:
    yield from ("", story.title, story.shows, "")
    envelopes = [
        envelope
        for envelope in read_workspace(stage.workspace).envelopes
        if envelope.event.stream == operation_stream(story.operation)
        and not isinstance(envelope.event, OperationRenewed | OperationProgressed)
    ]
    for line in timeline(envelopes):
        at = f"{line.at.astimezone():%H:%M:%S.%f}"[:-3]
        yield f"  {line.position:3}  {at}  {line.actor or '–':<3}  {line.sentence}"
    order = stage.order(story.operation)
    yield "  In the ordering system: " + ("no order" if order is None else f"draft order {order.number}")


def judge(stage: Stage, scenarios: dict[str, list[str]]) -> Iterator[Verdict]:
    """One order for each operation of each scenario, none beside these, and a sound log."""
    for title, operations in scenarios.items():
        counted = {operation: stage.count_orders(operation) for operation in operations}
        wrong = [f"{operation} has {count}" for operation, count in counted.items() if count != 1]
        held = f"{title}: {len(operations)} operations, {sum(counted.values())} orders"
        yield Verdict(not wrong, "; ".join([held, *wrong]).replace("1 operations, 1 orders", "1 operation, 1 order"))
    expected, found = sum(map(len, scenarios.values())), stage.count_orders()
    yield Verdict(found == expected, f"Orders in all: {found}, of {expected} operations")
    log = read_workspace(stage.workspace)
    sound = log.broken_at is None and not log.differences
    yield Verdict(sound, f"The log, {len(log.envelopes)} events: its digests and {log.rows} rows follow from it")
