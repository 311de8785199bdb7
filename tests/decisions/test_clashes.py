"""Which paths stand in each other's way."""

from __future__ import annotations

import pytest

from events.jobs import JobReserved
from tests.decisions.given import Rules, added, claim, claimed, reserve, reserved

CLASHING = [
    pytest.param("src", "src", id="itself"),
    pytest.param("src", "src/index", id="a child of what is wanted is held"),
    pytest.param("src", "src/index/deep/main.py", id="a grandchild of what is wanted is held"),
    pytest.param("src/index", "src", id="the parent of what is wanted is held"),
    pytest.param("src/index/deep/main.py", "src", id="a grandparent of what is wanted is held"),
    pytest.param("src", ".", id="everything is held"),
    pytest.param(".", "src/index", id="everything is wanted"),
    pytest.param(".", ".", id="everything is both held and wanted"),
    pytest.param("SRC/Main.py", "src/main.PY", id="another case"),
    pytest.param("src/ÄPFEL", "SRC/äpfel", id="another case beyond ASCII"),
    pytest.param("Stra\xdfe/x", "STRASSE", id="a letter that folds into two, in a parent"),
    pytest.param("caf\xe9", "CAFE\u0301/menu", id="composed and decomposed, in a child"),
]
APART = [
    pytest.param("src", "srcs", id="only the beginning of a name"),
    pytest.param("src", "src.txt", id="a name that sorts before the children"),
    pytest.param("src", "src0", id="a name that sorts right after the children"),
    pytest.param("src/a", "src/b", id="siblings"),
    pytest.param("src/index", "index", id="the same name elsewhere"),
    pytest.param("src/index", "doc/index", id="the same name in another folder"),
]


@pytest.mark.parametrize(("wanted", "held"), CLASHING)
def test_a_claim_clashes_with_the_same_path_its_parents_and_its_children(rules: Rules, wanted: str, held: str) -> None:
    rules.given(added("index", paths=(held,)), claimed("index", by="bob", paths=(held,)), added("a", paths=(wanted,)))

    refusal = rules.refusal(claim("a", 1), by="ada")

    assert refusal.code == "path_clash"
    [clash] = refusal.values["clashes"]  # pyright: ignore[reportGeneralTypeIssues]
    assert (clash["path"], clash["held"], clash["holder"], clash["job"]) == (wanted, held, "bob", "index")


@pytest.mark.parametrize(("wanted", "held"), CLASHING)
def test_a_claims_later_reservation_clashes_just_as_its_claim_would(rules: Rules, wanted: str, held: str) -> None:
    rules.given(added("index", paths=(held,)), claimed("index", by="bob", paths=(held,)), added("a"), claimed("a"))

    refusal = rules.refusal(reserve("a", wanted))

    assert refusal.code == "path_clash"


@pytest.mark.parametrize(("wanted", "held"), APART)
def test_paths_that_lie_apart_do_not_clash(rules: Rules, wanted: str, held: str) -> None:
    rules.given(added("index", paths=(held,)), claimed("index", by="bob", paths=(held,)), added("a", paths=(wanted,)))

    events = rules.when(claim("a", 1), by="ada")

    assert len(events) == 1


def test_two_claims_of_one_actor_clash_like_any_others(rules: Rules) -> None:
    rules.given(
        added("index", paths=("src",)), claimed("index", by="ada", paths=("src",)), added("a", paths=("src/x",))
    )

    refusal = rules.refusal(claim("a", 1), by="ada")

    assert refusal.code == "path_clash"


def test_a_path_that_was_reserved_later_stands_in_the_way_too(rules: Rules) -> None:
    rules.given(added("index"), claimed("index", by="bob"))
    rules.given(reserved("index", "src"), by="bob")
    rules.given(added("a", paths=("src/x",)))

    refusal = rules.refusal(claim("a", 1), by="ada")

    [clash] = refusal.values["clashes"]  # pyright: ignore[reportGeneralTypeIssues]
    assert (clash["held"], clash["holder"]) == ("src", "bob")


# More paths for a claim


def test_reserving_adds_to_the_paths_of_the_claim(rules: Rules) -> None:
    rules.given(added("parser", paths=("src",)), claimed("parser", paths=("src",)))

    events = rules.when(reserve("parser", "test", "doc"))

    assert events == [JobReserved(job="parser", attempt=1, added=("doc", "test"), paths=("doc", "src", "test"))]


def test_all_paths_are_reserved_or_none(rules: Rules) -> None:
    rules.given(
        added("index", paths=("src",)), claimed("index", by="bob", paths=("src",)), added("parser"), claimed("parser")
    )

    refusal = rules.refusal(reserve("parser", "doc", "src", "test"))

    assert refusal.code == "path_clash"
    assert rules.views.reservations.get("doc") is None


def test_within_one_claim_a_folder_absorbs_what_it_holds(rules: Rules) -> None:
    rules.given(added("parser", paths=("src/a", "src/b", "x")), claimed("parser", paths=("src/a", "src/b", "x")))

    events = rules.when(reserve("parser", "src"))

    assert events == [
        JobReserved(job="parser", attempt=1, added=("src",), absorbed=("src/a", "src/b"), paths=("src", "x"))
    ]


@pytest.mark.parametrize("wanted", ["src", "SRC", "src/a", "SRC/a/b"])
def test_reserving_what_the_claim_holds_already_changes_nothing(rules: Rules, wanted: str) -> None:
    rules.given(added("parser", paths=("src",)), claimed("parser", paths=("src",)))

    events = rules.when(reserve("parser", wanted))

    assert events == []


def test_of_several_paths_only_the_new_ones_are_added(rules: Rules) -> None:
    rules.given(added("parser", paths=("src",)), claimed("parser", paths=("src",)))

    events = rules.when(reserve("parser", "src/a", "doc"))

    assert events == [JobReserved(job="parser", attempt=1, added=("doc",), paths=("doc", "src"))]


def test_everything_can_be_reserved_by_a_claim_that_holds_a_part(rules: Rules) -> None:
    rules.given(added("parser", paths=("src",)), claimed("parser", paths=("src",)))

    events = rules.when(reserve("parser", "."))

    assert events == [JobReserved(job="parser", attempt=1, added=(".",), absorbed=("src",), paths=(".",))]


def test_a_parent_is_not_reserved_over_a_child_that_another_claim_holds(rules: Rules) -> None:
    rules.given(
        added("index", paths=("src/b",)),
        claimed("index", by="bob", paths=("src/b",)),
        added("parser", paths=("src/a",)),
        claimed("parser", paths=("src/a",)),
    )

    refusal = rules.refusal(reserve("parser", "src"))

    [clash] = refusal.values["clashes"]  # pyright: ignore[reportGeneralTypeIssues]
    assert (clash["path"], clash["held"]) == ("src", "src/b")
