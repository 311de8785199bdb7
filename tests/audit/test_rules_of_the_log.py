"""For each rule of the rows, of what is noted beside them and of what follows from them: a log that breaks it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import coordinator.auditing.views
from coordinator import Coordinator
from coordinator.auditing.audit import Anchor, audit
from events.envelope import Envelope
from events.jobs import JobNoted
from projections.registry import FOLDS_VERSION, PROJECTIONS
from tests.audit.story import Tampered, found
from tests.audit.test_rules_of_jobs import noted

NOTED = "job.noted"


def test_a_missing_event_is_reported(log: Tampered) -> None:
    log.sql("DELETE FROM events WHERE position = ?", log.at(NOTED))

    assert log.found() == [("gapless", log.at("job.reserved"))]


def test_a_changed_column_is_reported_where_it_was_changed(log: Tampered) -> None:
    position = log.at(NOTED)

    log.sql("UPDATE events SET context = 'elsewhere' WHERE position = ?", position)

    assert found(log.path) == [("chain", position)]


def test_a_changed_digest_is_reported_and_where_it_no_longer_leads_on(log: Tampered) -> None:
    position = log.at(NOTED)

    log.sql("UPDATE events SET digest = zeroblob(32) WHERE position = ?", position)

    assert found(log.path) == [("chain", position), ("chain", position + 1)]


def test_another_workspace_id_is_reported(log: Tampered) -> None:
    log.sql("UPDATE workspace SET id = zeroblob(16)")

    assert found(log.path) == [("chain", 1)]


def test_time_that_runs_back_is_reported(log: Tampered) -> None:
    position = log.at(NOTED)

    log.sql("UPDATE events SET at = at - 1 WHERE position = ?", position)

    assert log.found() == [("time", position)]


@pytest.mark.parametrize("body", ["no JSON", '{"type":"job.exploded"}', '{"type":"job.noted"}', "[]"])
def test_an_event_that_cannot_be_read_is_reported(body: str, log: Tampered) -> None:
    position = log.at(NOTED)

    log.sql("UPDATE events SET body = ? WHERE position = ?", body, position)

    assert log.found() == [("decode", position)]


COLUMNS = {
    "another stream": "stream = 'job/other'",
    "another type": "type = 'job.renewed'",
    "a receipt without a fingerprint": "fingerprint = NULL",
    "a fingerprint without a receipt": "receipt = NULL",
    "a command that began before others": "command = 1, receipt = NULL, fingerprint = NULL",
    "a command that comes later": "command = position + 1, receipt = NULL, fingerprint = NULL",
}


@pytest.mark.parametrize("change", COLUMNS.values(), ids=COLUMNS)
def test_columns_that_do_not_fit_are_reported(change: str, log: Tampered) -> None:
    position = log.at(NOTED)

    log.sql(f"UPDATE events SET {change} WHERE position = ?", position)

    assert log.found() == [("columns", position)]


def test_a_receipt_on_an_event_that_is_not_its_commands_first_is_reported(log: Tampered) -> None:
    position = log.at("job.unblocked")

    log.sql("UPDATE events SET receipt = 'r', fingerprint = x'00' WHERE position = ?", position)

    assert log.found() == [("columns", position)]


def test_a_receipt_that_was_used_twice_is_reported_although_the_index_is_gone(log: Tampered) -> None:
    log.sql("DROP INDEX events_receipt")

    log.sql(
        "UPDATE events SET actor = 'bob', receipt = (SELECT receipt FROM events WHERE position = 9) WHERE position = 5"
    )

    assert log.found() == [("receipts", 9)]


@pytest.mark.parametrize("change", ["digest = zeroblob(32)", "position = position + 1"])
def test_a_head_that_does_not_fit_is_reported(change: str, log: Tampered) -> None:
    log.sql(f"UPDATE head SET {change}")

    assert found(log.path) == [("head", None)]


def test_an_anchor_that_holds_is_nothing_to_report(log: Tampered) -> None:
    row = log.log()[9]

    assert found(log.path, Anchor(row.position, row.digest.hex())) == []


def test_a_log_that_was_cut_off_fits_in_itself_and_is_caught_by_an_anchor(log: Tampered) -> None:
    last = log.log()[-1]
    log.sql("DELETE FROM events WHERE position = ?", last.position)

    assert log.found() == []
    assert found(log.path, Anchor(last.position, last.digest.hex())) == [("anchor", None)]


def test_a_log_that_was_written_anew_fits_in_itself_and_is_caught_by_an_anchor(log: Tampered) -> None:
    last = log.log()[-1]
    log.change(log.at(NOTED), note={"half": "a lie"})

    assert log.found() == []
    assert found(log.path, Anchor(last.position, last.digest.hex())) == [("anchor", last.position)]


@pytest.mark.parametrize("view", sorted(projection.name for projection in PROJECTIONS))
def test_rows_of_each_view_that_do_not_follow_are_reported(view: str, log: Tampered) -> None:
    (key,) = log.sql("SELECT min(key) FROM views WHERE view = ?", view)[0]
    row = (view, key)
    assert key is not None

    log.sql("INSERT INTO views SELECT view, key || '!', bucket, rank, body FROM views WHERE view = ? AND key = ?", *row)
    additional = list(audit(log.path))
    log.sql("UPDATE views SET body = body || ' ' WHERE view = ? AND key = ?", *row)
    changed = list(audit(log.path))
    log.sql("DELETE FROM views WHERE view = ? AND key = ?", *row)
    missing = list(audit(log.path))

    assert [one.problem for one in additional] == [f"{view} has a row {key + '!'!r} that no event accounts for"]
    assert f"{view} has another row {key!r} than the log says" in [one.problem for one in changed]
    assert f"{view} lacks the row {key!r}" in [one.problem for one in missing]
    assert {(one.rule, one.position) for one in additional + changed + missing} == {("views", None)}


@pytest.mark.parametrize("column", ["bucket = bucket || 'x'", "rank = rank + 1"])
def test_a_row_in_another_place_is_reported(column: str, log: Tampered) -> None:
    log.sql(f"UPDATE views SET {column} WHERE view = 'jobs' AND key = 'top'")

    assert found(log.path) == [("views", None)]


def test_rows_of_a_view_that_nobody_knows_are_reported(log: Tampered) -> None:
    log.sql("INSERT INTO views VALUES ('ghosts', 'k', '', 0, '{}')")

    assert found(log.path) == [("views", None)]


def test_views_of_older_folds_are_made_anew_at_opening_and_are_nothing_to_report(log: Tampered) -> None:
    log.sql("UPDATE head SET folds = ?", FOLDS_VERSION - 1)
    log.sql("DELETE FROM views WHERE view = 'jobs'")

    assert found(log.path) == []


def test_views_of_newer_folds_are_reported_as_not_compared(log: Tampered) -> None:
    log.sql("UPDATE head SET folds = ?", FOLDS_VERSION + 1)

    assert found(log.path) == [("views", None)]


def test_an_event_that_cannot_be_folded_is_reported(log: Tampered, monkeypatch: pytest.MonkeyPatch) -> None:
    fold, position = coordinator.auditing.views.fold, log.at(NOTED)

    def fold_others(envelope: Envelope, views: object) -> None:
        if isinstance(envelope.event, JobNoted):
            raise KeyError("lost")
        fold(envelope, views)  # type: ignore[arg-type]

    monkeypatch.setattr(coordinator.auditing.views, "fold", fold_others)

    assert found(log.path)[0] == ("fold", position)


def test_what_sqlite_itself_finds_is_reported(log: Tampered) -> None:
    log.sql("PRAGMA writable_schema=ON")
    log.sql("UPDATE sqlite_schema SET sql = replace(sql, ' WHERE bucket <> ''''', '') WHERE name = 'views_bucket'")
    log.close()

    said = found(log.path)

    assert set(said) == {("integrity", None)}


def test_a_log_that_is_broken_in_five_places_reports_five(log: Tampered) -> None:
    log.sql("DELETE FROM events WHERE position = ?", log.at(NOTED))
    log.sql("UPDATE events SET at = at - 1 WHERE position = ?", log.at("job.reserved"))
    log.sql("UPDATE events SET stream = 'topic/old' WHERE position = ?", log.at("job.unblocked"))
    log.change(acknowledged := log.at("messages.acknowledged"), number=3)
    guard = log.append("eve", noted())

    assert log.found() == [
        ("gapless", log.at("job.reserved")),
        ("time", log.at("job.reserved")),
        ("columns", log.at("job.unblocked")),
        ("positions", acknowledged),
        ("guard", guard),
    ]


async def test_rows_on_a_page_that_cannot_be_read_are_one_stretch_and_what_stands_behind_it_is_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "work.db"
    async with Coordinator.open(path) as opened:
        for number in range(1, 121):
            await opened.agent("ada").send("news", {"n": f"<{number}>" + 200 * "."})
    log = Tampered(path)
    guard = log.append("eve", noted("ghost"))
    log.chain()
    log.fold()
    log.close()
    break_page(path, b"<60>....")

    violations = list(audit(path))

    first = violations[0]
    assert first.rule == "unreadable"
    assert first.position is not None
    assert first.position <= 60
    assert "and all up to" in first.problem
    said = [(one.rule, one.position) for one in violations]
    assert ("job", guard) in said
    assert not {"gapless", "chain", "head"} & {rule for rule, _ in said}


def break_page(path: Path, holding: bytes) -> None:
    """Make that page of the file useless which holds these bytes. Nobody has it open."""
    content = bytearray(path.read_bytes())
    page = content.index(holding) // 4096 * 4096
    content[page : page + 8] = bytes(8)
    path.write_bytes(content)
    os.sync()
