"""What is no command at all: refused naming the argument, before anything is asked of the store.

Each row is a call with one bad argument. `FIELDS` says which arguments the methods have and of what kind they are,
`BAD` what is wrong with a value of a kind; every kind of wrong is tried on every argument.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, Struct

from coordinator import (
    Agent,
    BadPath,
    Claim,
    Coordinator,
    CoordinatorError,
    InvalidInput,
    JobRef,
    Kind,
    Message,
    Reader,
    Work,
    receipt_for,
)
from coordinator.testing import memory_coordinator
from tests.public.support import Records, claimed, entries

HUGE = 10**5_000  # Python refuses to write it out
ITSELF: dict[str, Any] = {}
ITSELF["again"] = ITSELF


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"in": value}
    return value


def message(topic: str) -> Message:
    return Message(topic=topic, number=1, sender="ada", position=1, _at=0, _body=Raw(b"{}"))


NOT_TEXT = {"None": None, "int": 7, "bytes": b"ada", "list": ["ada"], "type": str}

NAME = {
    "empty": "",
    "257 bytes": "x" * 257,
    "257 bytes in 129 characters": "é" * 128 + "x",
    "line break": "a\nb",
    "NUL": "a\0b",
    "C1 control": "a\x85b",
    "lone surrogate": "a\ud800",
    **NOT_TEXT,
}
REASON = {
    "empty": "",
    "blank": " \n",
    "1,025 bytes": "x" * 1_025,
    "NUL": "a\0b",
    "escape": "\x1b[2J",
    "lone surrogate": "\udfff",
    **NOT_TEXT,
}
PAYLOAD = {
    "str": "text",
    "list": [1],
    "int": 7,
    "bytes": b"{}",
    "type": dict,
    "object": object(),
    "65 levels": nested(65),
    "contains itself": ITSELF,
    "over 256 KiB": {"text": "x" * (256 * 1024)},
    "65 bits": {"n": 2**63},
    "65 bits below": {"n": [1, -(2**63) - 1]},
    "NaN": {"n": float("nan")},
    "infinite": {"n": {"m": float("-inf")}},
    "NUL": {"text": "a\0b"},
    "NUL in a key": {"a\0b": 1},
    "lone surrogate": {"text": "\ud800"},
    "lone surrogate in a key": {"\ud800": 1},
    "key that is an int": {1: 1},
    "object in it": {"a": [object()]},
}
PATHS = {
    "bare str": "src",
    "bare Path": Path("src"),
    "None": None,
    "int": 7,
    "mapping": {"src": 1},
    "bytes": b"src",
    "None in it": [None],
    "int in it": ["src", 7],
    "empty": [""],
    "absolute": ["/src"],
    "absolute Path": [Path("/src")],
    "drive": ["c:/src"],
    "parent": ["src/../lib"],
    "empty component": ["src//a"],
    "trailing slash": ["src/"],
    "backslash": ["src\\a"],
    "NUL": ["src\0"],
    "line break": ["src\n"],
    "zero width": ["src\u200b"],
    "lone surrogate": ["src\udc80"],
    "star": ["src/*.py"],
    "question mark": ["src/?.py"],
    "4,097 bytes": ["x" * 4_097],
    "too many": [f"src/{number}" for number in range(1_001)],
    "endless": itertools.repeat("src"),
}
DEPENDS_ON = {
    "bare str": "schema",
    "empty str": "",
    "bare job": JobRef(id="schema", state="ready", version=1, position=1),
    "None": None,
    "zero": 0,
    "int": 7,
    "mapping": {"schema": 1},
    "bytes": b"schema",
    "empty id": ["schema", ""],
    "None in it": [None],
    "int in it": [7],
    "long id": ["x" * 257],
    "NUL": ["a\0"],
    "job of an odd id": [JobRef(id="", state="ready", version=1, position=1)],
    "endless": itertools.repeat("schema"),
}
WHOLE = {"None": None, "float": 1.0, "str": "1", "bool": True, "huge": HUGE, "huge below": -HUGE}
PRIORITY = {**WHOLE, "too high": 32_768, "too low": -32_768}
ATTEMPTS = {**WHOLE, "zero": 0, "negative": -1, "too many": 1_000_001}
VERSION = {**{word: value for word, value in WHOLE.items() if word != "None"}, "zero": 0, "65 bits": 2**63}
CHOICE = {"another word": "maybe", "empty": "", **NOT_TEXT}
LEASE = {
    "zero": 0,
    "under a second": 0.999,
    "over a day": 86_400.1,
    "negative": -60,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "huge": HUGE,
    "None": None,
    "str": "60",
    "bool": True,
}
TOKEN = {"None": None, "int": 7, "bytes": b"ab" * 32, "empty": "", "63 digits": "a" * 63, "no digits": "z" * 64}
FILE = {
    "None": None,
    "int": 7,
    "bytes": b"work.db",
    "empty": "",
    "NUL": "work\0.db",
    "lone surrogate": "work\ud800.db",
}
JOB = {
    **NAME,
    "without a version": "other",
    "made of an odd id": JobRef(id="a\0", state="ready", version=1, position=1),
    "made of no id": JobRef(id=7, state="ready", version=1, position=1),  # type: ignore[arg-type]
}
LIMIT = {**WHOLE, "zero": 0, "negative": -1, "too many": 1_001}
PAGE = {
    "None": None,
    "float": 1.0,
    "bool": True,
    "negative": -1,
    "huge": HUGE,
    "65 bits": 2**63,
    "empty str": "",
    "str": "1",
    "no bytes": b"",
    "numbers": [1, 2],
    "set": set[int](),
    "mapping": dict[int, int](),
    "of another topic": (message("other"),),
    "with something else in it": (message("builds"), None),
}


class Parcel(Struct):
    kilos: int


class Nameless(Kind[Parcel]):
    arguments = Parcel

    async def preview(self, arguments: Parcel) -> Any:
        return {}

    async def run(self, arguments: Parcel, work: Work) -> Any:
        return {}


class Weigh(Nameless):
    name = "weigh"


@dataclass
class Handles:
    """What the calls are made on, all of it live."""

    coordinator: Coordinator
    ada: Agent
    claim: Claim
    job: JobRef
    reader: Reader


def without(kind: dict[str, Any], *words: str) -> dict[str, Any]:
    """For arguments that may be left out: there, None is not wrong."""
    return {word: value for word, value in kind.items() if word not in (words or ("None",))}


ADD_JOB = {
    "id": NAME,
    "payload": PAYLOAD,
    "paths": PATHS,
    "depends_on": DEPENDS_ON,
    "priority": PRIORITY,
    "max_attempts": ATTEMPTS,
    "review": CHOICE,
}
REVISE_JOB = {name: kind for name, kind in ADD_JOB.items() if name != "id"}
WRITE = {"receipt": without(NAME), "context": without(NAME)}

# method -> how it is called with one argument changed, and what its arguments are
FIELDS: dict[str, tuple[Callable[..., Any], dict[str, dict[str, Any]]]] = {
    "Agent.add_job": (lambda h, **a: h.ada.add_job(**{"id": "new", **a}), {**ADD_JOB, **WRITE}),
    "Agent.revise_job": (lambda h, **a: h.ada.revise_job(**{"job": h.job, **a}), {"job": JOB, **REVISE_JOB, **WRITE}),
    "Agent.cancel_job": (
        lambda h, **a: h.ada.cancel_job(**{"job": h.job, **a}),
        {"job": JOB, "reason": without(REASON), **WRITE},
    ),
    "Agent.reopen_job": (lambda h, **a: h.ada.reopen_job(**{"job": h.job, **a}), {"job": JOB, **WRITE}),
    "Agent.revoke": (
        lambda h, **a: h.ada.revoke(**{"job": h.job, "reason": "why", **a}),
        {"job": JOB, "reason": REASON, **WRITE},
    ),
    "Agent.accept": (lambda h, **a: h.ada.accept(**{"job": h.job, **a}), {"job": JOB, **WRITE}),
    "Agent.reject": (
        lambda h, **a: h.ada.reject(**{"job": h.job, "reason": "why", **a}),
        {"job": JOB, "reason": REASON, **WRITE},
    ),
    "Agent.claim": (lambda h, **a: h.ada.claim(**{"job": h.job, **a}), {"job": JOB, "lease_s": LEASE, **WRITE}),
    "Agent.claim_next": (
        lambda h, **a: h.ada.claim_next(**a),
        {"wait_s": without(LEASE, "zero", "under a second"), "lease_s": LEASE, **WRITE},
    ),
    "Agent.claims": (lambda h, **a: h.ada.claims(**a), {"lease_s": LEASE, "context": without(NAME)}),
    "Agent.resume": (lambda h, **a: h.ada.resume(**a), {"token": TOKEN}),
    "Agent.recall": (lambda h, **a: h.ada.recall(**a), {"receipt": NAME}),
    "Agent.preview": (
        lambda h, **a: h.ada.preview(**{"kind": "weigh", "arguments": {"kilos": 3}, **a}),
        {
            "kind": {**NAME, "not registered": "other"},
            "arguments": {**PAYLOAD, "None": None, "lacks a field": {}, "wrong type": {"kilos": "three"}},
            "operation_id": without(NAME),
        },
    ),
    "Agent.apply": (
        lambda h, **a: h.ada.apply(
            **{"operation_id": "new", "kind": "weigh", "arguments": {"kilos": 3}, "grant": "grant", **a}
        ),
        {
            "preview": {"str": "preview", "mapping": {}},
            "operation_id": NAME,
            "kind": NAME,
            "arguments": PAYLOAD,
            "grant": NOT_TEXT,
            **WRITE,
        },
    ),
    "Agent.operation": (lambda h, **a: h.ada.operation(**a), {"id": NAME}),
    "Coordinator.register": (
        lambda h, **a: h.coordinator.register(**a),
        {"kind": {"None": None, "class": Weigh, "str": "weigh", "without a name": Nameless()}},
    ),
    "Claim.renew": (lambda h, **a: h.claim.renew(**a), {"lease_s": without(LEASE), **WRITE}),
    "Claim.note": (lambda h, **a: h.claim.note(**{"note": {}, **a}), {"note": PAYLOAD, **WRITE}),
    "Claim.reserve": (lambda h, **a: h.claim.reserve(**{"paths": ["docs"], **a}), {"paths": PATHS, **WRITE}),
    "Claim.submit": (lambda h, **a: h.claim.submit(**a), {"result": PAYLOAD, **WRITE}),
    "Claim.fail": (lambda h, **a: h.claim.fail(**{"reason": "why", **a}), {"reason": REASON, **WRITE}),
    "Claim.release": (lambda h, **a: h.claim.release(**a), {"reason": without(REASON), **WRITE}),
    "Claim.add_job": (lambda h, **a: h.claim.add_job(**{"id": "new", **a}), {**ADD_JOB, **WRITE}),
    "Claim.working": (
        lambda h, **a: h.claim.working(**a),
        {
            "limit_s": {**without(LEASE, "None", "under a second", "over a day"), "a century": 3_200_000_000},
            "on_cancel": CHOICE,
        },
    ),
    "Agent.send": (
        lambda h, **a: h.ada.send(**{"topic": "builds", "body": {}, **a}),
        {"topic": NAME, "body": PAYLOAD, **WRITE},
    ),
    "Claim.send": (
        lambda h, **a: h.claim.send(**{"topic": "builds", "body": {}, **a}),
        {"topic": NAME, "body": PAYLOAD, **WRITE},
    ),
    "Agent.reader": (
        lambda h, **a: h.ada.reader(**{"topic": "builds", **a}),
        {"topic": NAME, "name": without(NAME), **WRITE},
    ),
    "Reader.read": (lambda h, **a: h.reader.read(**a), {"limit": LIMIT, **WRITE}),
    "Reader.pages": (lambda h, **a: h.reader.pages(**a), {"limit": LIMIT}),
    "Reader.acknowledge": (lambda h, **a: h.reader.acknowledge(**{"page": 1, **a}), {"page": PAGE, **WRITE}),
    "Coordinator.topics": (lambda h: h.coordinator.topics(), {}),
    "Coordinator.readers": (lambda h, **a: h.coordinator.readers(**a), {"topic": NAME}),
    "Coordinator.agent": (lambda h, **a: h.coordinator.agent(**a), {"name": NAME}),
    "Coordinator.job": (lambda h, **a: h.coordinator.job(**a), {"job": NAME}),
    "Coordinator.jobs": (
        lambda h, **a: h.coordinator.jobs(*([a["states"]] if "states" in a else []), limit=a.get("limit", 1)),
        {"states": CHOICE, "limit": {**WHOLE, "zero": 0}},
    ),
    "Coordinator.reservations": (
        lambda h, **a: h.coordinator.reservations(**a),
        {
            "path": {
                **{word: paths[0] for word, paths in PATHS.items() if isinstance(paths, list) and len(paths) == 1},
                "int": 7,
                "bytes": b"src",
                "list": ["src"],
            }
        },
    ),
    "Coordinator.who": (
        lambda h, **a: h.coordinator.who(**a),
        {
            "path": {
                **{word: paths[0] for word, paths in PATHS.items() if isinstance(paths, list) and len(paths) == 1},
                "int": 7,
                "bytes": b"src",
                "list": ["src"],
            }
        },
    ),
    "Coordinator.why": (lambda h, **a: h.coordinator.why(**a), {"job": NAME}),
    "Coordinator.explain": (
        lambda h, **a: h.coordinator.explain(**a),
        {"position": {**WHOLE, "zero": 0, "negative": -1, "behind the end": 1_000_000}},
    ),
    "Coordinator.diff": (
        lambda h, **a: h.coordinator.diff(**{"before": 1, "after": 1, **a}),
        {name: {**WHOLE, "negative": -1, "naive": datetime(2026, 1, 1)} for name in ("before", "after")},  # noqa: DTZ001
    ),
    "Coordinator.log": (
        lambda h, **a: h.coordinator.log(**a),
        {"after": {**WHOLE, "negative": -1}, "job": without(NAME)},
    ),
    "Coordinator.follow": (
        lambda h, **a: h.coordinator.follow(**a),
        {"after": {**WHOLE, "negative": -1}, "job": without(NAME)},
    ),
    "Coordinator.at": (
        lambda h, **a: h.coordinator.at(**a),
        {"position_or_time": {**WHOLE, "negative": -1, "naive": datetime(2026, 1, 1)}},  # noqa: DTZ001
    ),
    "Coordinator.wait_for_job": (
        lambda h, **a: h.coordinator.wait_for_job(a.get("job", "other"), *([a["states"]] if "states" in a else [])),
        {"job": NAME, "states": CHOICE},
    ),
    "Coordinator.back_up": (lambda h, **a: h.coordinator.back_up(**a), {"target": FILE}),
    "Coordinator.open": (
        lambda h, **a: Coordinator.open(**{"path_or_url": "memory:", **a}),
        {
            "path_or_url": {
                **FILE,
                "unknown engine": "mysql://host/base",
                "unknown scheme": "redis:",
                "unknown scheme without slashes": "postgres:base",
                "memory with something behind it": "memory:data:",
                "unknown scheme in capitals": "POSTGRES:base",
                "SQLite's own URL": "file:work.db",
                "memory with a name": "memory:work",
                "SQLite's own memory": ":memory:",
                "SQLite's own memory in a URL": "sqlite:///:memory:",
                "URL of nothing": "sqlite:",
                "URL of nothing with slashes": "sqlite://",
                "URL with a NUL": "sqlite:%00",
                "URL with a NUL in the middle": "sqlite:work%00.db",
                "URL with a query": "sqlite:work.db?mode=ro",
                "URL with a fragment": "sqlite:work.db#1",
            },
            "busy_timeout_s": {**without(LEASE, "zero", "under a second", "over a day"), "over an hour": 3_601},
        },
    ),
}
del FIELDS["Coordinator.reservations"][1]["path"]["None in it"]  # None means all


def arguments() -> list[Any]:
    found: list[Any] = []
    for method, (call, fields) in FIELDS.items():
        found += [pytest.param(call, name, kind, id=f"{method}-{name}") for name, kind in fields.items()]
        if fields.get("job") is JOB:
            of_an_id = partial(call, job="other")
            found.append(pytest.param(of_an_id, "version", VERSION, id=f"{method}-version"))
    return found


@pytest.fixture
async def handles(coordinator: Coordinator, ada: Agent) -> AsyncIterator[Handles]:
    coordinator.register(Weigh())
    async with ada.reader("builds") as reader:
        yield Handles(coordinator, ada, await claimed(ada), await ada.add_job("other"), reader)


@pytest.mark.parametrize(("call", "name", "kind"), arguments())
async def test_a_bad_argument_is_refused_by_its_name_and_nothing_is_written(
    call: Callable[..., Any], name: str, kind: dict[str, Any], handles: Handles, records: Records
):
    before, told = len(await entries(handles.coordinator)), len(records.all)

    wrong = {word: complaint for word, value in kind.items() if (complaint := await judge(call, handles, name, value))}

    assert wrong == {}
    assert len(await entries(handles.coordinator)) == before
    assert len(records.all) == told
    assert (await handles.claim.note({})) == before + 1  # and everything still works


async def judge(call: Callable[..., Any], handles: Handles, name: str, value: Any) -> str:
    """What is wrong with how a bad value is refused."""
    try:
        answer = call(handles, **{name: value})
        if isinstance(answer, Awaitable):
            answer = await answer
    except InvalidInput as refused:
        expected = "version" if value == "other" and name == "job" else name
        if not re.match(rf"{expected}([.\[]|$)", refused.field):
            return f"names {refused.field}"
        said = str(refused)
        if not said.startswith(refused.field + ": ") or len(said) > 500:
            return f"says {said}"
        return "" if isinstance(refused, ValueError) and isinstance(refused, CoordinatorError) else "is of another type"
    except Exception as error:
        return f"raises {error!r:.200}"
    return f"is accepted: {answer!r:.200}"


def test_every_method_that_takes_something_is_in_the_table():
    public = {
        f"{kind.__name__}.{name}"
        for kind in (Agent, Claim, Reader, Coordinator)
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name))
    }

    assert public - set(FIELDS) == {"Coordinator.close"}


# What the messages say


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"tables": [1, 2, 3, float("nan")]}, "payload.tables[3]"),
        ({"a": {"b c": 2**64}}, "payload.a['b c']"),
        ({"a": {"b": object()}}, "payload.a.b"),
    ],
)
async def test_what_is_wrong_deep_in_a_payload_is_named_by_the_way_there(payload: Any, field: str, ada: Agent):
    with pytest.raises(InvalidInput) as refused:
        await ada.add_job("parser", payload)

    assert refused.value.field == field


async def test_a_bad_path_is_named_by_its_place_with_a_hint(ada: Agent):
    with pytest.raises(BadPath, match="reserve the folder") as refused:
        await ada.add_job("parser", paths=["docs", "src/*.py"])

    assert (refused.value.field, refused.value.code) == ("paths[1]", "bad_path")


async def test_a_bare_str_is_answered_with_what_to_pass(ada: Agent):
    with pytest.raises(InvalidInput, match=r"pass a list: paths=\[…\]"):
        await ada.add_job("parser", paths="src")
    with pytest.raises(InvalidInput, match=r"pass a list: depends_on=\[…\]"):
        await ada.add_job("parser", depends_on="schema")


async def test_a_list_of_states_is_answered_with_what_to_pass(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    with pytest.raises(InvalidInput, match=r'one by one: wait_for_job\(id, "accepted", "failed"\)'):
        await coordinator.wait_for_job("parser", ["accepted"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match=r'one by one: jobs\("accepted", "failed"\)'):
        await coordinator.jobs(("accepted", "failed"))  # pyright: ignore[reportArgumentType]


async def test_a_single_message_is_answered_with_what_to_acknowledge(ada: Agent):
    async with ada.reader("builds") as reader:
        with pytest.raises(InvalidInput, match=r"not Message \(pass message\.number, or page\[:n\]\)"):
            await reader.acknowledge(message("builds"))  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match=r"page\[1\]: must be a Message, not dict"):
            await reader.acknowledge([message("builds"), {}])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (5, "must be a path, not int"),
        (b"work.db", "must be a path, not bytes (os.fsdecode makes text of it)"),
        ("", "is empty"),
        (
            ":memory:",
            '":memory:" would be a file of that name (write memory: for a workspace in memory, ./:memory: for',
        ),
    ],
)
def test_what_is_no_path_is_told_what_it_is(path: Any, said: str):
    with pytest.raises(InvalidInput) as refused:
        Coordinator.open(path)

    assert str(refused.value).startswith(f"path_or_url: {said}")


async def test_an_id_without_the_version_that_was_seen_is_answered_with_what_to_pass(ada: Agent):
    await ada.add_job("parser")

    with pytest.raises(InvalidInput, match="pass the job as you read it, or its version") as refused:
        await ada.claim("parser")

    assert refused.value.field == "version"


async def test_a_bad_token_is_not_repeated_in_the_message(ada: Agent):
    token = (await claimed(ada)).token.reveal()

    with pytest.raises(InvalidInput) as refused:
        await ada.resume(token[:-1] + "g")

    assert token[:16] not in str(refused.value)


def test_a_receipt_is_made_of_names():
    assert receipt_for("run", "job", "claim") == "run/job/claim"
    for bad in ("", "a\0", 7, None):
        with pytest.raises(InvalidInput) as refused:
            receipt_for("run", bad)  # type: ignore[arg-type]
        assert refused.value.field == "parts[1]"


# What is just good enough


async def test_the_largest_values_are_accepted(coordinator: Coordinator, ada: Agent):
    id, receipt = "é" * 128, "x" * 256
    payload = {"text": "x" * (256 * 1024 - len('{"text":""}')), "in": {}}
    del payload["in"]

    await ada.add_job(
        id,
        payload,
        paths=["x" * 4_096],
        priority=32_767,
        max_attempts=1_000_000,
        receipt=receipt,
        context="y" * 256,
    )
    await ada.add_job("deep", nested(64), priority=-32_767, max_attempts=1)
    claim = await ada.claim(id, version=1, lease_s=86_400)
    await claim.renew(1)
    await claim.fail("z" * 1_024)

    assert (await coordinator.job(id)).payload == payload
    assert (await coordinator.job("deep")).payload == nested(64)


async def test_a_coordinator_that_is_not_asked_to_wait_does_not_wait():
    async with memory_coordinator() as coordinator, Coordinator.open("memory:", busy_timeout_s=0) as other:
        await coordinator.agent("ada").add_job("parser")
        await other.agent("ada").add_job("parser")
