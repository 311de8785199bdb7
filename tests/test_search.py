"""The search that follows the log finds what a transaction would, whenever it looked before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

import coordinator.search
from coordinator import commands
from coordinator.answers import ClaimGranted
from coordinator.clock import ManualClock
from coordinator.commands import AnyCommand
from coordinator.decisions.claims import claim_next
from coordinator.decisions.moment import Moment
from coordinator.errors import NewerFormat, Unavailable
from coordinator.paths import normalise
from coordinator.search import Found, Search
from coordinator.stores.memory import MemoryStore, _Contents  # pyright: ignore[reportPrivateUsage]
from coordinator.tokens import Nonce
from coordinator.views import Views
from events.envelope import Envelope
from projections.jobs import JOBS
from tests.support import Workspace

LEASE_US = 60_000_000
PATHS = (".", "src", "src/a", "src/a/x", "src/b", "SRC/B/y", "src0", "doc", "doc/a")


def add(job: str, *paths: str, priority: int = 0, **fields: Any) -> commands.AddJob:
    values = {"max_attempts": 9, "review": "anyone", "payload": Raw(b"{}"), **fields}
    return commands.AddJob(job=job, paths=normalise("paths", paths), priority=priority, **values)


def claim(job: str, version: int = 1) -> commands.ClaimJob:
    return commands.ClaimJob(job=job, version=version, lease_us=LEASE_US)


def find(work: Workspace, search: Search, count: int = 1) -> Found:
    for _ in range(1_000):
        found = work.store.read(lambda snapshot: search.step(snapshot, count))
        if found is not None:
            return found
    raise AssertionError("the search never ends")


def claimed_in_turn(work: Workspace, count: int) -> list[str]:
    """The jobs that so many `claim_next` would be given, one after another."""

    def look(snapshot: Any) -> list[str]:
        views, position, found = Views(snapshot), snapshot.head().position, list[str]()
        while len(found) < count:
            moment = Moment("somebody", snapshot.head().at, Nonce(f"nonce {len(found)}", f"digest {len(found)}"))
            events = claim_next(commands.ClaimNext(lease_us=LEASE_US), views, moment)
            if not events:
                break
            position += 1
            views.evolve([Envelope(position, moment.now, "somebody", None, None, None, None, position, events[0])])
            found.append(events[0].stream.removeprefix("job/"))
        return found

    return work.store.read(look)


class Player:
    """Does in a workspace what fits there, so that histories come far."""

    def __init__(self) -> None:
        self.work = Workspace(MemoryStore(), ManualClock())
        self.tokens: dict[str, str] = {}

    def do(self, what: str, number: int, paths: tuple[str, ...], priority: int) -> None:
        work = self.work
        if what == "wait":
            work.clock.advance(25)
            work.batch()
        elif what == "add":
            work.ask("ada", add(f"job-{number}", *paths, priority=priority))
        elif what == "next":
            self._claim(commands.ClaimNext(lease_us=LEASE_US))
        elif fitting := self._fitting(what):
            job, version = fitting[number % len(fitting)]
            self._do(what, job, version, paths, priority)

    def _do(self, what: str, job: str, version: int, paths: tuple[str, ...], priority: int) -> None:
        shown = {"job": job, "token_digest": self.tokens.get(job, "")}
        changed: dict[str, Any] = {"priority": priority} if priority else {"paths": normalise("paths", paths)}
        asked: dict[str, AnyCommand] = {
            "claim": claim(job, version),
            "revise": commands.ReviseJob(job=job, version=version, **changed),
            "reserve": commands.ReservePaths(**shown, paths=normalise("paths", paths or ("doc",))),
            "note": commands.NoteProgress(**shown, note=Raw(b"{}")),
            "release": commands.ReleaseJob(**shown),
            "fail": commands.FailJob(**shown, reason="no luck"),
            "submit": commands.SubmitJob(**shown, result=Raw(b"{}")),
            "revoke": commands.RevokeClaim(job=job, version=version, reason="too slow"),
            "accept": commands.AcceptJob(job=job, version=version),
            "reject": commands.RejectJob(job=job, version=version, reason="no"),
            "cancel": commands.CancelJob(job=job, version=version),
            "reopen": commands.ReopenJob(job=job, version=version),
        }
        if what == "claim":
            self._claim(asked[what])
        else:
            self.work.ask("ada", asked[what])

    def _claim(self, command: AnyCommand) -> None:
        answer = self.work.ask("ada", command).answer
        if isinstance(answer, ClaimGranted):
            self.tokens[answer.job.id] = answer.token.digest

    def _fitting(self, what: str) -> list[tuple[str, int]]:
        states = {
            "claim": "ready",
            "revise": "ready",
            "accept": "submitted",
            "reject": "submitted",
            "cancel": "ready claimed submitted",
            "reopen": "accepted failed cancelled",
        }.get(what, "claimed")
        rows = self.work.store.read(
            lambda snapshot: [
                JOBS.decode(row.body) for state in states.split() for row in snapshot.bucket("jobs", state, limit=100)
            ]
        )
        return [(row.id, row.version) for row in rows]


_whats = (
    "add add add add add add claim claim claim next next revise revise reserve note release release fail "
    "submit submit revoke accept reject cancel reopen wait"
)
_attempts = st.tuples(
    st.sampled_from(_whats.split()),
    st.integers(0, 7),
    st.lists(st.sampled_from(PATHS), max_size=3).map(tuple),
    st.integers(0, 2),
)
_looks = st.tuples(st.sampled_from(["step", "step", "find"]), st.integers(1, 3))


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 50).flatmap(
        lambda length: st.lists(st.one_of(_attempts, _attempts, _looks), min_size=length, max_size=length)
    ),
    st.sampled_from([(1, 0, 5), (3, 2, 2), (256, 256, 1_000)]),
)
def test_it_finds_what_would_be_claimed_whatever_happened_since_it_looked_last(
    doings: list[Any], limits: tuple[int, int, int]
) -> None:
    page, steps, behind = limits
    player = Player()
    work, search = player.work, Search(player.work.clock)

    with mock.patch.multiple(coordinator.search, _PAGE=page, _STEPS=steps, _BEHIND=behind):
        for doing in [*doings, ("find", 9)]:
            match doing:
                case "step", count:
                    work.store.read(lambda snapshot, count=count: search.step(snapshot, count))
                case "find", count:
                    assert find(work, search, count).jobs == claimed_in_turn(work, count)
                case what, number, paths, priority:
                    player.do(what, number, paths, priority)


def busy(*paths: str) -> Workspace:
    """One job is claimed, with `src`."""
    work = Workspace()
    work.do("ada", add("held", "src"))
    work.do("ada", claim("held"))
    return work


def test_where_there_is_nothing_it_finds_nothing_and_nothing_is_due() -> None:
    work = Workspace()

    assert find(work, Search(work.clock)) == Found([], False, None)


def test_what_was_claimed_and_freed_since_the_last_search_counts() -> None:
    work = Workspace()
    work.do("ada", add("parser", "src"))
    work.do("ada", add("lexer", "src/a"))
    search = Search(work.clock)

    at_first = find(work, search, 9).jobs
    token = work.do("ada", claim("parser")).token.digest
    while_claimed = find(work, search, 9).jobs
    work.do("ada", commands.SubmitJob(job="parser", token_digest=token, result=Raw(b"{}")))
    at_last = find(work, search, 9).jobs

    assert (at_first, while_claimed, at_last) == (["parser"], [], ["lexer"])


def test_a_search_has_read_all_that_was_appended_before_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator.search, "_PAGE", 4)
    work, search = Workspace(), Search(ManualClock())
    find(work, search)
    work.batch(*[work.request("ada", add(f"job-{n}", priority=n)) for n in range(10)])

    assert find(work, search).jobs == ["job-9"]


def test_it_tells_when_the_next_lease_runs_out() -> None:
    work = busy()
    search = Search(work.clock)

    work.clock.advance(45)
    before = find(work, search)
    work.clock.advance(20)
    after = find(work, search)

    assert (before.due_in, after.due_in) == (15_000_000, -5_000_000)


@pytest.mark.parametrize(
    ("state", "is_open"),
    [("ready", True), ("claimed", True), ("submitted", True), ("blocked", False), ("accepted", False)],
)
def test_jobs_that_are_ready_claimed_or_submitted_are_open(state: str, is_open: bool) -> None:
    work = Workspace()
    work.do("ada", add("parser", depends_on=()))
    if state in ("claimed", "submitted", "accepted"):
        token = work.do("ada", claim("parser")).token.digest
        if state != "claimed":
            work.do("ada", commands.SubmitJob(job="parser", token_digest=token, result=Raw(b"{}")))
        if state == "accepted":
            work.do("bob", commands.AcceptJob(job="parser", version=3))
    if state == "blocked":
        work.do("ada", add("lexer", depends_on=("parser",)))
        work.do("ada", commands.CancelJob(job="parser", version=1))

    assert find(work, Search(work.clock)).open is is_open


def noting(what: list[Any], read: Callable[..., Any]) -> Callable[..., Any]:
    """A method that reads, and notes what it is asked for."""

    def note(contents: Any, asked: Any, *more: Any, **how: Any) -> Any:
        what.append(asked)
        return read(contents, asked, *more, **how)

    return note


def test_a_later_search_reads_only_what_was_appended_since(monkeypatch: pytest.MonkeyPatch) -> None:
    work, read = busy(), list[Any]()
    work.batch(*[work.request("ada", add(f"job-{n}", f"src/{n}")) for n in range(30)])
    search = Search(work.clock)
    find(work, search)
    for name in ("bucket", "range", "rows"):
        monkeypatch.setattr(_Contents, name, noting(read, getattr(_Contents, name)))

    work.do("ada", add("doc", "doc"))
    read.clear()
    found = find(work, search)

    assert found.jobs == ["doc"]
    assert read == [[("jobs", "doc")], "leases"]


def test_notes_and_renewals_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    work, read = busy(), list[Any]()
    work.do("ada", add("other", "doc"))
    token = work.do("ada", claim("other")).token.digest
    search = Search(work.clock)
    find(work, search)
    monkeypatch.setattr(_Contents, "rows", noting(read, _Contents.rows))

    shown = {"job": "other", "token_digest": token}
    work.batch(
        work.request("ada", commands.NoteProgress(**shown, note=Raw(b"{}"))),
        work.request("ada", commands.RenewClaim(**shown, lease_us=None)),
    )
    read.clear()
    find(work, search)

    assert read == [[]]


def test_what_is_appended_while_it_reads_for_the_first_time_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator.search, "_PAGE", 4)
    monkeypatch.setattr(coordinator.search, "_BEHIND", 0)
    work = busy()
    work.batch(*[work.request("ada", add(f"job-{n}", f"src/{n}", priority=1)) for n in range(20)])
    work.do("ada", add("docs", "doc"))
    token = work.do("ada", claim("docs")).token.digest
    search = Search(work.clock)

    for number in range(3):
        assert work.store.read(lambda snapshot: search.step(snapshot, 9)) is None
        work.do("ada", add(f"urgent-{number}", f"test/{number}", priority=2))
    work.do("ada", commands.ReleaseJob(job="docs", token_digest=token))

    assert find(work, search, 9).jobs == ["urgent-0", "urgent-1", "urgent-2", "docs"]


def test_a_first_search_ends_although_more_is_appended_than_would_make_it_begin_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator.search, "_PAGE", 4)
    monkeypatch.setattr(coordinator.search, "_BEHIND", 0)
    work = Workspace()
    work.do("ada", add("held", *[f"src/{n}" for n in range(20)]))
    work.do("ada", claim("held"))
    search, found = Search(work.clock), None

    for number in range(40):
        work.batch(*[work.request("ada", add(f"{n}-of-{number}", depends_on=("held",))) for n in range(3)])
        found = found or work.store.read(lambda snapshot: search.step(snapshot, 1))

    assert found is not None


def test_a_search_that_fell_far_behind_begins_anew_rather_than_read_all_that_was_appended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, search, read = busy(), Search(ManualClock()), list[int]()
    monkeypatch.setattr(coordinator.search, "_BEHIND", 20)
    find(work, search)
    work.batch(*[work.request("ada", add(f"job-{n}", f"src/{n}")) for n in range(21)])
    end = len(work.log())
    events = _Contents.events

    def note(contents: Any, *, after: int, limit: int) -> Any:
        read.append(after)
        return events(contents, after=after, limit=limit)

    monkeypatch.setattr(_Contents, "events", note)

    find(work, search)

    assert read == [end]


def test_what_was_known_is_forgotten_when_the_views_were_made_anew() -> None:
    work = busy()
    work.do("ada", add("parser", "src/a"))
    work.do("ada", add("lexer", "doc"))
    search = Search(work.clock)
    assert find(work, search).jobs == ["lexer"]

    def made_anew(transaction: Any) -> None:
        """Other folds see it in another way: `src` is not held, and there is no lexer."""
        head = transaction.head()
        transaction.delete([("reservations", "src"), ("jobs", "lexer")])
        transaction.append([], head._replace(generation=head.generation + 1))

    work.store.write(made_anew, still_wanted=lambda: True)

    assert find(work, search).jobs == ["parser"]


def test_it_goes_no_further_when_newer_software_has_taken_the_workspace_over() -> None:
    work = busy()
    search = Search(work.clock)
    find(work, search)

    work.store.write(
        lambda transaction: transaction.append([], transaction.head()._replace(folds=99)), still_wanted=lambda: True
    )

    with pytest.raises(NewerFormat):
        find(work, search)


@pytest.mark.parametrize("broken", ["head", "range", "bucket", "events", "rows"])
def test_a_step_that_failed_can_be_done_again(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = busy()
    search = Search(work.clock)
    if broken in ("events", "rows"):
        find(work, search)
    work.do("ada", add("parser", "src/a"))
    work.do("ada", add("lexer", "doc"))

    def fail(*_: object, **__: object) -> None:
        raise Unavailable("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(_Contents, broken, fail)
        with pytest.raises(Unavailable):
            find(work, search)

    assert find(work, search, 2).jobs == ["lexer"]
