"""Whom the thread tells that looks for what other processes commit, and of what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator import poller as polling
from coordinator.errors import Unavailable
from coordinator.poller import Poller
from coordinator.stores.interface import FORMAT
from projections.registry import FOLDS_VERSION

PATIENCE_S = 20


class Steered:
    """A store that answers whether it changed when the test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.over = False
        self._answers: SimpleQueue[bool | Exception] = SimpleQueue()
        self._asked = threading.Semaphore(0)

    def changed(self) -> bool:
        self._asked.release()
        answer = not self.over and self._answers.get(timeout=PATIENCE_S)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def read(self, work: Callable[[Any], Any]) -> Any:
        return work(self)

    def head(self) -> Any:
        return SimpleNamespace(position=len(self.log), format=FORMAT, folds=FOLDS_VERSION)

    def streams(self, *, after: int, limit: int) -> list[str]:
        return self.log[after:][:limit]

    def close(self) -> None:
        pass

    def answer(self, answer: bool | Exception) -> None:
        """What the poller asks now; returns when it has dealt with that and asks again."""
        self._answers.put(answer)
        self.asked()

    def asked(self) -> None:
        assert self._asked.acquire(timeout=PATIENCE_S), "nobody asks"

    def end(self) -> None:
        self.over = True
        self._answers.put(False)


@pytest.fixture
def store() -> Steered:
    return Steered()


@pytest.fixture
def heard() -> list[Collection[str] | None]:
    return []


@pytest.fixture
def poller(store: Steered, heard: list[Collection[str] | None]) -> Iterator[Poller]:
    """Somebody waits, and it has looked for the first time."""
    store.log += ["job/old", "topic/old"]
    poller = Poller(lambda: store, heard.append)  # type: ignore[arg-type,return-value]
    poller.more()
    store.asked()
    yield poller
    store.end()
    poller.close()


def test_at_first_everybody_looks_since_nobody_knows_what_came_before(poller: Poller, heard: list[Any]) -> None:
    assert heard == [None]


def test_what_others_append_is_told_once(poller: Poller, store: Steered, heard: list[Any]) -> None:
    heard.clear()

    store.log += ["job/a", "job/a", "topic/b"]
    store.answer(True)
    store.log += ["job/c"]
    store.answer(True)

    assert heard == [{"job/a", "topic/b"}, {"job/c"}]


def test_a_commit_that_appended_nothing_wakes_nobody(poller: Poller, store: Steered, heard: list[Any]) -> None:
    heard.clear()

    store.answer(True)
    store.answer(False)

    assert heard == []


def test_what_this_process_has_told_already_is_not_told_again(poller: Poller, store: Steered, heard: list[Any]) -> None:
    heard.clear()

    store.log += ["job/mine", "job/mine", "job/theirs"]
    poller.told(2, 4)
    store.answer(True)

    assert heard == [{"job/theirs"}]


def test_what_another_process_appended_before_it_is_told_nevertheless(
    poller: Poller, store: Steered, heard: list[Any]
) -> None:
    heard.clear()

    store.log += ["job/theirs", "job/mine"]
    poller.told(3, 4)
    store.answer(True)
    store.answer(True)

    assert len(heard) == 1
    assert "job/theirs" in heard[0]


def test_what_this_process_tells_late_takes_nothing_back(poller: Poller, store: Steered, heard: list[Any]) -> None:
    store.log += ["job/mine", "job/theirs"]
    store.answer(True)
    heard.clear()

    poller.told(2, 3)
    store.answer(True)

    assert heard == []


def test_where_very_much_was_appended_everybody_looks_and_it_goes_on_behind_that(
    poller: Poller, store: Steered, heard: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "_MANY", 3)
    heard.clear()

    store.log += ["job/a", "job/b", "job/c", "job/d"]
    store.answer(True)
    store.log += ["job/e"]
    store.answer(True)

    assert heard == [None, {"job/e"}]


def test_when_the_store_cannot_be_asked_everybody_looks_and_nothing_is_lost(
    poller: Poller, store: Steered, heard: list[Any]
) -> None:
    heard.clear()

    store.log += ["job/a"]
    store.answer(Unavailable("gone"))
    store.answer(True)

    assert heard == [None, {"job/a"}]


def test_nobody_is_asked_while_nobody_waits_and_the_next_who_waits_hears_what_came_meanwhile(
    poller: Poller, store: Steered, heard: list[Any]
) -> None:
    heard.clear()
    poller.fewer()
    store._answers.put(False)  # the last question
    give_up_at = time.monotonic() + PATIENCE_S
    while not poller._changed._waiters:  # type: ignore[attr-defined]
        assert time.monotonic() < give_up_at, "it goes on asking"
        time.sleep(0.001)

    store.log += ["job/a"]
    poller.more()
    store.asked()
    store.answer(True)

    assert heard == [{"job/a"}]
