"""Paths: one spelling, one key, and which of them stand in each other's way."""

from __future__ import annotations

import itertools
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import category, normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coordinator import paths
from coordinator.errors import BadPath, InvalidInput
from projections.path_keys import children_range, keys_clash, parents, path_key

# Letters that fold, decompose or reorder in awkward ways, beside plain ones, and what sorts next to "/".
ODD = (
    "aAbB.-0~ []()"
    "\xdf\u1e9e\u017fs\u0130i\u0131I\u212aKk\xc5\xe5\u212b\u03a3"
    "\u03c3\u03c2\u0390\u03b9\u03ca\u0301\u0308\u0313\u0307\u0304\u0315\u0345\u1fb3\u1fbc"
    "\u0386\u13a0\uab70\u13f8\u01f0\u0149\ufb03\ufb01\uac01\uac00\u1100"
    "\u1161\u0323\u0307\U0001d165\ufb4b\U0001f130\u24b6\u24d0\u672c"
)
LETTERS = st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["C", "Zl", "Zp"]))
COMPONENTS = st.text(LETTERS, min_size=1, max_size=4)
FEW = st.sampled_from(["a", "A", "b", "a-", "a0", "é", "E\u0301"])


def is_accepted(path: str) -> bool:
    try:
        paths.normalise("paths", [path])
    except BadPath:
        return False
    return True


SPELLED = st.lists(COMPONENTS, min_size=1, max_size=4).map("/".join).filter(is_accepted)
NEAR = st.one_of(st.just("."), st.lists(FEW, min_size=1, max_size=3).map("/".join))  # often equal, above or below
GOOD = st.one_of(NEAR, NEAR, SPELLED).map(lambda path: paths.normalise("paths", [path])[0])
KEYS = GOOD.map(path_key)


def is_under(key: str, ancestor: str) -> bool:
    return key != ancestor and (ancestor == "" or key.split("/")[: len(ancestor.split("/"))] == ancestor.split("/"))


# Spelling


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("src", "src"),
        ("src/index/main.py", "src/index/main.py"),
        ("./src", "src"),
        ("src/./x", "src/x"),
        ("src/.", "src"),
        (".", "."),
        ("./.", "."),
        (".github/workflows", ".github/workflows"),
        ("a..b/...", "a..b/..."),
        ("app/[id]/page (1).tsx", "app/[id]/page (1).tsx"),
        ("a b", "a b"),
        ("README:old", "README:old"),
        ("~x", "~x"),
        ("cafe\u0301", "caf\u00e9"),
        ("本/ノート", "本/ノート"),
        (Path("src/x"), "src/x"),
        (PurePosixPath("src") / "y", "src/y"),
        (Path("."), "."),
    ],
)
def test_a_good_path_gets_its_one_spelling(path: object, spelled: str):
    assert paths.normalise("paths", [path]) == (spelled,)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "is empty"),
        ("/etc", "absolute"),
        (Path("/etc"), "absolute"),
        ("C:/x", "absolute"),
        ("C:\\x", "absolute"),
        ("c:", "absolute"),
        ("..", "\\.\\."),
        ("a/../b", "\\.\\."),
        ("../x", "\\.\\."),
        ("a//b", "empty component"),
        ("a/", "without the trailing slash"),
        ("./", "without the trailing slash"),
        ("a\\b", "backslash"),
        ("a\x00b", "U\\+0000"),
        ("a\nb", "U\\+000A"),
        ("a\x9fb", "U\\+009F"),
        ("a\u200bb", "zero-width"),
        ("a\u200db", "zero-width"),
        ("\ufeffa", "zero-width"),
        ("a\u00adb", "zero-width"),
        ("a\ufe0f", "does not show"),
        ("a\u3164", "does not show"),
        ("a\u034fb", "does not show"),
        ("a\u2028b", "line separator"),
        ("a\ud800", "lone surrogate"),
        ("a\u0378", "unassigned"),
        ("a\uffff", "unassigned"),
        ("src/*.py", "reserve the folder"),
        ("a?", "reserve the folder"),
        ("x" * 4_097, "over 4,096 bytes"),
        ("é" * 2_049, "over 4,096 bytes"),
        ("\U0001d15e" * 1_000, "over 4,096 bytes"),  # its NFC form is longer than itself
        (None, "must be a str or a relative Path"),
        (7, "must be a str or a relative Path"),
        (b"src", "must be a str or a relative Path"),
        (["src"], "must be a str or a relative Path"),
    ],
)
def test_a_bad_path_is_refused_by_its_place_in_the_list_and_says_why(path: object, says: str):
    with pytest.raises(BadPath, match=says) as caught:
        paths.normalise("paths", ["ok", path])

    assert caught.value.field == "paths[1]"


@pytest.mark.parametrize("path", ["/a", "a/..", "a//b", "a/", "a\\b", "a\u200b", "a*", "C:/"])
def test_a_bad_path_comes_with_a_hint(path: str):
    with pytest.raises(BadPath) as caught:
        paths.normalise("paths", [path])

    assert caught.value.hint


def test_a_path_like_that_speaks_bytes_is_refused():
    class Bytes:
        def __fspath__(self) -> bytes:
            return b"src"

    with pytest.raises(BadPath, match="not bytes"):
        paths.normalise("paths", [Bytes()])


@pytest.mark.parametrize("given_", ["src", Path("src"), None, 3, b"src", {"src": 1}])
def test_what_is_no_list_of_paths_is_refused(given_: object):
    with pytest.raises(InvalidInput, match="pass a list") as caught:
        paths.normalise("paths", given_)

    assert caught.value.field == "paths"


def test_more_paths_than_a_job_may_have_are_refused_with_the_advice_to_reserve_folders():
    with pytest.raises(BadPath, match="more than 1,000"):
        paths.normalise("paths", (f"f{n}" for n in itertools.count()))


@given(st.text(st.one_of(st.characters(), st.sampled_from("./\\*?: \u200b" + ODD)), max_size=12))
def test_any_text_is_either_spelled_or_refused_and_a_spelled_path_holds_nothing_that_is_refused(text: str):
    try:
        (spelled,) = paths.normalise("paths", [text])
    except BadPath:
        return

    assert normalize("NFC", spelled) == spelled
    assert not set(spelled) & set("\\*?\x00")
    assert not {category(character) for character in spelled} & {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
    assert spelled == "." or not {"", ".", ".."} & set(spelled.split("/"))


@given(st.text("ab./\\*?: A~", max_size=8))
def test_the_fast_way_and_the_long_way_give_the_same_answer(text: str):
    try:
        slow = paths._spell("paths[0]", text)  # pyright: ignore[reportPrivateUsage]
    except BadPath:
        assert not is_accepted(text)
    else:
        assert paths.normalise("paths", [text]) == (slow,)


# Lists


def test_a_folder_absorbs_what_lies_inside_it_but_not_its_neighbours():
    listed = ["src/x", "src-old", "src", "src.py", "SRC/y/z", "docs", "src0"]

    assert paths.normalise("paths", listed) == ("docs", "src", "src-old", "src.py", "src0")


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        (["src", "src/x"], ("src",)),
        (["src/x/y", "SRC"], ("SRC",)),
        (["src", "src-x"], ("src", "src-x")),
        (["srcx", "src"], ("src", "srcx")),
        (["b", "a"], ("a", "b")),
    ],
)
def test_of_two_paths_the_outer_absorbs_the_inner(given_: list[str], kept: tuple[str, ...]):
    assert paths.normalise("paths", given_) == kept
    assert paths.absorb(given_) == kept


def test_the_root_absorbs_everything():
    assert paths.normalise("paths", ["src", ".", "docs/x"]) == (".",)


def test_of_two_spellings_of_one_path_the_first_wins():
    assert paths.normalise("paths", ["Src/A", "src/a"]) == ("Src/A",)
    assert paths.normalise("paths", ["src/a", "Src/A"]) == ("src/a",)


def test_a_set_of_paths_gives_the_same_list_in_every_process():
    assert paths.normalise("paths", {"b", "a", "A"}) == ("A", "b")


@given(st.lists(GOOD, max_size=8))
def test_normalising_twice_changes_nothing(given_: list[str]):
    once = paths.normalise("paths", given_)

    assert paths.normalise("paths", once) == once
    assert paths.absorb(once) == once


@given(st.lists(GOOD, max_size=8), st.randoms(use_true_random=False))
def test_the_order_in_which_paths_are_given_does_not_matter_to_what_they_cover(given_: list[str], random: Any):
    shuffled = random.sample(given_, len(given_))

    before = [path_key(path) for path in paths.normalise("paths", given_)]
    after = [path_key(path) for path in paths.normalise("paths", shuffled)]

    assert before == after == sorted(before)


@given(st.lists(GOOD, max_size=8))
def test_a_normalised_list_covers_what_was_given_and_no_two_of_it_clash(given_: list[str]):
    kept = paths.normalise("paths", given_)

    assert not any(paths.clashes(one, other) for one, other in itertools.combinations(kept, 2))
    assert all(any(covers(path_key(folder), path_key(path)) for folder in kept) for path in given_)
    assert set(kept) <= set(given_)


def covers(folder: str, key: str) -> bool:
    return folder == key or is_under(key, folder)


# Keys


@given(GOOD)
def test_a_key_is_its_own_key(path: str):
    key = path_key(path)

    assert path_key(key) == key


@given(st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=6))
def test_a_key_is_its_own_key_for_any_assigned_text(text: str):
    key = path_key(text)

    assert path_key(key) == key


@given(GOOD)
def test_spellings_that_differ_in_case_or_composition_have_one_key(path: str):
    assume("\u0131" not in path)  # the dotless i: its capital is I, which folds to i, unless one writes Turkish

    variants = [path.upper(), path.lower(), path.casefold(), normalize("NFD", path), normalize("NFC", path.upper())]

    assert {path_key(variant) for variant in variants} == {path_key(path)}


@given(GOOD)
def test_a_key_has_as_many_components_as_its_path_and_none_is_empty(path: str):
    key = path_key(path)

    assert key == "" if path == "." else key.count("/") == path.count("/")
    assert path == "." or all(key.split("/"))


def test_the_root_has_the_empty_key_and_no_parents():
    assert path_key(".") == ""
    assert parents("") == []


def test_parents_run_from_the_root_to_the_nearest():
    assert parents("a/b/c") == ["", "a", "a/b"]
    assert parents("a") == [""]


@given(KEYS, KEYS)
def test_the_range_of_children_holds_exactly_what_has_the_key_among_its_parents(key: str, other: str):
    low, high = children_range(key)

    in_range = low <= other and (high is None or other < high)

    assert in_range == (key in parents(other)) == is_under(other, key)


@given(KEYS, st.lists(COMPONENTS, min_size=1, max_size=2).map("/".join).filter(is_accepted))
def test_every_child_is_in_the_range_of_its_parent(key: str, rest: str):
    rest = path_key(paths.normalise("paths", [rest])[0])
    assume(rest)
    child = f"{key}/{rest}" if key else rest

    low, high = children_range(key)

    assert low <= child
    assert high is None or child < high
    assert key in parents(child)


@given(KEYS, KEYS)
def test_keys_are_ordered_as_their_utf_8_is(one: str, other: str):
    assert (one < other) == (one.encode() < other.encode())


# Clashes


@given(GOOD, GOOD)
def test_paths_clash_if_they_are_the_same_or_one_is_inside_the_other_and_so_both_ways(one: str, other: str):
    one_key, other_key = path_key(one), path_key(other)

    clash = paths.clashes(one, other)

    assert clash == paths.clashes(other, one) == keys_clash(one_key, other_key)
    assert clash == (one_key == other_key or one_key in parents(other_key) or other_key in parents(one_key))


@given(GOOD)
def test_a_path_clashes_with_itself_and_with_the_root(path: str):
    assert paths.clashes(path, path)
    assert paths.clashes(path, ".")


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("src", "src/x", True),
        ("SRC", "src/x", True),
        ("src", "src-old", False),
        ("src", "src0", False),
        ("src/x", "src/y", False),
        ("straße", "STRASSE/x", True),
        ("é", "E\u0301", True),
    ],
)
def test_clashes_by_example(one: str, other: str, clash: bool):
    assert paths.clashes(one, other) is clash
