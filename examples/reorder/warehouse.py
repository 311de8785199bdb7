"""The ordering system's database: suppliers, products, two years of stock history, draft orders.

It is a world of its own, as a bought system would be: what the coordinator journals and what is in here are two
things, and one of them can be true without the other.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path

from msgspec import Struct

SUPPLIERS = {"north": "North Mill", "east": "Eastern Traders", "south": "South & Sons", "west": "Westward Foods"}
PRODUCTS_EACH = 50
FIRST_DAY = date(2024, 1, 1)  # a Monday
DAYS = 2 * 52 * 7

_SCHEMA = """
CREATE TABLE suppliers (
    supplier TEXT PRIMARY KEY,
    full_name TEXT NOT NULL
) STRICT;
CREATE TABLE products (
    product INTEGER PRIMARY KEY,
    supplier TEXT NOT NULL REFERENCES suppliers,
    name TEXT NOT NULL,
    pack INTEGER NOT NULL CHECK (pack > 0),
    pack_cents INTEGER NOT NULL CHECK (pack_cents > 0)
) STRICT;
CREATE TABLE stock_history (
    product INTEGER NOT NULL REFERENCES products,
    day TEXT NOT NULL,
    received INTEGER NOT NULL,
    sold INTEGER NOT NULL,
    on_hand INTEGER NOT NULL CHECK (on_hand >= 0),
    PRIMARY KEY (product, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE draft_orders (
    number INTEGER PRIMARY KEY,
    operation TEXT NOT NULL UNIQUE,
    attempt INTEGER NOT NULL,
    supplier TEXT NOT NULL REFERENCES suppliers,
    weeks INTEGER NOT NULL
) STRICT;
CREATE TABLE order_lines (
    number INTEGER NOT NULL REFERENCES draft_orders,
    product INTEGER NOT NULL REFERENCES products,
    packs INTEGER NOT NULL CHECK (packs > 0),
    units INTEGER NOT NULL,
    cents INTEGER NOT NULL,
    PRIMARY KEY (number, product)
) STRICT, WITHOUT ROWID;
CREATE TABLE fences (
    operation TEXT PRIMARY KEY,
    fence INTEGER NOT NULL
) STRICT;
CREATE TABLE rehearsal (
    pause_s REAL NOT NULL,
    dies TEXT
) STRICT;
"""


class Product(Struct, frozen=True, kw_only=True):
    """What a supplier sells: `pack` units at a time, for `pack_cents`."""

    product: int
    name: str
    pack: int
    pack_cents: int


class Day(Struct, frozen=True):
    """What was sold on one day, and what lay on the shelf that evening."""

    sold: int
    on_hand: int


class History(Struct, frozen=True):
    """One product's days, oldest first, without a gap."""

    product: Product
    days: tuple[Day, ...]


class SupplierUnknown(Exception):
    """There is nobody of that name to order from."""


def create(database: Path, *, seed: int = 1, pause_s: float = 0.002) -> None:
    """A new ordering system, the same one for the same seed, whole or not at all."""
    if database.exists():
        raise FileExistsError(f"{database} exists already")
    with closing(_connect(database, "rwc")) as connection:
        # executescript() would commit in between.
        connection.execute("BEGIN IMMEDIATE")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute("INSERT INTO rehearsal VALUES (?, NULL)", (pause_s,))
        connection.executemany("INSERT INTO suppliers VALUES (?, ?)", SUPPLIERS.items())
        numbers = random.Random(seed)
        product = 0
        for supplier in SUPPLIERS:
            for shelf in range(1, PRODUCTS_EACH + 1):
                product += 1
                pack = numbers.choice((1, 6, 10, 12, 24))
                row = (product, supplier, f"{supplier} {shelf:02}", pack, pack * (50 + int(900 * numbers.random())))
                connection.execute("INSERT INTO products VALUES (?, ?, ?, ?, ?)", row)
                connection.executemany(
                    "INSERT INTO stock_history VALUES (?, ?, ?, ?, ?)", _two_years(product, pack, numbers)
                )
        connection.execute("COMMIT")


@contextmanager
def opened(database: Path) -> Generator[sqlite3.Connection]:
    """A connection to an ordering system that exists. `with connection:` then ends a transaction that was begun."""
    with closing(_connect(database, "rw")) as connection:
        yield connection


def count_history(connection: sqlite3.Connection, supplier: str) -> int:
    """How many rows `pull` will read."""
    query = "SELECT count(*) FROM stock_history JOIN products USING (product) WHERE supplier = ?"
    return connection.execute(query, (supplier,)).fetchone()[0]


def pull(connection: sqlite3.Connection, supplier: str) -> Iterator[History]:
    """The histories of a supplier's products, one product a page. No transaction is open between two pages.

    Raises:
        SupplierUnknown: before the first page.
    """
    if connection.execute("SELECT 1 FROM suppliers WHERE supplier = ?", (supplier,)).fetchone() is None:
        raise SupplierUnknown(f"there is no supplier {supplier!r}")
    products = connection.execute(
        "SELECT product, name, pack, pack_cents FROM products WHERE supplier = ? ORDER BY product", (supplier,)
    ).fetchall()
    for product, name, pack, pack_cents in products:
        days = connection.execute(
            "SELECT sold, on_hand FROM stock_history WHERE product = ? ORDER BY day", (product,)
        ).fetchall()
        yield History(
            Product(product=product, name=name, pack=pack, pack_cents=pack_cents),
            tuple(Day(sold, on_hand) for sold, on_hand in days),
        )


def _connect(database: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
    # With FULL, TRUNCATE flushes the journal after a commit has emptied it. With DELETE a power cut could bring the
    # journal back, and SQLite would undo with it an order that somebody was told of.
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 10000")
    return connection


def _two_years(product: int, pack: int, numbers: random.Random) -> Iterator[tuple[int, str, int, int, int]]:
    """A shop's days: more is sold towards the weekend, and an emptying shelf is filled the next morning."""
    usual = 0.3 + 12 * numbers.random() ** 2
    full = -(-int(28 * usual + 1) // pack) * pack
    on_hand, arriving = full, 0
    for number in range(DAYS):
        day = FIRST_DAY + timedelta(days=number)
        received, arriving = arriving, 0
        wanted = int(usual * (0.8, 0.8, 0.9, 1.0, 1.4, 1.5, 0.6)[day.weekday()] * 2 * numbers.random() + 0.5)
        sold = min(wanted, on_hand + received)
        on_hand += received - sold
        if on_hand < 7 * usual:
            arriving = full
        yield product, day.isoformat(), received, sold, on_hand
