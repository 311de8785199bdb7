"""What the check finds, after workers that lived and workers that died."""

from __future__ import annotations

import os

import msgspec
import pytest

from examples.reorder import order_file
from examples.reorder.check import Finding
from tests.examples.support import Shop


def test_before_anything_ran_nothing_was_ordered(shop: Shop) -> None:
    finding = shop.check()

    assert finding == Finding(agrees=True, order=None, sentence="nothing was ordered")


def test_an_attempt_that_never_had_a_folder_has_no_file(shop: Shop) -> None:
    shop.artifacts.rmdir()

    finding = shop.check()

    assert (finding.agrees, finding.order) == (True, None)


def test_after_a_worker_that_ended_well_the_order_and_its_file_agree(shop: Shop) -> None:
    shop.run()

    finding = shop.check()

    assert finding == Finding(
        agrees=True,
        order=shop.order(),
        sentence="draft order 1 was made by attempt 1; order.json says the same",
    )


def test_after_a_death_before_the_draft_nothing_was_ordered(shop: Shop) -> None:
    shop.rehearse(dies="before the draft")
    shop.run()

    finding = shop.check()

    assert (finding.agrees, finding.order) == (True, None)


def test_after_a_death_between_draft_and_file_there_is_an_order_without_a_file(shop: Shop) -> None:
    shop.rehearse(dies="after the draft")
    shop.run()

    finding = shop.check()

    assert finding == Finding(
        agrees=False,
        order=shop.order(),
        sentence="draft order 1 was made by attempt 1; there is no order.json",
    )
    assert finding.order is not None


def test_after_a_death_before_the_result_was_told_the_order_is_found(shop: Shop) -> None:
    shop.rehearse(dies="after the file")
    shop.run()

    finding = shop.check()

    assert finding.agrees
    assert finding.order == shop.order() is not None


def test_a_file_that_tells_of_another_order_disagrees(shop: Shop) -> None:
    shop.run()
    written = order_file.read(shop.artifacts)
    assert written is not None
    fewer = msgspec.structs.replace(written, lines=written.lines[1:])
    order_file.write(shop.artifacts, fewer)

    finding = shop.check()

    assert (finding.agrees, finding.order) == (False, written)
    assert "another" in finding.sentence


def test_a_file_without_an_order_disagrees(shop: Shop) -> None:
    shop.run()
    shop.do("DELETE FROM order_lines")
    shop.do("DELETE FROM draft_orders")

    finding = shop.check()

    assert (finding.agrees, finding.order) == (False, None)
    assert finding.sentence == "no draft order was made; order.json tells of another one, number 1"


def test_a_file_that_is_no_order_disagrees(shop: Shop) -> None:
    shop.run()
    shop.file.write_bytes(shop.file.read_bytes()[:-20])

    finding = shop.check()

    assert (finding.agrees, finding.order) == (False, shop.order())
    assert "order.json is no order" in finding.sentence


def test_whoever_reads_the_file_while_it_is_written_anew_reads_a_whole_one(shop: Shop) -> None:
    shop.run()
    order = order_file.read(shop.artifacts)
    assert order is not None
    with shop.file.open("rb") as reading:
        order_file.write(shop.artifacts, msgspec.structs.replace(order, weeks=52))

        old = msgspec.json.decode(reading.read())

    assert old["weeks"] == 4
    assert [file.name for file in shop.artifacts.iterdir()] == ["order.json"]


def test_the_file_is_on_the_disk_before_it_has_its_name_and_then_the_name_is(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run()
    order = order_file.read(shop.artifacts)
    assert order is not None
    shop.file.unlink()
    flushed: list[tuple[int, bool]] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append((inode_of(descriptor), shop.file.exists())))

    order_file.write(shop.artifacts, order)

    assert flushed == [(shop.file.stat().st_ino, False), (shop.artifacts.stat().st_ino, True)]


def inode_of(descriptor: int) -> int:
    return os.fstat(descriptor).st_ino
