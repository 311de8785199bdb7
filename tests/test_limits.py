"""What a name, a number, a list may be. Everything else is `InvalidInput` that names the field."""

from __future__ import annotations

import itertools
from enum import IntEnum, StrEnum
from typing import Any, Literal
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator import limits
from coordinator.errors import InvalidInput

ANY_TEXT = st.text(st.characters(), max_size=300)  # lone surrogates and control characters included
NOT_TEXT: list[Any] = [None, 7, 1.5, True, b"ada", ["ada"], {"ada": 1}, object(), str]


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


HUGE = 10**5_000  # Python refuses to write it out


def is_good_name(text: str) -> bool:
    return not {category(c) for c in text} & {"Cc", "Cs"} and 1 <= len(text.encode()) <= 256


# Names


@pytest.mark.parametrize("name", ["ada", "src/a b.py", "Äpfel", "作業", "👩‍💻", "x" * 256, "é" * 128, " "])
def test_an_ordinary_name_comes_back_as_it_is(name: str):
    assert limits.name("job", name) == name


@given(ANY_TEXT)
def test_a_text_is_a_name_exactly_if_it_has_1_to_256_bytes_and_no_control_characters_or_surrogates(text: str):
    if is_good_name(text):
        assert limits.name("job", text) == text
    else:
        with pytest.raises(InvalidInput) as caught:
            limits.name("job", text)
        assert caught.value.field == "job"


@pytest.mark.parametrize("value", NOT_TEXT)
@pytest.mark.parametrize("check", [limits.name, limits.reason])
def test_what_is_no_text_is_refused_by_its_type(check: Any, value: object):
    with pytest.raises(InvalidInput, match="must be text") as caught:
        check("job", value)

    assert caught.value.field == "job"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("a\nb", "U\\+000A"),
        ("a\x00", "U\\+0000"),
        ("a\x85", "U\\+0085"),
        ("\x7f", "U\\+007F"),
        ("a\ud800", "lone surrogate \\(U\\+D800\\) at character 1"),
        ("x" * 257, "over 256 bytes"),
        ("é" * 129, "over 256 bytes"),
    ],
)
def test_a_bad_name_is_refused_with_what_is_wrong_with_it(text: str, problem: str):
    with pytest.raises(InvalidInput, match=f"^receipt: .*{problem}"):
        limits.name("receipt", text)


def test_a_str_enum_becomes_the_plain_text_that_it_is():
    name = limits.name("job", Colour.RED)

    assert type(name) is str
    assert name == "red"


def test_a_context_may_be_none_but_not_empty():
    assert limits.context("context", None) is None
    assert limits.context("context", "00-ab-cd-01") == "00-ab-cd-01"
    with pytest.raises(InvalidInput, match="context: is empty"):
        limits.context("context", "")


# Reasons


def test_a_reason_may_run_over_lines_and_hold_tabs():
    assert limits.reason("reason", "two\n\tlines") == "two\n\tlines"


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "a\rb", "a\x1bb", "x" * 1_025])
def test_a_reason_that_says_nothing_or_holds_other_control_characters_or_is_long_is_refused(text: str):
    with pytest.raises(InvalidInput, match=r"^reason: "):
        limits.reason("reason", text)


@given(st.one_of(ANY_TEXT, st.text(st.characters(), min_size=300, max_size=2_000)))
def test_any_text_can_be_made_a_fitting_reason(text: str):
    fitting = limits.fitting_reason(text)

    assert limits.reason("reason", fitting) == fitting


@given(st.text("ab é\n\t", min_size=1, max_size=300).filter(str.strip))
def test_a_reason_that_already_fits_is_left_alone(text: str):
    assert limits.fitting_reason(text) == text


# Numbers


@pytest.mark.parametrize(
    ("seconds", "us"),
    [(1, 1_000_000), (60, 60_000_000), (1.5, 1_500_000), (2.000001, 2_000_001), (86_400, 86_400_000_000)],
)
def test_a_lease_is_given_in_seconds_and_kept_in_microseconds(seconds: float, us: int):
    lease = limits.lease_us("lease_s", seconds)

    assert type(lease) is int
    assert lease == us


@given(st.floats(1, 86_400))
def test_any_lease_in_range_keeps_its_length_to_the_microsecond(seconds: float):
    assert abs(limits.lease_us("lease_s", seconds) - seconds * 1_000_000) <= 0.5


@pytest.mark.parametrize(
    "seconds",
    [0, 0.999, 86_400.5, -60, 10**400, float("nan"), float("inf"), -float("inf"), True, None, "60", b"60", [60], 60j],
)
def test_a_lease_out_of_range_or_of_another_type_is_refused(seconds: object):
    with pytest.raises(InvalidInput) as caught:
        limits.lease_us("lease_s", seconds)

    assert caught.value.field == "lease_s"
    assert len(str(caught.value)) < 200


def test_a_whole_number_is_accepted_up_to_both_ends():
    assert limits.whole("priority", -32_767, limits.PRIORITY_MIN, limits.PRIORITY_MAX) == -32_767
    assert limits.whole("priority", 32_767, limits.PRIORITY_MIN, limits.PRIORITY_MAX) == 32_767
    assert type(limits.whole("priority", Level.HIGH, 0, 5)) is int


@pytest.mark.parametrize("value", [-1, 11, HUGE, -HUGE, 1.0, True, None, "5", b"5", [5], float("nan")], ids=type)
def test_what_is_no_whole_number_in_range_is_refused(value: object):
    with pytest.raises(InvalidInput, match=r"^max_attempts: must be") as caught:
        limits.whole("max_attempts", value, 0, 10)

    assert len(str(caught.value)) < 200


# Choices


def test_a_choice_is_one_of_the_words_and_keeps_its_type():
    review: Literal["required", "none"] = limits.choice("review", "none", ("required", "none"))
    colour = limits.choice("colour", "red", tuple(Colour))

    assert review == "none"
    assert colour is Colour.RED


@pytest.mark.parametrize("value", ["None", "", None, 1, ["none"], b"none", "x" * 10_000])
def test_another_word_is_refused_with_the_words_that_are_known(value: object):
    with pytest.raises(InvalidInput, match=r"^review: must be one of 'required', 'none', not ") as caught:
        limits.choice("review", value, ("required", "none"))

    assert len(str(caught.value)) < 200


# Lists of ids


def test_a_list_of_ids_keeps_its_order_and_each_id_once():
    assert limits.names("depends_on", ["b", "a", "b", "é"]) == ("b", "a", "é")
    assert limits.names("depends_on", []) == ()
    assert limits.names("depends_on", (id_ for id_ in "ba")) == ("b", "a")


@given(st.sets(st.text("abcdé", min_size=1, max_size=4)))
def test_a_set_of_ids_comes_out_in_one_order_in_every_process(ids: set[str]):
    assert limits.names("depends_on", ids) == tuple(sorted(ids))


@pytest.mark.parametrize("values", ["parser", Colour.RED])
def test_a_bare_text_is_not_taken_for_a_list_of_its_letters(values: object):
    with pytest.raises(InvalidInput, match="pass a list") as caught:
        limits.names("depends_on", values)

    assert caught.value.field == "depends_on"


@pytest.mark.parametrize("values", [None, 3, b"ab", bytearray(b"ab"), {"a": 1}, object(), str])
def test_what_is_no_list_of_ids_is_refused(values: object):
    with pytest.raises(InvalidInput, match=r"^depends_on: must be a list of str"):
        limits.names("depends_on", values)


@pytest.mark.parametrize("bad", ["", "a\n", None, 3, b"a", ["a"]])
def test_a_bad_id_in_a_list_is_named_by_its_place(bad: object):
    with pytest.raises(InvalidInput) as caught:
        limits.names("depends_on", ["a", "b", bad])

    assert caught.value.field == "depends_on[2]"


def test_a_list_without_end_is_refused_not_waited_for():
    with pytest.raises(InvalidInput, match="more than 10,000"):
        limits.names("depends_on", itertools.repeat("a"))
