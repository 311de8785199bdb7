"""Receipts are unique and sort by time; fingerprints are equal exactly for equal commands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator import limits
from coordinator.errors import InvalidInput
from coordinator.receipts import fingerprint, generate, receipt_for

NOW = 1_767_225_600_000_000
PARTS = st.lists(st.text(st.sampled_from("ab/%~2F5é-"), min_size=1, max_size=5), min_size=1, max_size=4)
LONG_PARTS = st.lists(st.text(st.sampled_from("a/%é本"), min_size=1, max_size=80), min_size=1, max_size=9)


class Claim(msgspec.Struct, frozen=True, kw_only=True, tag="claim", omit_defaults=True):
    job: str
    version: int
    lease_us: int
    review: str
    paths: tuple[str, ...] = ()
    ratio: float
    payload: msgspec.Raw


class LaterClaim(msgspec.Struct, frozen=True, kw_only=True, tag="claim", omit_defaults=True):
    """`Claim` as a later version of the software might have it: a new field, and another order."""

    urgent: bool = False
    payload: msgspec.Raw
    review: str
    ratio: float
    paths: tuple[str, ...] = ()
    lease_us: int
    version: int
    job: str


class Release(msgspec.Struct, frozen=True, kw_only=True, tag="release", omit_defaults=True):
    job: str
    version: int


class Renew(msgspec.Struct, frozen=True, kw_only=True, tag="renew", omit_defaults=True):
    job: str
    version: int


COMMANDS = st.builds(
    Claim,
    job=st.text("ab", max_size=2),
    version=st.integers(0, 2),
    lease_us=st.sampled_from([60_000_000, 1_000_000]),
    review=st.sampled_from(["required", "none"]),
    ratio=st.sampled_from([0.5, 1.5]),
    paths=st.lists(st.text("ab", max_size=1), max_size=2).map(tuple),
    payload=st.sampled_from([b"{}", b'{"a":1}']).map(msgspec.Raw),
)


def anew(command: Claim) -> Claim:
    """An equal command whose values are other objects."""
    return msgspec.json.decode(msgspec.json.encode(command), type=Claim)


# Generated receipts


def test_generated_receipts_are_unique_even_within_one_microsecond():
    assert len({generate(NOW) for _ in range(10_000)}) == 10_000


@given(st.integers(0, 2**56 - 1), st.integers(0, 2**56 - 1))
def test_generated_receipts_sort_by_time_as_text(one: int, other: int):
    first, second = sorted([(one, generate(one)), (other, generate(other))], key=lambda pair: pair[1])

    assert first[0] <= second[0]


def test_a_generated_receipt_is_short_and_valid():
    receipt = generate(NOW, b"\x00\x01\x02\x03\x04\x05\x06\xff")

    assert receipt == "06474846204000" + "00010203040506ff"
    assert limits.name("receipt", receipt) == receipt


# Receipts from the caller's own ids


def test_a_receipt_made_of_plain_ids_reads_like_them():
    assert receipt_for("run-7", "parser", "claim") == "run-7/parser/claim"
    assert receipt_for("run-7", "src/a.py", "50%") == "run-7/src%2Fa.py/50%25"


@given(PARTS, PARTS)
def test_other_ids_give_another_receipt_and_the_same_ids_the_same(one: list[str], other: list[str]):
    assert (receipt_for(*one) == receipt_for(*other)) == (one == other)


def test_ids_that_only_look_alike_when_joined_give_other_receipts():
    alike: list[Sequence[str]] = [("a/b", "c"), ("a", "b/c"), ("a", "b", "c"), ("a/b/c",), ("a%2Fb", "c")]

    for one, other in itertools.combinations(alike, 2):
        assert receipt_for(*one) != receipt_for(*other)


@given(LONG_PARTS)
def test_a_receipt_never_exceeds_what_a_receipt_may_be(parts: list[str]):
    receipt = receipt_for(*parts)

    assert limits.name("receipt", receipt) == receipt


def test_long_ids_are_hashed_behind_a_readable_beginning_and_differ_where_they_differ():
    one = receipt_for("run-7", "x" * 200, "y" * 200)
    other = receipt_for("run-7", "x" * 200, "y" * 199 + "z")

    assert one.startswith("run-7/xxxx")
    assert len(one.encode()) == 256
    assert one != other
    assert receipt_for(one) != one  # what looks like a hashed receipt is escaped like any other text


@pytest.mark.parametrize(
    ("parts", "field"),
    [((), "parts"), (("run", ""), "parts[1]"), (("a\n",), "parts[0]"), (("a", 7), "parts[1]"), ((None,), "parts[0]")],
)
def test_parts_that_are_missing_or_no_names_are_refused(parts: Any, field: str):
    with pytest.raises(InvalidInput) as caught:
        receipt_for(*parts)

    assert caught.value.field == field


# Fingerprints


def test_a_fingerprint_is_sha_256_over_type_and_fields_without_defaults_keys_sorted():
    command = Claim(
        version=3, job="parser", lease_us=5, review="none", ratio=0.5, paths=("a",), payload=msgspec.Raw(b'{"x":1}')
    )
    text = b'{"job":"parser","lease_us":5,"paths":["a"],"payload":{"x":1},"ratio":0.5,"review":"none","type":"claim",'

    expected = sha256(text + b'"version":3}').digest()

    assert fingerprint(command) == expected


@given(COMMANDS, COMMANDS)
def test_fingerprints_are_equal_exactly_if_the_commands_are(one: Claim, other: Claim):
    equal = msgspec.json.encode(anew(one)) == msgspec.json.encode(anew(other))

    assert (fingerprint(one) == fingerprint(other)) == equal


@given(COMMANDS)
def test_the_same_values_in_other_objects_give_the_same_fingerprint(command: Claim):
    assert fingerprint(anew(command)) == fingerprint(command)


@given(COMMANDS)
def test_a_field_added_later_leaves_the_old_fingerprints_as_they_are(command: Claim):
    later = msgspec.json.decode(msgspec.json.encode(command), type=LaterClaim)

    assert fingerprint(later) == fingerprint(command)


def test_equal_fields_of_another_command_give_another_fingerprint():
    assert fingerprint(Release(job="a", version=1)) != fingerprint(Renew(job="a", version=1))
