"""`coordinator demo` as people run it: real processes, and a log that tells the story it promises."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordinator import Agent, Claim, Coordinator, LogEntry
from coordinator.surfaces.demo.checks import NotSo, chain_holds, handed_out_again, replays, reviewed_once
from coordinator.surfaces.demo.drive import Interrupted
from coordinator.surfaces.demo.index import Definition, FileIndex, PieceIndex, index_file
from coordinator.surfaces.demo.plan import MERGE, Task, plan
from coordinator.surfaces.demo.review import objection_to_file
from coordinator.surfaces.demo.reviewer import Reviewer
from coordinator.surfaces.demo.stage import HasRead
from coordinator.surfaces.demo.submissions import SUBMISSIONS, Submission
from coordinator.surfaces.demo.workspace import read_workspace
from coordinator.testing import ManualClock, memory_coordinator
from events.jobs import JobAccepted
from events.messages import MessagesAcknowledged, MessagesDelivered, MessageSent, ReaderOpened
from events.union import AnyEvent

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 60

MODULE = """\
class Shelf{n}:
    @property
    def size(self):
        return len([book for book in (lambda: [])()])

    async def fetch(self):
        def inner(): pass


if True:
    def outside(): pass
"""


class Run(NamedTuple):
    folder: Path
    database: Path
    status: int
    out: dict[str, Any]
    err: str
    log: list[LogEntry]

    def of(self, job: str) -> list[LogEntry]:
        return [entry for entry in self.log if entry.stream == f"job/{job}"]

    def of_reader(self) -> list[LogEntry]:
        return [entry for entry in self.log if entry.stream == "reader/submissions/reviewer"]

    def worker(self, type_: str) -> tuple[str, str, int]:
        """Worker, job and process of one of the two misfortunes, as the driver told of them: SIGSTOP or SIGKILL."""
        found = re.search(rf"(worker-\d) \(process (\d+)\) holds (\S+): .*{type_}", self.err)
        assert found is not None, self.err
        return found[1], found[3], int(found[2])


def write_modules(folder: Path, count: int = 12) -> Path:
    """Modules, two of them in a package and one that does not parse, in files of all lengths."""
    (folder / "shop").mkdir(parents=True)
    for n in range(count - 3):
        (folder / f"module{n}.py").write_text(MODULE.format(n=n) * (n + 1))
    (folder / "shop" / "cart.py").write_text(MODULE.format(n=100))
    (folder / "shop" / "orders.py").write_text("async def order(): pass\n")
    (folder / "broken.py").write_text("def broken(:\n")
    return folder


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "coordinator", "demo", *map(str, arguments)]


def pid(entry: LogEntry) -> int:
    return int((entry.origin or "").split("/")[-2])


def number(entry: LogEntry, field: str) -> int:
    found = entry.body[field]
    assert isinstance(found, int)
    return found


async def log_of(database: Path) -> list[LogEntry]:
    async with Coordinator.open(database) as coordinator:
        return [entry async for entry in coordinator.log()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("demo")
    folder, database = write_modules(place / "code"), place / "work.db"

    ended = subprocess.run(
        command(folder, "--database", database, "--json"), cwd=ROOT, timeout=TIMEOUT_S, capture_output=True, text=True
    )

    assert ended.stdout, ended.stderr
    log = asyncio.run(log_of(database))
    return Run(folder, database, ended.returncode, json.loads(ended.stdout), ended.stderr, log)


def test_all_that_the_demo_promises_holds_on_a_folder_of_small_modules(run: Run) -> None:
    failed = [check for check in run.out["checks"] if not check["held"]]

    assert (run.status, failed) == (0, [])
    assert run.out["ok"] is True
    assert (run.out["jobs"], run.out["files"], run.out["events"]) == (12, 12, len(run.log))
    assert next(check["detail"] for check in run.out["checks"] if check["name"] == "replay").startswith("ok")


def test_every_job_was_accepted_exactly_once_by_the_reviewer(run: Run) -> None:
    accepted = Counter((entry.stream, entry.actor) for entry in run.log if entry.type == "job.accepted")
    added = [entry.stream for entry in run.log if entry.type == "job.added"]

    assert accepted == {(stream, "reviewer"): 1 for stream in added}
    assert len(added) == 12


def test_the_worker_that_stalled_lapsed_was_replaced_and_was_refused_though_it_knew_the_version(run: Run) -> None:
    worker, job, process = run.worker("SIGSTOP")

    story = [entry for entry in run.of(job) if entry.type not in ("job.added", "job.renewed")]

    claimed, lapsed, reclaimed, refused, submitted, accepted = story
    assert [entry.type for entry in story] == [
        *("job.claimed", "job.lapsed", "job.claimed"),
        *("command.refused", "job.submitted", "job.accepted"),
    ]
    assert (claimed.actor, pid(claimed), claimed.body["attempt"]) == (worker, process, 1)
    assert (lapsed.actor, lapsed.body["attempt"]) == (None, 1)
    assert reclaimed.body["attempt"] == 2
    assert reclaimed.actor not in (worker, None)
    assert (refused.actor, pid(refused), refused.body["code"]) == (worker, process, "token_superseded")
    assert refused.body["command"] == "submit_job"
    assert refused.context == f"knows version {reclaimed.body['version']}"
    assert (submitted.actor, accepted.body["attempt"]) == (reclaimed.actor, 2)


def test_the_job_of_the_killed_worker_was_done_by_another_and_the_worker_started_anew_went_on(run: Run) -> None:
    worker, job, process = run.worker("SIGKILL")

    types = [(entry.type, entry.actor) for entry in run.of(job) if entry.type not in ("job.added", "job.renewed")]
    processes = {pid(entry) for entry in run.log if entry.actor == worker and entry.type == "job.claimed"}

    heir = types[2][1]
    assert types == [
        ("job.claimed", worker),
        ("job.lapsed", None),
        ("job.claimed", heir),
        ("job.submitted", heir),
        ("job.accepted", "reviewer"),
    ]
    assert heir != worker
    assert process in processes
    assert len(processes) == 2


def test_the_submit_whose_answer_was_lost_had_one_effect(run: Run) -> None:
    name = re.search(r"(worker-\d) \(process \d+\) lost the answer", run.err)
    assert name is not None, run.err

    receipts = [
        entry
        for entry in run.log
        if entry.actor == name[1] and re.fullmatch(r"demo/.+/\d+/submit", entry.receipt or "")
    ]

    assert [entry.type for entry in receipts] == ["job.submitted"]
    assert Counter(entry.type for entry in run.log if entry.stream == receipts[0].stream)["job.submitted"] == 1


def test_the_killed_reviewer_was_started_anew_and_handed_the_page_again(run: Run) -> None:
    killed = re.search(
        r"reviewer \(process (\d+)\) has read messages 1 to (\d+) and acknowledged none.*SIGKILL", run.err
    )
    assert killed is not None, run.err
    process, last = int(killed[1]), int(killed[2])

    story = run.of_reader()

    opened, delivered, reopened, again = story[:4]
    assert [entry.type for entry in story[:4]] == ["reader.opened", "messages.delivered"] * 2
    assert (pid(opened), pid(delivered), delivered.body["last"]) == (process, process, last)
    assert pid(reopened) == pid(again) != process
    assert (reopened.body["session"], reopened.body["acknowledged"]) == (2, 0)
    assert again.body["first"] == 1
    assert number(again, "last") >= last >= 2


def test_the_killed_reviewer_left_a_page_half_reviewed_and_its_successor_reviewed_the_rest(run: Run) -> None:
    _, delivered = run.of_reader()[:2]
    page = {
        f"job/{entry.body['under']}"
        for entry in run.log
        if entry.type == "message.sent" and number(entry, "number") <= number(delivered, "last")
    }

    reviews = [entry for entry in run.log if entry.type == "job.accepted" and entry.stream in page]

    assert Counter(pid(entry) == pid(delivered) for entry in reviews) == {True: 1, False: len(page) - 1}


def test_every_message_of_the_topic_is_acknowledged_at_the_end(run: Run) -> None:
    sent = [entry for entry in run.log if entry.type == "message.sent"]

    acknowledged = [entry.body["number"] for entry in run.log if entry.type == "messages.acknowledged"]

    assert acknowledged[-1] == len(sent) == 13  # one of each job, and that nothing more will come
    assert sent[-1].actor == "planner"


def test_the_timeline_tells_of_the_page_that_was_handed_out_twice(run: Run) -> None:
    told = [line["sentence"] for line in run.out["story"] if line["subject"] == "reader/submissions/reviewer"]

    assert [re.sub(r"to \d+|message [1-9]\d*", "…", sentence) for sentence in told] == [
        *("opened session 1, behind message 0", "was handed messages 1 …"),
        *("opened session 2, behind message 0", "was handed messages 1 …", "acknowledged up to …"),
    ]


async def test_a_message_whose_worker_died_before_it_submitted_holds_up_no_review(tmp_path: Path) -> None:
    clock = ManualClock()
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("class A: pass\n")

    async def work(worker: Agent, *, dies: bool = False) -> Claim:
        claim = await worker.claim_next()
        assert claim is not None
        await claim.send(SUBMISSIONS, Submission(claim.job.id))
        if not dies:
            await claim.submit(PieceIndex({claim.job.id: index_file(tmp_path / claim.job.id)}))
        return claim

    async with asyncio.timeout(15), memory_coordinator(clock) as coordinator, asyncio.TaskGroup() as group:
        ada, bob = coordinator.agent("ada"), coordinator.agent("bob")
        for name in ("a.py", "b.py"):
            await ada.add_job(name, Task(files=[name]), priority=-ord(name[0]))
        reviewer = Reviewer(coordinator.agent("reviewer"), coordinator, tmp_path, tmp_path / "work.db")
        lost = await work(ada, dies=True)
        clock.advance(lost.lease_s + 1)
        claim = await bob.claim("b.py", version=1)

        group.create_task(reviewer.review_all())
        await claim.send(SUBMISSIONS, Submission("b.py"))
        await claim.submit(PieceIndex({"b.py": index_file(tmp_path / "b.py")}))
        await coordinator.wait_for_job("b.py")
        held_up = (await coordinator.job("a.py")).state
        await work(bob)
        await coordinator.wait_for_job("a.py")
        await ada.send(SUBMISSIONS, Submission())

    assert (lost.job.id, held_up) == ("a.py", "ready")


@pytest.mark.parametrize(
    ("without", "problem"),
    [
        (lambda event: isinstance(event, MessageSent) and event.number == 3, "no message was sent of attempt"),
        (lambda event: isinstance(event, JobAccepted) and event.job == MERGE, "index/all was reviewed 0 times"),
    ],
    ids=["message", "review"],
)
def test_a_submission_without_its_message_or_its_review_is_found(
    run: Run, without: Callable[[AnyEvent], bool], problem: str
) -> None:
    log = read_workspace(run.database).envelopes
    assert reviewed_once(log) == "12 of 12"

    with pytest.raises(NotSo, match=problem):
        reviewed_once([envelope for envelope in log if not without(envelope.event)])


@pytest.mark.parametrize(
    ("without", "problem"),
    [
        (lambda event: isinstance(event, MessagesDelivered) and event.session == 2, "was handed 0 of 13 messages"),
        (lambda event: isinstance(event, ReaderOpened) and event.session == 2, "1 sessions were opened"),
        (lambda event: isinstance(event, MessagesAcknowledged) and event.number == 13, "were acknowledged"),
    ],
    ids=["delivered", "opened", "acknowledged"],
)
def test_a_page_that_was_not_handed_out_again_is_found(
    run: Run, without: Callable[[AnyEvent], bool], problem: str
) -> None:
    log = read_workspace(run.database).envelopes
    _, delivered, reopened = run.of_reader()[:3]
    interrupted = Interrupted(
        pid=pid(delivered),
        read=HasRead(first=1, last=number(delivered, "last")),
        restarted_as=pid(reopened),
    )
    assert handed_out_again(interrupted, log).endswith(
        "all 13 were acknowledged, the last of which says that no more submissions come"
    )

    with pytest.raises(NotSo, match=problem):
        handed_out_again(interrupted, [envelope for envelope in log if not without(envelope.event)])


def test_the_merged_index_names_what_the_files_define(run: Run) -> None:
    index = json.loads(run.database.with_name("work.db.index.json").read_text())

    assert index["shop/orders.py"] == {"definitions": [["order", "async function", 1]]}
    assert index["broken.py"]["problem"].startswith("SyntaxError in line 1")
    assert index["module0.py"]["definitions"] == [
        ["Shelf0", "class", 1],
        ["Shelf0.size", "function", 3],
        ["Shelf0.fetch", "async function", 6],
        ["Shelf0.fetch.inner", "function", 7],
        ["outside", "function", 11],
    ]


def test_the_timeline_says_who_was_refused_and_why(run: Run) -> None:
    worker, job, _ = run.worker("SIGSTOP")

    told = [line for line in run.out["story"] if "refused" in line["sentence"]]

    assert [(line["actor"], line["subject"]) for line in told] == [(worker, job)]
    assert re.search(r"this is attempt 1's token; attempt 2 is worker-\d's", told[0]["sentence"])


def test_a_row_changed_behind_the_logs_back_is_found(run: Run, tmp_path: Path) -> None:
    database = copy_of(run.database, tmp_path)
    assert replays(read_workspace(database)).startswith("ok")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE views SET rank = rank + 1 WHERE view = 'jobs' AND key = ?", (MERGE,))
        connection.commit()

    with pytest.raises(NotSo, match="1 rows differ, the first is jobs index/all"):
        replays(read_workspace(database))


def test_an_event_changed_in_the_log_breaks_the_chain_there(run: Run, tmp_path: Path) -> None:
    database = copy_of(run.database, tmp_path)
    assert chain_holds(read_workspace(database)).startswith("ok")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE events SET actor = 'mallory' WHERE position = 20")
        connection.commit()

    with pytest.raises(NotSo, match="broken at position 20"):
        chain_holds(read_workspace(database))


def test_the_demo_fails_and_says_so_when_its_reviewer_is_killed(tmp_path: Path) -> None:
    with demo(write_modules(tmp_path / "code"), "--database", tmp_path / "work.db", "--json") as running:
        pids = await_start(running)
        os.kill(pids["reviewer"], signal.SIGKILL)
        out, err = running.communicate(timeout=TIMEOUT_S)

    assert running.returncode == 1
    assert re.search(r"the demo failed: reviewer \(process \d+\) was ended by SIGKILL", err)
    assert json.loads(out)["ok"] is False
    assert not any(map(is_alive, pids.values()))


def test_interrupting_the_demo_ends_its_processes_and_removes_its_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    with demo(write_modules(tmp_path / "code"), env=environment) as running:
        pids = await_start(running)
        await_line(running, "SIGSTOP")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=TIMEOUT_S)

    assert (running.returncode, out) == (130, "")
    assert err.endswith("stopped; its processes are gone\n")
    assert not any(map(is_alive, pids.values()))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_workers_end_when_their_driver_is_killed(tmp_path: Path) -> None:
    with demo(write_modules(tmp_path / "code"), "--database", tmp_path / "work.db") as running:
        pids = await_start(running)
        running.kill()
        running.communicate(timeout=TIMEOUT_S)

    give_up_at = time.monotonic() + TIMEOUT_S
    while any(map(is_alive, pids.values())):
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def test_a_large_package_is_several_jobs_and_everything_else_one_each(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    for n in range(10):
        (tmp_path / "large" / f"part{n}.py").write_text("#" * 30_000)
        (tmp_path / f"module{n}.py").write_text("")
    (tmp_path / "large" / "notes.txt").write_text("")

    planned = plan(tmp_path)

    large = {piece.id: len(piece.files) for piece in planned.pieces if piece.id.startswith("large")}
    assert large == {"large/1of4": 3, "large/2of4": 3, "large/3of4": 3, "large/4of4": 1}
    assert [piece.id for piece in planned.pieces if piece.id not in large] == [f"module{n}.py" for n in range(10)]


def test_what_is_left_out_is_left_out_and_what_cannot_be_reserved_is_named(tmp_path: Path) -> None:
    for path in ("test/a.py", "pkg/test/b.py", "lib/site-packages/c.py", ".hidden/d.py", "__pycache__/e.py", "st*r.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")

    planned = plan(tmp_path, without=("test",))

    assert planned.files == ["pkg/test/b.py"]
    assert planned.unusable == ("st*r.py",)


@pytest.mark.parametrize(
    ("source", "problem"),
    [(b"def f(:\n", "SyntaxError in line 1"), (b"\0", ""), (b"(" * 3_000, ""), (b"\xff = 1", "SyntaxError")],
)
def test_a_file_that_does_not_parse_is_indexed_as_such(source: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_bytes(source)

    index = index_file(file)

    assert index.definitions == []
    assert (index.problem or "").startswith(problem)
    assert index.problem
    assert objection_to_file(file, index) is None


def test_a_very_long_list_of_definitions_is_cut_and_the_rest_counted(tmp_path: Path) -> None:
    file = tmp_path / "generated.py"
    file.write_text("".join(f"def function_number_{n}(): pass\n" for n in range(10_000)))

    index = index_file(file)

    assert len(index.definitions) + index.unlisted == 10_000
    assert index.unlisted > 0
    assert objection_to_file(file, index) is None


@pytest.mark.parametrize(
    ("index", "objection"),
    [
        (FileIndex([Definition("A", "class", 1)]), "it has 2 definitions, not 1"),
        (FileIndex([Definition("A", "class", 1), Definition("A.f", "function", 3)]), "line 3 does not define A.f"),
        (FileIndex([Definition("A", "class", 1), Definition("A.f", "class", 2)]), "line 2 does not define A.f"),
        (FileIndex([Definition("A", "class", 1), Definition("A.g", "function", 2)]), "line 2 does not define A.g"),
        (FileIndex(problem="SyntaxError"), "it can be read, although the index says SyntaxError"),
        (FileIndex([Definition("A", "class", 1), Definition("A.f", "async function", 2)]), None),
    ],
)
def test_the_reviewer_objects_to_an_index_that_the_file_does_not_bear_out(
    index: FileIndex, objection: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "file.py"
    file.write_text("class A:\n    async def f(self): return [x for x in (lambda: ())()]\n    y = 1\n")

    assert objection_to_file(file, index) == objection


def test_the_reviewer_objects_to_nothing_in_our_own_code() -> None:
    files = sorted((ROOT / "coordinator").rglob("*.py"))

    objections = [objection_to_file(file, index_file(file)) for file in files]

    assert set(objections) == {None}


def copy_of(database: Path, folder: Path) -> Path:
    copy = folder / "copy.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    return copy


def demo(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments), cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def await_line(running: subprocess.Popen[str], text: str) -> str:
    assert running.stderr is not None
    while line := running.stderr.readline():
        if text in line:
            return line
    pytest.fail(f"the demo ended without saying {text!r}")


def await_start(running: subprocess.Popen[str]) -> dict[str, int]:
    """The processes that the demo said it started."""
    line = await_line(running, "started ")
    return {name: int(pid) for name, pid in re.findall(r"([\w-]+) \(process (\d+)\)", line)}


def is_alive(process: int) -> bool:
    """A process that has ended may be waiting for somebody to ask how."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return shown.stdout.strip()[:1] not in ("", "Z")
