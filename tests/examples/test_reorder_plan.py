"""What to buy, from histories small enough to reckon by hand; and the history that the example brings."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from examples.reorder.plan import Arguments, Line, Plan, plan_line, plan_order, preview, weekly
from examples.reorder.warehouse import Day, History, Product, SupplierUnknown, count_history, create, opened, pull


def history(*weeks: int, on_hand: int, pack: int = 1, product: int = 1) -> History:
    """So much was sold in each week, all of it on the Monday, and so much is left."""
    days = [Day(sold if weekday == 0 else 0, 0) for sold in weeks for weekday in range(7)]
    if days:
        days[-1] = Day(days[-1].sold, on_hand)
    return History(Product(product=product, name="flour", pack=pack, pack_cents=100), tuple(days))


def units(line: Line | None) -> int:
    return 0 if line is None else line.units


def test_an_even_demand_is_bought_for_the_weeks_asked_for_less_what_lies_on_the_shelf() -> None:
    steady = history(10, 10, 10, on_hand=15)

    line = plan_line(steady, weeks=4)

    assert line == Line(product=1, packs=25, units=25, cents=2_500)


def test_an_uneven_demand_is_bought_with_a_reserve_that_grows_with_the_square_root_of_the_weeks() -> None:
    uneven = history(0, 20, on_hand=0)  # 10 a week, give or take 10

    bought = [units(plan_line(uneven, weeks=weeks)) for weeks in (1, 4)]

    assert bought == [10 + 17, 40 + 33]


def test_only_whole_packs_are_bought() -> None:
    steady = [history(10, 10, on_hand=on_hand, pack=12) for on_hand in (16, 15)]

    lines = [plan_line(each, weeks=4) for each in steady]

    assert lines == [
        Line(product=1, packs=2, units=24, cents=200),
        Line(product=1, packs=3, units=36, cents=300),
    ]


def test_demand_that_is_no_whole_number_of_units_is_rounded_up_once_for_all_weeks() -> None:
    thirds = history(1, 0, 0, on_hand=0)
    reserve = 1  # 1.65 × 0.47 × √1

    bought = [units(plan_line(thirds, weeks=1)), units(plan_line(history(3, 3, 3, on_hand=0), weeks=3))]

    assert bought == [1 + reserve, 9]


@pytest.mark.parametrize("on_hand", [40, 41, 1_000])
def test_what_is_on_the_shelf_in_sufficient_number_is_not_bought(on_hand: int) -> None:
    steady = history(10, 10, on_hand=on_hand)

    line = plan_line(steady, weeks=4)

    assert line is None


def test_what_was_never_sold_is_not_bought() -> None:
    slow = history(0, 0, 0, on_hand=0)

    line = plan_line(slow, weeks=52)

    assert line is None


def test_a_product_with_less_than_a_week_of_history_is_not_bought() -> None:
    new = History(Product(product=1, name="flour", pack=1, pack_cents=100), (Day(9, 0),) * 6)

    lines = [plan_line(each, weeks=4) for each in (new, history(on_hand=0))]

    assert lines == [None, None]


def test_weeks_are_counted_back_from_the_last_day_and_a_part_of_a_week_does_not_count() -> None:
    days = (Day(100, 0), Day(100, 0), *(Day(1, 0),) * 7, *(Day(2, 0),) * 7)

    sold = weekly(days)

    assert sold == [7, 14]


def test_a_plan_has_a_line_only_for_what_is_missing_and_adds_up() -> None:
    arguments = Arguments(supplier="north", weeks=2)
    histories = [
        history(10, 10, on_hand=0, product=1),
        history(10, 10, on_hand=99, product=2),
        history(5, 5, on_hand=0, product=3),
    ]

    plan = plan_order(arguments, histories)

    assert [line.product for line in plan.lines] == [1, 3]
    assert (plan.units, plan.cents) == (30, 3_000)


def test_nothing_in_stock_history_is_a_plan_without_lines() -> None:
    arguments = Arguments(supplier="north", weeks=2)

    plan = plan_order(arguments, [])

    assert plan == Plan(supplier="north", weeks=2, lines=())


def test_the_history_has_over_a_hundred_thousand_rows_and_stock_follows_from_what_came_and_went(
    new_warehouse: Path,
) -> None:
    wrong = """
        SELECT count(*) FROM stock_history AS today JOIN stock_history AS yesterday
        ON yesterday.product = today.product AND yesterday.day = date(today.day, '-1 day')
        WHERE today.on_hand != yesterday.on_hand + today.received - today.sold"""

    with opened(new_warehouse) as connection:
        rows = connection.execute("SELECT count(*), count(DISTINCT day) FROM stock_history").fetchone()
        errors = connection.execute(wrong).fetchone()

    assert rows == (145_600, 728)
    assert errors == (0,)


def test_the_same_seed_makes_the_same_history_and_another_seed_another(new_warehouse: Path, tmp_path: Path) -> None:
    create(tmp_path / "same.db")
    create(tmp_path / "other.db", seed=2)

    plans = [
        preview(database, Arguments(supplier="east", weeks=4))
        for database in (new_warehouse, tmp_path / "same.db", tmp_path / "other.db")
    ]

    assert plans[0] == plans[1] != plans[2]


def test_a_preview_plans_from_all_of_the_suppliers_history_and_writes_nothing(new_warehouse: Path) -> None:
    with opened(new_warehouse) as connection:
        pulled = list(pull(connection, "west"))
        announced = count_history(connection, "west")
    before = new_warehouse.read_bytes()

    plan = preview(new_warehouse, Arguments(supplier="west", weeks=4))

    assert plan == plan_order(Arguments(supplier="west", weeks=4), pulled)
    assert 0 < len(plan.lines) <= len(pulled) == 50
    assert sum(len(each.days) for each in pulled) == announced == 36_400
    assert new_warehouse.read_bytes() == before


def test_a_preview_for_an_unknown_supplier_is_refused(new_warehouse: Path) -> None:
    arguments = Arguments(supplier="nobody", weeks=4)

    with pytest.raises(SupplierUnknown, match="'nobody'"):
        preview(new_warehouse, arguments)


def test_an_ordering_system_that_exists_is_not_made_again(new_warehouse: Path) -> None:
    before = new_warehouse.read_bytes()

    with pytest.raises(FileExistsError):
        create(new_warehouse)

    assert new_warehouse.read_bytes() == before


def test_a_misspelt_name_is_no_new_ordering_system(tmp_path: Path) -> None:
    missing = tmp_path / "warehouse.db"

    with pytest.raises(sqlite3.OperationalError), opened(missing):
        pass

    assert not missing.exists()


def test_what_was_committed_is_flushed_and_no_journal_can_undo_it(new_warehouse: Path) -> None:
    with opened(new_warehouse) as connection, closing(connection.cursor()) as cursor:
        settings = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]

    assert settings == [2, "truncate"]
