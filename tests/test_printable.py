"""What agents wrote is shown on a terminal, and never steers it."""

from __future__ import annotations

import json
import sys
from unicodedata import category

import pytest

from coordinator.printable import columns, cut, pad, printable, printable_json

EVERY = "".join(map(chr, range(sys.maxunicode + 1)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("Äpfel 本 🍏 a\u0301", "Äpfel 本 🍏 a\u0301"),
        ("two\nlines\t\r", r"two\nlines\t\r"),
        ("\x1b[31mred\x07\x7f", r"\x1b[31mred\x07\x7f"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202eevil\u2066\u200b\ufeff", r"\u202eevil\u2066\u200b\ufeff"),
        ("\U000e0041\u2028\u3164", r"\U000e0041\u2028\u3164"),
        ("\ud800", r"\ud800"),
    ],
)
def test_characters_that_steer_turn_or_hide_are_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_nothing_of_unicode_that_is_no_visible_text_passes() -> None:
    passed = set(printable(EVERY)) & set(EVERY)

    assert not {
        character for character in passed if category(character)[0] == "C" or category(character) in ("Zl", "Zp")
    }


def test_json_keeps_its_meaning_when_it_is_made_fit_for_a_terminal() -> None:
    value = {"text": "".join(character for character in EVERY if category(character) != "Cs")}

    text = printable_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(text) == value
    assert printable(text) == text


def test_a_text_that_is_cut_says_so() -> None:
    assert (cut("123456", 6), cut("1234567", 6)) == ("123456", "12345…")


def test_wide_characters_count_twice_and_accents_not_at_all() -> None:
    assert (columns("abc"), columns("本木"), columns("a\u0301b"), columns("\uff57")) == (3, 4, 2, 2)
    assert pad("本", 4) == "本  "
