"""Every shape that was ever stored stays readable, and every fingerprint keeps its value.

The golden files say how logs look that exist somewhere. They are added to, and never changed: where one of these tests
fails, it is the code that must give way. For a new shape see `tests/golden/samples.py`, then run
`python -m tests.golden.write --new`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator import commands
from coordinator.commands import AnyCommand, Command, Shown
from coordinator.receipts import fingerprint
from events import codec
from events.base import Event
from events.codec import chain, decode, encode
from events.union import AnyEvent
from tests.golden.samples import COMMANDS, EVENTS
from tests.golden.write import GOLDEN, described, golden_command, golden_event, tuple_of, write_new

GOLDEN_EVENTS: dict[str, Any] = {
    file.stem: json.loads(file.read_text()) for file in sorted((GOLDEN / "events").glob("*.json"))
}
GOLDEN_COMMANDS: dict[str, Any] = json.loads((GOLDEN / "fingerprints.json").read_text())

every_event = pytest.mark.parametrize("golden", GOLDEN_EVENTS.values(), ids=GOLDEN_EVENTS)
every_command = pytest.mark.parametrize("golden", GOLDEN_COMMANDS.values(), ids=GOLDEN_COMMANDS)


def fields_of(struct: type[msgspec.Struct]) -> dict[str, bool]:
    """The names of a struct's fields in JSON, and whether each must be given."""
    return {field.encode_name: field.required for field in msgspec.structs.fields(struct)}


def shapes(bodies: list[str], tag: str) -> list[set[str]]:
    """Which fields are set in those of the bodies that have this tag."""
    decoded = [json.loads(body) for body in bodies]
    return [body.keys() - {"type"} for body in decoded if body["type"] == tag]


# Events


@every_event
def test_a_stored_body_is_read_as_the_event_that_was_written(golden: Any) -> None:
    event = decode(golden["columns"]["body"])

    # A field that was added since then has its default, so that it is not set in this body.
    known = {name: value for name, value in described(event).items() if name in golden["fields"]}
    assert known == golden["fields"]
    assert (codec.type_of(event), event.stream) == (golden["columns"]["type"], golden["columns"]["stream"])


@every_event
def test_an_event_that_was_read_is_written_as_the_same_text(golden: Any) -> None:
    body = golden["columns"]["body"]

    assert encode(decode(body)) == body
    assert decode(encode(decode(body))) == decode(body)


@every_event
def test_the_chain_of_digests_keeps_its_value(golden: Any) -> None:
    digest = chain(bytes.fromhex(golden["previous"]), tuple_of(golden["columns"]))

    assert digest.hex() == golden["digest"]


@every_event
def test_the_chain_of_digests_can_be_computed_by_anybody_who_knows_messagepack(golden: Any) -> None:
    text = messagepack((bytes.fromhex(golden["previous"]), *tuple_of(golden["columns"])))

    assert sha256(text).hexdigest() == golden["digest"]


@pytest.mark.parametrize("event", AnyEvent.__args__, ids=lambda event: event.__name__)  # pyright: ignore
def test_every_event_has_a_golden_file_with_all_of_its_fields_and_one_with_none_too_many(event: type[Event]) -> None:
    fields = fields_of(event)

    found = shapes([golden["columns"]["body"] for golden in GOLDEN_EVENTS.values()], codec.TAGS[event])  # pyright: ignore

    assert set(fields) in found, "this shape has no golden file yet: add a sample and write it"
    assert {name for name, required in fields.items() if required} in found


@pytest.mark.parametrize("name", EVENTS)
def test_the_sample_of_an_event_is_what_its_golden_file_says(name: str) -> None:
    assert name in GOLDEN_EVENTS, "write it with: python -m tests.golden.write --new"

    body = GOLDEN_EVENTS[name]["columns"]["body"]
    assert encode(EVENTS[name]) == body, "a golden file never changes: give the new shape a name of its own"


def test_the_tags_of_all_events_are_their_own() -> None:
    assert len(set(codec.TAGS.values())) == len(codec.TAGS)


# Commands


@every_command
def test_the_fingerprint_of_a_command_keeps_its_value(golden: Any) -> None:
    command = msgspec.json.decode(golden["command"], type=AnyCommand)

    assert fingerprint(command).hex() == golden["fingerprint"]


@every_command
def test_a_fingerprint_can_be_computed_by_anybody_who_has_the_commands_json(golden: Any) -> None:
    text = json.dumps(json.loads(golden["command"]), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert sha256(text.encode()).hexdigest() == golden["fingerprint"]


def test_no_two_of_these_commands_have_the_same_fingerprint() -> None:
    fingerprints = {golden["fingerprint"] for golden in GOLDEN_COMMANDS.values()}

    assert len(fingerprints) == len(GOLDEN_COMMANDS)


@pytest.mark.parametrize("command", AnyCommand.__args__, ids=lambda command: command.__name__)  # pyright: ignore
def test_every_command_has_a_golden_fingerprint_with_all_of_its_fields_and_one_with_none_too_many(
    command: type[Command],
) -> None:
    fields = fields_of(command)

    found = shapes([golden["command"] for golden in GOLDEN_COMMANDS.values()], commands.TAGS[command])  # pyright: ignore

    assert set(fields) in found, "this shape has no golden fingerprint yet: add a sample and write it"
    assert {name for name, required in fields.items() if required} in found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_sample_of_a_command_is_what_its_golden_fingerprint_says(name: str) -> None:
    assert name in GOLDEN_COMMANDS, "write it with: python -m tests.golden.write --new"

    assert golden_command(COMMANDS[name]) == GOLDEN_COMMANDS[name]


@pytest.mark.parametrize(
    "command",
    [*AnyCommand.__args__, Shown],  # pyright: ignore[reportAttributeAccessIssue]
    ids=lambda command: command.__name__,
)
def test_a_commands_default_is_one_that_is_left_out_by_identity(command: type[msgspec.Struct]) -> None:
    """msgspec leaves out a default only if the value is the very same object, which a computed 60 or "other" is not."""
    singletons = (None, (), False, msgspec.UNSET)

    for field in msgspec.structs.fields(command):
        assert field.default_factory is msgspec.NODEFAULT
        assert field.required or any(field.default is singleton for singleton in singletons), field.name


def test_a_default_that_was_computed_is_left_out_of_the_fingerprint_too() -> None:
    nothing: list[str] = []
    spelled_out = msgspec.structs.replace(
        COMMANDS["add_job.least"], paths=tuple(nothing), depends_on=tuple(nothing), shown=None
    )

    assert fingerprint(spelled_out) == fingerprint(COMMANDS["add_job.least"])


# Writing them


def test_writing_new_ones_gives_what_is_there_and_writing_again_adds_nothing(tmp_path: Path) -> None:
    write_new(tmp_path)

    assert write_new(tmp_path) == []
    for name in EVENTS:
        written = (tmp_path / "events" / f"{name}.json").read_text()
        assert written == (GOLDEN / "events" / f"{name}.json").read_text()
    assert json.loads((tmp_path / "fingerprints.json").read_text()) == {
        name: GOLDEN_COMMANDS[name] for name in COMMANDS
    }


def test_writing_new_ones_leaves_those_that_are_there_as_they_are(tmp_path: Path) -> None:
    write_new(tmp_path)
    event = tmp_path / "events" / "job.added.json"
    event.write_text("an older truth")
    older = {"add_job": {"command": "…", "fingerprint": "…"}, "of_long_ago": {"command": "…", "fingerprint": "…"}}
    (tmp_path / "fingerprints.json").write_text(json.dumps(older))
    (tmp_path / "events" / "job.noted.json").unlink()

    added = write_new(tmp_path)

    assert added == ["events/job.noted", *[f"fingerprints/{name}" for name in COMMANDS if name != "add_job"]]
    assert event.read_text() == "an older truth"
    kept = json.loads((tmp_path / "fingerprints.json").read_text())
    assert {name: kept[name] for name in older} == older
    assert golden_event(EVENTS["job.noted"], alone=False) == GOLDEN_EVENTS["job.noted"]


def messagepack(value: Any) -> bytes:
    """What the chain needs of MessagePack, each in its shortest form."""
    match value:
        case None:
            return b"\xc0"
        case int() if value < 0x80:
            return value.to_bytes(1, "big")
        case int():
            size = next(size for size in (1, 2, 4, 8) if value < 1 << 8 * size)
            return bytes([0xCC + (1, 2, 4, 8).index(size)]) + value.to_bytes(size, "big")
        case str():
            data = value.encode()
            short = bytes([0xA0 + len(data)]) if len(data) < 32 else None
            return (short or _sized(len(data), 0xD9)) + data
        case bytes():
            return _sized(len(value), 0xC4) + value
        case tuple():
            return bytes([0x90 + len(value)]) + b"".join(map(messagepack, value))
    raise TypeError(type(value))


def _sized(length: int, first: int) -> bytes:
    size = next(size for size in (1, 2, 4) if length < 1 << 8 * size)
    return bytes([first + (1, 2, 4).index(size)]) + length.to_bytes(size, "big")
