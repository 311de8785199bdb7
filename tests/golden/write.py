"""Writes the golden files of new shapes: python -m tests.golden.write --new

What is there already is never written again: it says how somebody's log looks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from coordinator.commands import AnyCommand
from coordinator.receipts import fingerprint
from events.codec import chain, encode, type_of
from events.union import AnyEvent
from tests.golden.samples import COMMANDS, EVENTS

GOLDEN = Path(__file__).parent
PREVIOUS = bytes(range(32))


def main() -> int:
    if sys.argv[1:] != ["--new"]:
        print(__doc__)
        return 2
    for name in write_new(GOLDEN):
        print("new:", name)
    return 0


def write_new(
    folder: Path, events: Mapping[str, AnyEvent] = EVENTS, commands: Mapping[str, AnyCommand] = COMMANDS
) -> list[str]:
    """Add what is missing; returns the names of what was added."""
    (folder / "events").mkdir(exist_ok=True)
    added: list[str] = []
    for name, event in events.items():
        file = folder / "events" / f"{name}.json"
        if not file.exists():
            file.write_text(_json(golden_event(event, alone=name.endswith(".least"))), encoding="utf-8")
            added.append(f"events/{name}")
    file = folder / "fingerprints.json"
    known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    missing = {name: golden_command(command) for name, command in commands.items() if name not in known}
    if missing:
        file.write_text(_json({**known, **missing}), encoding="utf-8")
        added += [f"fingerprints/{name}" for name in missing]
    return added


def golden_event(event: AnyEvent, *, alone: bool) -> dict[str, Any]:
    """The event as a row of the log, and what it must be read as. `alone`: with no more columns than it needs."""
    columns: dict[str, Any] = {
        "position": 1 if alone else 70_001,
        "at": 1_767_225_600_000_000,
        "stream": event.stream,
        "type": type_of(event),
        "actor": None if alone else "ada",
        "origin": None if alone else "host/4711/2026-01-01T00:00:00Z",
        "context": None if alone else "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "receipt": None if alone else "run-7/src%2Fparser.py/claim",
        "fingerprint": None if alone else bytes(range(32, 64)).hex(),
        "command": 1 if alone else 70_001,
        "body": encode(event),
    }
    digest = chain(PREVIOUS, tuple_of(columns))
    return {"fields": described(event), "columns": columns, "previous": PREVIOUS.hex(), "digest": digest.hex()}


def golden_command(command: AnyCommand) -> dict[str, Any]:
    return {"command": msgspec.json.encode(command).decode(), "fingerprint": fingerprint(command).hex()}


def described(event: AnyEvent) -> dict[str, Any]:
    """The fields of an event in words of JSON; a payload as its text, and left out where it is not set."""
    values = msgspec.structs.asdict(event)
    return {name: _plain(value) for name, value in values.items() if value is not msgspec.UNSET}


def tuple_of(columns: Mapping[str, Any]) -> Any:
    """The columns as the chain takes them."""
    fingerprint = columns["fingerprint"]
    return tuple({**columns, "fingerprint": None if fingerprint is None else bytes.fromhex(fingerprint)}.values())


def _plain(value: Any) -> Any:
    if isinstance(value, Raw):
        return bytes(value).decode()
    return list(msgspec.to_builtins(value)) if isinstance(value, tuple) else value


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
