"""Payloads: one JSON text for equal content, and a refusal that names the way in for what JSON cannot hold."""

from __future__ import annotations

import json
import math
from collections import ChainMap, OrderedDict, UserDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator import payloads
from coordinator.errors import InvalidInput
from coordinator.tokens import Token

GOOD_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    GOOD_TEXT,
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(GOOD_TEXT, inner, max_size=4))
)
OBJECTS = st.dictionaries(GOOD_TEXT, VALUES, max_size=5)


@dataclass
class Point:
    y: int
    x: int = 0
    inner: Any = None


class Shape(msgspec.Struct, tag="shape", omit_defaults=True, kw_only=True):
    name: str
    sides: int = 4
    content: Any = None
    as_written: int = msgspec.field(default=0, name="asWritten")


class Row(TypedDict):
    id: int


class Pair(NamedTuple):
    a: int
    b: int


class Model:
    """Looks like a pydantic model."""

    def __init__(self, **content: Any) -> None:
        self.content = content

    def model_dump(self, *, mode: str = "python", exclude: Any = None) -> dict[str, Any]:
        return {"mode": mode, **self.content}

    @classmethod
    def model_validate(cls, content: Mapping[str, Any]) -> Model:
        if "wrong" in content:
            raise ValueError("wrong is not allowed")
        return cls(**content)


class OldModel:
    def model_dump(self) -> dict[str, Any]:
        return {"old": True}


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


class Ratio(float):
    __slots__ = ()


def shuffled(value: Any) -> Any:
    """The same content, keys the other way round, tuples for lists."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return tuple(map(shuffled, value)) if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


# What goes in


@given(OBJECTS)
def test_what_json_can_hold_is_stored_whole(value: dict[str, Any]):
    stored = payloads.encode("payload", value)

    assert payloads.decode(stored) == json.loads(stored) == value


@given(OBJECTS)
def test_equal_payloads_have_equal_bytes_however_they_were_built(value: dict[str, Any]):
    stored = payloads.encode("payload", value)

    assert payloads.encode("payload", shuffled(value)) == stored
    assert payloads.encode("payload", UserDict(value)) == stored
    assert payloads.encode("payload", payloads.decode(stored)) == stored


@given(OBJECTS)
def test_the_long_way_stores_the_same_bytes_as_the_fast_way(value: dict[str, Any]):
    assert payloads.encode("payload", MappingProxyType(value)) == payloads.encode("payload", value)


def test_keys_are_sorted_at_every_level():
    stored = payloads.encode("payload", {"b": [{"z": 1, "y": 2}], "a": {"d": None, "c": True}})

    assert stored == b'{"a":{"c":true,"d":null},"b":[{"y":2,"z":1}]}'


def test_no_payload_is_an_empty_object():
    assert payloads.encode("payload", None) == b"{}"
    assert payloads.encode("payload", {}) == b"{}"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (OrderedDict([("a", 1)]), b'{"a":1}'),
        (defaultdict(int, a=1), b'{"a":1}'),
        (MappingProxyType({"a": 1}), b'{"a":1}'),
        (ChainMap({"a": 1}, {"a": 2, "b": 3}), b'{"a":1,"b":3}'),
        (UserDict(a=UserDict(b=MappingProxyType({"c": 1}))), b'{"a":{"b":{"c":1}}}'),
        (Point(1), b'{"inner":null,"x":0,"y":1}'),
        (Point(1, inner=Point(2, inner=UserDict(a=Model(b=1)))), None),
        (Shape(name="s", as_written=7), b'{"asWritten":7,"name":"s","type":"shape"}'),
        (Shape(name="s", content=UserDict(a=Point(1))), None),
        (Model(a=1), b'{"a":1,"mode":"json"}'),
        (OldModel(), b'{"old":true}'),
        ({"a": Model(b=OldModel())}, b'{"a":{"b":{"old":true},"mode":"json"}}'),
        (Row(id=3), b'{"id":3}'),
        ({Word.YES: 1, Text("b"): Text("c")}, b'{"b":"c","yes":1}'),
    ],
)
def test_mappings_dataclasses_structs_and_models_go_in_nested_too(value: Any, stored: bytes | None):
    encoded = payloads.encode("payload", value)

    assert stored in (None, encoded)
    assert isinstance(payloads.decode(encoded), dict)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006Z"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(seconds=90), "PT90S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        (b"\x00\xff", "AP8="),
        (Colour.RED, "red"),
        (Word.YES, "yes"),
        (Level.HIGH, 3),
        (Ratio(0.5), 0.5),
        ((1, 2), [1, 2]),
        (Pair(1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"b", 1, None}, ["b", 1, None]),
        ("\\u0000 written out", "\\u0000 written out"),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (-0.0, -0.0),
    ],
)
def test_values_that_json_lacks_are_stored_as_msgspec_writes_them(value: Any, stored: Any):
    encoded = payloads.encode("payload", {"value": [value]})

    assert payloads.decode(encoded) == {"value": [stored]}


# What is refused, and where it stands


@pytest.mark.parametrize(
    ("value", "way", "says"),
    [
        ({"tables": [1, 2, 3, math.nan]}, ".tables[3]", "NaN"),
        ({"a": {"b": math.inf}}, ".a.b", "NaN or infinite"),
        ({"a": -math.inf}, ".a", "NaN or infinite"),
        ({"a": Ratio("nan")}, ".a", "NaN"),
        ({"a": [0, {"b": 2**63}]}, ".a[1].b", "beyond 64 bits"),
        ({"a": -(2**63) - 1}, ".a", "beyond 64 bits"),
        ({"a": 10**5_000}, ".a", "beyond 64 bits"),
        ({"a": "x\x00y"}, ".a", "NUL"),
        ({"a": ["\ud800"]}, ".a[0]", "lone surrogate"),
        ({"a\x00": 1}, "['a\\x00']", "NUL"),
        ({"\udfff": 1}, "['\\udfff']", "lone surrogate"),
        ({1: 2}, "", "a key that is not text but int"),
        ({"a": {None: 1}}, ".a", "not text but NoneType|not text but None"),
        ({"a": {UUID(int=1): 1}}, ".a", "not text but UUID"),
        ({"a": {Level.HIGH: 1}}, ".a", "not text but Level"),
        ({"a": Point(1, inner={1: 2})}, ".a", "not text but int"),
        ({"a b": {"c": object()}}, "['a b'].c", "of type object, which has no JSON form"),
        ({"a": (n for n in "ab")}, ".a", "of type generator"),
        ({"a": Point}, ".a", "of type type"),
        ({"a": Model}, ".a", "of type type"),
        ({"a": 1j}, ".a", "of type complex"),
        ({"a": msgspec.UNSET}, ".a", "of type UnsetType"),
        ({"a": msgspec.Raw(b"nonsense")}, ".a", "of type Raw"),
        ({"a": Point(1, inner=[0, object()])}, ".a.inner[1]", "of type object"),
        (Shape(name="s", content={"deep": {1, object()}}), ".content.deep[", "of type object"),
        (Shape(name="s", content={"deep": {1, "b"}}), "", "of type Shape cannot be stored: '<' not supported"),
        (Point(1, inner={"a": {1: 2, "b": 3}}), ".inner.a", "not text but int"),
        (Shape(name="\x00"), ".name", "NUL"),
        (Model(a=math.nan), ".a", "NaN"),
        (Model(a=object()), ".a", "of type object"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_the_way_in(value: Any, way: str, says: str):
    with pytest.raises(InvalidInput, match=says) as caught:
        payloads.encode("payload", value)

    assert caught.value.field.startswith("payload" + way)


@pytest.mark.parametrize(
    "value",
    [
        [],
        [1],
        (),
        "text",
        b"bytes",
        7,
        1.5,
        True,
        math.nan,
        datetime(2026, 1, 1, tzinfo=UTC),
        Colour.RED,
        {1},
        UUID(int=1),
    ],
)
def test_a_payload_that_is_no_object_is_refused(value: Any):
    with pytest.raises(InvalidInput) as caught:
        payloads.encode("result", value)

    assert caught.value.field == "result" or caught.value.field.startswith("result[")


@pytest.mark.parametrize("value", [object(), Point, len, Token(b"t" * 32, 1), iter("ab")])
def test_a_payload_of_a_type_that_nobody_knows_is_refused_with_what_can_be_stored(value: Any):
    with pytest.raises(InvalidInput, match=r"which has no JSON form .*dataclasses") as caught:
        payloads.encode("payload", value)

    assert caught.value.field == "payload"


def test_64_levels_are_stored_and_65_are_not():
    assert payloads.decode(payloads.encode("payload", nested(64))) == nested(64)
    assert payloads.decode(payloads.encode("payload", UserDict(nested(64)))) == nested(64)
    for value in (nested(65), UserDict(nested(65)), {"a": [[nested(62)], [nested(63)]]}, nested(100_000)):
        with pytest.raises(InvalidInput, match="nested deeper than 64 levels"):
            payloads.encode("payload", value)


def test_what_contains_itself_is_refused_and_the_stack_survives():
    the_list: list[Any] = []
    the_list.append(the_list)
    the_dict: dict[str, Any] = {}
    the_dict["me"] = the_dict
    the_user_dict: UserDict[str, Any] = UserDict()
    the_user_dict["me"] = the_user_dict
    point = Point(1)
    point.inner = [point]
    shape = Shape(name="s")
    shape.content = {"me": UserDict(me=shape)}
    model = Model()
    model.content["me"] = model

    for value in ({"a": the_list}, the_dict, the_user_dict, point, shape, model):
        with pytest.raises(InvalidInput, match="nested deeper than 64 levels, or contains itself") as caught:
            payloads.encode("payload", value)
        assert len(str(caught.value)) < 300


def test_a_payload_over_256_kib_is_refused_with_its_size_and_one_of_just_that_is_stored():
    at_the_limit = {"a": "x" * (256 * 1024 - len('{"a":""}'))}

    assert len(payloads.encode("payload", at_the_limit)) == 256 * 1024
    for value in ({"a": at_the_limit["a"] + "x"}, UserDict(a=at_the_limit["a"] + "x"), {"é": "é" * 132_000}):
        with pytest.raises(InvalidInput, match=r"payload: is 26.,... bytes as JSON; 262,144 are allowed"):
            payloads.encode("payload", value)


def test_a_refusal_never_shows_the_content():
    for value in (
        {"a": "secret\x00"},
        {"a": {"secret", 1.5, object()}},
        ["secret"],
        "secret",
        {"a": "secret" * 100_000},
    ):
        with pytest.raises(InvalidInput) as caught:
            payloads.encode("payload", value)
        assert "secret" not in str(caught.value)


def test_a_model_that_cannot_be_dumped_is_refused_with_its_own_words_and_cause():
    class Broken:
        def model_dump(self) -> dict[str, Any]:
            raise ValueError("cannot serialise")

    with pytest.raises(InvalidInput, match="cannot serialise") as caught:
        payloads.encode("payload", {"a": Broken()})

    assert caught.value.field == "payload.a"
    assert isinstance(caught.value.__cause__, ValueError)


JUNK = st.one_of(
    SCALARS,
    st.text(st.characters()),
    st.integers(),
    st.floats(),
    st.binary(max_size=4),
    st.datetimes(),
    st.decimals(),
    st.uuids(),
    st.complex_numbers(),
    st.sampled_from([object(), Point(1), Shape(name="s"), Model(a=1), Point, len, Colour.RED, msgspec.UNSET]),
)
MIXED = st.recursive(
    JUNK,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.one_of(st.text(st.characters(), max_size=3), st.integers(), st.none()), inner, max_size=3),
        st.dictionaries(GOOD_TEXT, inner, max_size=3).map(UserDict),
        st.builds(Point, st.integers(), inner=inner),
        st.builds(Shape, name=GOOD_TEXT, content=inner),
    ),
)


@given(MIXED)
def test_anything_at_all_is_either_stored_as_an_object_that_reads_back_or_refused(value: Any):
    try:
        stored = payloads.encode("payload", value)
    except InvalidInput:
        return

    read = payloads.decode(stored)
    assert isinstance(read, dict)
    assert payloads.encode("payload", read) == stored


# What comes out


@pytest.mark.parametrize("raw", [b'{"y":1,"x":2}', '{"y":1,"x":2}', msgspec.Raw(b'{"y":1,"x":2}')])
def test_a_stored_payload_is_read_as_a_mapping_or_as_a_type(raw: Any):
    assert payloads.decode(raw) == {"y": 1, "x": 2}
    assert payloads.decode_as(raw, Point) == Point(1, 2)
    assert payloads.decode_as(raw, dict[str, int]) == {"y": 1, "x": 2}


@dataclass
class Order:
    at: datetime
    price: Decimal
    colours: list[Colour] = field(default_factory=list[Colour])


def test_what_went_in_as_a_type_comes_out_as_that_type():
    order = Order(datetime(2026, 1, 1, tzinfo=UTC), Decimal("1.10"), [Colour.RED])
    shape = Shape(name="s", sides=3)

    assert payloads.decode_as(payloads.encode("payload", order), Order) == order
    assert payloads.decode_as(payloads.encode("payload", shape), Shape) == shape
    assert payloads.decode_as(payloads.encode("payload", Row(id=3)), Row) == {"id": 3}
    assert payloads.decode_as(payloads.encode("payload", Model(a=1)), Model).content == {"a": 1, "mode": "json"}


@pytest.mark.parametrize(
    ("stored", "type_", "says"),
    [
        (b'{"x":1}', Point, "does not fit Point: .*missing required field `y`"),
        (b'{"y":"one"}', Point, "does not fit Point: Expected `int`, got `str`"),
        (b'{"name":"s","type":"circle"}', Shape, "does not fit Shape: Invalid value 'circle'"),
        (b'{"id":null}', Row, "does not fit Row"),
        (b'{"wrong":1}', Model, "does not fit Model: wrong is not allowed"),
    ],
)
def test_a_payload_that_does_not_fit_the_type_is_refused_with_the_reason(stored: bytes, type_: type, says: str):
    with pytest.raises(InvalidInput, match=says) as caught:
        payloads.decode_as(stored, type_)

    assert caught.value.field == "payload"
