"""The drawing of who held what, as pure functions: no terminal, no file."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest

from coordinator.commands import (
    CancelJob,
    ClaimJob,
    FailJob,
    NoteProgress,
    RejectJob,
    ReleaseJob,
    RenewClaim,
    RevokeClaim,
    SubmitJob,
)
from coordinator.sentences import Narrator
from coordinator.stores.interface import LogRow
from coordinator.stores.selection import Unreadable
from coordinator.surfaces.colours import Colours
from coordinator.surfaces.lanes import ASCII, UNICODE, Symbols, lanes
from coordinator.surfaces.picture import Picture, picture
from coordinator.surfaces.reading import told
from tests.story import added, late_worker
from tests.support import Workspace


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def drawn(rows: Iterable[LogRow | Unreadable]) -> Picture:
    narrator = Narrator()
    return picture(told(rows, narrator), narrator)


def lines(rows: Iterable[LogRow | Unreadable], width: int = 80, symbols: Symbols = UNICODE) -> list[str]:
    return list(lanes(drawn(rows), width, symbols, Colours(False)))


def lane_of(name: str, lines: list[str]) -> str:
    (line,) = [line for line in lines if line.startswith(f"{name} ")]
    return line


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("symbols", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_the_story_of_the_late_worker_is_read_off_its_lanes(width: int, symbols: Symbols) -> None:
    marks = symbols.marks

    shown = lines(late_worker().log(), width, symbols)

    ada, bob = lane_of("ada", shown), lane_of("bob", shown)
    lapsed, refused = ada.index(marks["lapsed"]), ada.index(marks["refused"])
    assert ada.index(marks["claimed"]) < ada.index("parser 1") < lapsed
    assert lapsed < bob.index(marks["claimed"]) < refused < bob.index(marks["submitted"])
    assert lane_of("carol", shown).index(marks["accepted"]) > bob.index(marks["submitted"])
    assert max(map(len, shown[:8])) <= width


def test_a_drawing_says_when_and_what_its_marks_mean_and_tells_what_went_wrong() -> None:
    shown = lines(late_worker().log(), 72)

    assert shown[:2] == ["2026-12-01 10:40:00 to 2026-12-01 10:43:24 (UTC+0000)", ""]
    assert shown[2].split() == ["10:41", "10:42", "10:43"]
    assert [found.start() for found in re.finditer("┬", shown[3])] == [
        shown[2].index(label) for label in ("10:41", "10:42", "10:43")
    ]
    assert shown[9:11] == [
        "┣ claimed   • renewed   ◆ noted   ▶ submitted   ╳ lapsed   ▷ still held",  # noqa: RUF001
        "✔ accepted   ! refused",
    ]
    assert [line.split()[0] for line in shown[12:]] == ["6", "7", "10"]
    assert shown[-1].endswith("this is attempt 1's token; attempt 2 is bob's since 10:42:07")


def test_a_bar_lies_where_its_times_lie() -> None:
    rows = late_worker().log()
    of_ada = drawn(rows).lanes["ada"].bars[0]

    assert of_ada.start is not None
    assert of_ada.end is not None
    assert ((of_ada.start - rows[0].at) / 1_000_000, (of_ada.end - rows[0].at) / 1_000_000) == (3, 82)


ENDS: list[tuple[str, str, str]] = [
    ("submitted", "▶", "S"),
    ("failed", "✗", "F"),
    ("released", "◁", "<"),
    ("revoked", "⊘", "V"),
    ("cancelled", "⊗", "C"),
    ("held", "▷", ">"),
]


def ended(how: str) -> list[LogRow]:
    workspace = Workspace()
    workspace.do("planner", added("job", task="t"))
    workspace.clock.advance(10)
    mine = {"job": "job", "token_digest": workspace.do("ada", claim("job")).token.digest}
    workspace.clock.advance(20)
    match how:
        case "submitted":
            workspace.do("ada", SubmitJob(**mine, result=msgspec.Raw(b"{}")))
        case "failed":
            workspace.do("ada", FailJob(**mine, reason="no"))
        case "released":
            workspace.do("ada", ReleaseJob(**mine))
        case "revoked":
            workspace.do("boss", RevokeClaim(job="job", version=2, reason="no"))
        case "cancelled":
            workspace.do("boss", CancelJob(job="job", version=2))
        case _:
            pass
    workspace.clock.advance(10)
    workspace.do("planner", added("another", task="t"))
    return workspace.log()


def claim(job: str, version: int = 1) -> ClaimJob:
    return ClaimJob(job=job, version=version, lease_us=60_000_000)


@pytest.mark.parametrize(("how", "mark", "plain"), ENDS)
def test_each_end_of_a_claim_has_a_mark_of_its_own(how: str, mark: str, plain: str) -> None:
    rows = ended(how)

    ada, in_ascii = lane_of("ada", lines(rows)), lane_of("ada", lines(rows, symbols=ASCII))

    assert re.fullmatch(rf"ada +┣job 1━+{mark}", ada)
    assert ada.index("┣") == 5 + 74 // 4
    assert ada.index(mark) == (5 + 74 if how == "held" else 5 + 74 * 3 // 4)
    assert re.fullmatch(rf"ada +\[job 1=+{re.escape(plain)}", in_ascii)


def test_a_rejection_is_a_mark_in_the_lane_of_the_reviewer() -> None:
    workspace = late_worker()
    workspace.do("planner", added("more", task="t"))
    held = workspace.do("eve", claim("more")).token.digest
    workspace.do("eve", SubmitJob(job="more", token_digest=held, result=msgspec.Raw(b"{}")))
    workspace.clock.advance(10)
    workspace.do("frank", RejectJob(job="more", version=3, reason="no"))

    assert lane_of("frank", lines(workspace.log())).split() == ["frank", "✘"]


def test_claims_of_one_worker_at_the_same_time_lie_below_each_other() -> None:
    workspace = Workspace()
    for job in ("one", "two"):
        workspace.do("planner", added(job, task="t"))
        workspace.do("ada", claim(job))
        workspace.clock.advance(5)
    workspace.do("planner", added("three", task="t"))

    shown = lines(workspace.log())

    first = shown.index(lane_of("ada", shown))
    assert "one 1" in shown[first]
    assert re.fullmatch(r" +┣two 1━+▷", shown[first + 1])


def test_where_there_is_no_room_trouble_is_drawn_first_and_the_rest_is_counted() -> None:
    workspace = Workspace()
    for number in range(20):
        workspace.do("planner", added(f"job {number}", task="t"))
        held = workspace.do("ada", claim(f"job {number}")).token.digest
        workspace.do("ada", FailJob(job=f"job {number}", token_digest=held, reason="no")) if number == 19 else None
        workspace.do("ada", ReleaseJob(job=f"job {number}", token_digest=held)) if number < 19 else None
    workspace.clock.advance(10)
    workspace.do("planner", added("late", task="t"))

    shown = lines(workspace.log())

    assert "✗" in lane_of("ada", shown)
    assert "14 more lie on the same places" in "\n".join(shown)


def test_a_claim_that_began_before_what_is_drawn_comes_from_the_left() -> None:
    rows = late_worker().log()

    shown = lines([row for row in rows if row.position >= 9])

    assert re.fullmatch(r"bob {4}━parser 2•━+▶", lane_of("bob", shown))


def test_the_lapse_of_a_claim_that_began_before_is_in_the_lane_of_who_held_it() -> None:
    rows = late_worker().log()
    narrator = Narrator(lambda stream, before: [])
    for row in rows[:6]:
        list(told([row], narrator))

    lapsed = picture(told(rows[6:7], narrator), narrator)

    assert list(lapsed.lanes) == ["ada"]


def test_wide_names_keep_the_columns_straight() -> None:
    workspace = Workspace()
    workspace.do("planner", added("木の本", task="t"))
    held = workspace.do("林さん", claim("木の本")).token.digest
    workspace.clock.advance(26)
    workspace.do("林さん", NoteProgress(job="木の本", token_digest=held, note=msgspec.Raw(b"{}")))
    workspace.clock.advance(25)
    workspace.ask("ada", claim("木の本", 2))

    shown = lines(workspace.log(), 60)

    assert lane_of("林さん", shown) == "林さん  ┣木の本 1" + "━" * 17 + "◆" + "━" * 24 + "▷"
    assert lane_of("ada", shown) == "ada" + " " * 56 + "!"


def test_what_agents_wrote_cannot_touch_the_terminal_through_a_drawing() -> None:
    workspace = Workspace()
    workspace.do("planner", added("job", task="t"))
    held = workspace.do("a\u202eda", claim("job")).token.digest
    workspace.clock.advance(30)
    workspace.do("a\u202eda", RenewClaim(job="job", token_digest=held, lease_us=60_000_000))
    workspace.do("a\u202eda", FailJob(job="job", token_digest=held, reason="\x9b2J"))

    shown = "\n".join(lines(workspace.log()))

    assert r"a\u202eda" in shown
    assert r"\x9b2J" in shown
    assert shown.replace("\n", "").isprintable()


def test_one_event_alone_can_be_drawn_and_nothing_at_all_too() -> None:
    workspace = Workspace()
    workspace.do("planner", added("job", task="t"))

    assert lines(workspace.log())[0].startswith("2026-01-01 00:00:00 to")
    assert lines([]) == []


@pytest.mark.parametrize("seconds", [0.01, 3, 45, 600, 7_200, 86_400, 40 * 86_400, 4_000 * 86_400])
def test_the_axis_has_a_few_ticks_on_round_times_whatever_the_span(seconds: float) -> None:
    workspace = Workspace()
    workspace.do("planner", added("job", task="t"))
    workspace.clock.advance(seconds)
    workspace.do("planner", added("another", task="t"))

    times, ruler = lines(workspace.log(), 80)[2:4]

    labels: list[Any] = re.findall(r"\S+", times)
    assert 1 <= len(labels) <= ruler.count("┬") <= 12
    assert [times.index(label) for label in labels][:1] == [ruler.index("┬")]
