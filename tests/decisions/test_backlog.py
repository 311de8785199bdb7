"""The search among all ready jobs: the same answers as looking through them one by one, without doing it again."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.decisions.backlog import Backlog
from coordinator.decisions.levels import Levels
from projections.path_keys import keys_clash

KEYS = ("", "a", "a/b", "a/b/c", "a/c", "a!", "a0", "b", "b/x")
STEP = 1 << 47

Jobs = dict[str, tuple[int, int, tuple[str, ...]]]
"""id -> rank, priority, keys"""


def one_by_one(jobs: Jobs, held: set[str], count: int) -> list[str]:
    """The rule as it is written: the best first, past what clashes with a claim or with a job of higher priority."""
    jobs, held, found = dict(jobs), set(held), list[str]()
    while len(found) < count:
        passed = list[tuple[int, str]]()
        for job in sorted(jobs, key=lambda job: jobs[job][0]):
            _, priority, keys = jobs[job]
            higher = {key for of, key in passed if of > priority}
            if not any(keys_clash(key, other) for key in keys for other in held | higher):
                break
            passed += [(priority, key) for key in keys]
        else:
            return found
        found.append(job)
        held |= set(jobs.pop(job)[2])
    return found


def search(backlog: Backlog, count: int = 1, steps: int = 1_000) -> list[str]:
    for _ in range(1_000):
        found = backlog.best(count, steps)
        if found is not None:
            return found
    raise AssertionError("the search never ends")


def waiting(jobs: int, *, key: str = "src/{}", held: str = "src") -> Backlog:
    """Jobs of which none can be claimed."""
    backlog = Backlog()
    backlog.hold(held)
    for number in range(jobs):
        backlog.put(f"job-{number}", number, 0, (key.format(number),))
    return backlog


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The lines that are looked at, by their keys."""
    looks: list[Any] = []
    in_the_way = Levels.in_the_way

    def look(levels: Levels, keys: tuple[str, ...], priority: int) -> str | None:
        looks.append(keys)
        return in_the_way(levels, keys, priority)

    monkeypatch.setattr(Levels, "in_the_way", look)
    return looks


_changes = st.one_of(
    st.tuples(
        st.just("put"),
        st.integers(0, 9),
        st.integers(0, 2),
        st.lists(st.sampled_from(KEYS), max_size=3, unique=True).map(tuple),
    ),
    st.tuples(st.just("put another way"), st.integers(0, 9), st.sampled_from(KEYS)),
    st.tuples(st.just("discard"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["hold", "free"]), st.sampled_from(KEYS)),
    st.tuples(st.just("search"), st.integers(1, 4), st.sampled_from([0, 1, 1_000])),
)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 60).flatmap(lambda length: st.lists(_changes, min_size=length, max_size=length)))
def test_it_finds_what_looking_one_by_one_would_find(changes: list[Any]) -> None:
    backlog, jobs, held = Backlog(), Jobs(), set[str]()
    doings: list[Any] = [*changes, ("search", 9, 2)]

    for number, change in enumerate(doings):
        match change:
            case "put", job, priority, keys:
                jobs[f"job-{job}"] = number - priority * STEP, priority, keys
                backlog.put(f"job-{job}", *jobs[f"job-{job}"])
            case "put another way", job, key if f"job-{job}" in jobs:
                rank, priority, _ = jobs[f"job-{job}"]
                jobs[f"job-{job}"] = rank, priority, (key,)
                backlog.put(f"job-{job}", rank, priority, (key,))
            case "discard", job:
                jobs.pop(f"job-{job}", None)
                backlog.discard(f"job-{job}")
            case "hold", key:
                held.add(key)
                backlog.hold(key)
            case "free", key:
                held.discard(key)
                backlog.free(key)
            case "search", count, steps:
                assert search(backlog, count, steps) == one_by_one(jobs, held, count)
            case _:
                pass
    assert len(backlog) == len(jobs)


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        ("src", "src", True),
        ("src", "src/a/b", True),
        ("src/a/b", "src", True),
        ("", "src/a", True),
        ("src/a", "", True),
        ("", "", True),
        ("src", "src0", False),
        ("src!", "src", False),
        ("src/a", "src/b", False),
    ],
)
def test_a_job_waits_for_a_path_that_is_held_and_for_its_parents_and_children(
    held: str, wanted: str, clash: bool
) -> None:
    backlog = Backlog()
    backlog.hold(held)
    backlog.put("job", 1, 0, ("doc", wanted))

    while_held = search(backlog)
    backlog.free(held)

    assert while_held == ([] if clash else ["job"])
    assert search(backlog) == ["job"]


@pytest.mark.parametrize("over", ["claimed", "of lower priority", "for other paths", "come through"])
def test_what_waits_keeps_its_paths_from_jobs_of_lower_priority_until_that_is_over(over: str) -> None:
    backlog = Backlog()
    backlog.hold("src")
    backlog.put("urgent", 1 - STEP, 1, ("doc", "src"))
    backlog.put("equal", 2 - STEP, 1, ("src", "test"))
    backlog.put("small", 3, 0, ("doc/page",))
    before = search(backlog)

    match over:
        case "claimed":
            backlog.discard("urgent")
        case "of lower priority":
            backlog.put("urgent", 1, 0, ("doc", "src"))
        case "for other paths":
            backlog.put("urgent", 1 - STEP, 1, ("src",))
        case _:
            backlog.free("src")

    assert before == []
    assert search(backlog) == (["urgent"] if over == "come through" else ["small"])


def test_when_a_path_is_freed_all_that_waited_come_through_one_after_another() -> None:
    backlog = waiting(3)

    backlog.free("src")

    assert search(backlog, 9) == ["job-0", "job-1", "job-2"]


def test_who_came_later_to_a_path_that_was_held_once_more_still_comes_in_its_place() -> None:
    backlog = waiting(0)
    backlog.put("first", 5, 0, ("doc",))
    backlog.put("last", 10, 0, ("src/x",))
    backlog.put("third", 8, 0, ("test",))
    assert search(backlog) == ["first"]

    backlog.free("src")
    assert search(backlog) == ["first"]
    backlog.hold("src")
    backlog.put("second", 7, 0, ("src/y",))
    backlog.free("src")

    assert search(backlog, 9) == ["first", "second", "third", "last"]


def test_who_has_to_wait_for_priority_only_comes_through_when_it_is_high_enough(looks: list[Any]) -> None:
    backlog = Backlog()
    backlog.hold("src")
    for priority in (3, 2):
        backlog.put(f"of {priority}", priority - priority * STEP, priority, ("doc", f"src/{priority}"))
    for priority in (1, 0):
        backlog.put(f"of {priority}", priority - priority * STEP, priority, ("doc", f"test/{priority}"))
    assert search(backlog) == []
    looks.clear()

    backlog.discard("of 3")
    still = search(backlog)
    backlog.discard("of 2")

    assert still == []
    assert looks == []
    assert search(backlog) == ["of 1"]


def test_what_cannot_be_claimed_is_not_looked_at_again_while_nothing_has_changed(looks: list[Any]) -> None:
    backlog = waiting(300)
    assert search(backlog) == []
    looks.clear()

    assert search(backlog) == []
    backlog.hold("doc")
    backlog.free("doc")
    backlog.hold("src/7")
    assert search(backlog) == []

    assert looks == []


def test_when_a_path_is_freed_only_the_first_that_waited_is_looked_at_if_it_can_be_claimed(looks: list[Any]) -> None:
    backlog = waiting(300)
    looks.clear()

    backlog.free("src")

    assert search(backlog) == ["job-0"]
    assert looks == [("src/0",)]


def test_a_path_that_is_freed_and_held_again_brings_nobody_to_look(looks: list[Any]) -> None:
    backlog = waiting(300)
    looks.clear()

    backlog.free("src")
    backlog.hold("src")

    assert search(backlog) == []
    assert looks == []


def test_jobs_that_want_the_same_paths_are_looked_at_once(looks: list[Any]) -> None:
    backlog = waiting(300, key="src/x", held="src/x/y")
    looks.clear()

    backlog.hold("src/x/z")
    backlog.free("src/x/y")
    backlog.free("src/x/z")
    backlog.hold("src")

    assert search(backlog) == []
    assert len(looks) <= 1


def test_who_waits_for_a_folder_is_not_looked_at_while_anything_beneath_it_is_held(looks: list[Any]) -> None:
    backlog = Backlog()
    backlog.hold("src/a")
    for number in range(300):
        backlog.put(f"job-{number}", number, 0, ("src", f"own/{number}"))
    looks.clear()

    backlog.hold("src/b")
    backlog.free("src/a")

    assert search(backlog) == []
    assert looks == []


def test_a_search_pauses_when_it_took_its_steps_and_then_goes_on(looks: list[Any]) -> None:
    backlog = Backlog()
    for number in range(300):
        backlog.put(f"job-{number}", number, 0, (f"src/{number}",))
    backlog.hold("src")
    looks.clear()

    rounds: list[int] = []
    while backlog.best(1, 100) is None:
        rounds.append(len(looks))
        looks.clear()

    assert len(rounds) > 1
    assert max(rounds) < 110
    assert sum(rounds) + len(looks) == 300


def test_a_search_for_more_than_one_pauses_too_and_leaves_nothing_claimed() -> None:
    backlog = waiting(300)
    backlog.put("free", 1_000, 0, ("doc",))
    for number in range(50):
        backlog.put(f"blocked by it-{number}", 2_000 + number, 0, (f"doc/{number}",))

    paused = backlog.best(2, 10)

    assert paused is None
    assert search(backlog) == ["free"]


def test_what_jobs_of_higher_priority_want_is_told_in_steps_too(looks: list[Any]) -> None:
    backlog = Backlog()
    backlog.hold("src")
    for number in range(300):
        backlog.put(f"urgent-{number}", number - STEP, 1, ("src", f"doc/{number}"))
    backlog.put("small", 1_000, 0, ("doc/7",))
    looks.clear()

    assert backlog.best(1, 100) is None
    assert looks == []
    assert search(backlog, steps=100) == []


def test_a_search_that_pauses_at_once_comes_to_an_end_all_the_same() -> None:
    backlog = Backlog()
    for number in range(3):
        backlog.put(f"same-{number}", number, 0, ("src",))
        backlog.put(f"urgent-{number}", number - STEP, 1, ("doc",))

    assert search(backlog, 4, steps=0) == ["urgent-0", "same-0"]


def test_the_garbage_collector_has_nothing_to_do_with_jobs() -> None:
    """Else each of its rounds would hold up the whole program, the longer the more jobs there are."""
    gc.collect()
    before = len(gc.get_objects())

    backlog = waiting(2_000)
    gc.collect()
    gc.collect()  # a tuple is let go when what it holds has been

    assert len(backlog) == 2_000
    assert len(gc.get_objects()) - before < 500


def test_putting_a_job_in_as_it_stands_changes_nothing(looks: list[Any]) -> None:
    backlog = waiting(3)
    looks.clear()

    backlog.put("job-1", 1, 0, ("src/1",))

    assert (looks, len(backlog)) == ([], 3)


@pytest.mark.parametrize(
    ("priority", "keys"),
    [
        pytest.param(0, ("doc",), id="of the same paths"),
        pytest.param(2, ("doc",), id="of the same paths, and never waits"),
        pytest.param(0, ("doc", "src"), id="of other paths"),
    ],
)
def test_what_came_and_went_is_not_kept(priority: int, keys: tuple[str, ...]) -> None:
    backlog = Backlog()
    backlog.hold("src")
    backlog.put("urgent", 1 - STEP, 1, ("doc/page", "src"))
    backlog.put("stays", 5_000, 0, ("doc",))
    assert search(backlog) == []

    for number in range(2_000):
        backlog.put("passes", number - priority * STEP, priority, keys)
        backlog.hold("test")
        backlog.free("test")
        backlog.discard("passes")

    heaps = [*(gate.waiting for gate in backlog._gates.values()), backlog._unseen, backlog._opened]
    assert sum(len(heap._items) for heap in heaps) < 300
    backlog.free("src")
    backlog.discard("urgent")
    assert search(backlog) == ["stays"]
