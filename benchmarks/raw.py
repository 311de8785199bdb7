"""The limit to compare with: the standard library's sqlite3, one table, and as many rows a commit."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

_TABLE = """CREATE TABLE event(
    position INTEGER PRIMARY KEY, receipt BLOB NOT NULL UNIQUE, stream TEXT NOT NULL, type TEXT NOT NULL,
    at INTEGER NOT NULL, body BLOB NOT NULL)"""
_INSERT = "INSERT INTO event(receipt, stream, type, at, body) VALUES (?, ?, ?, ?, ?)"
_BODY = os.urandom(220)  # with the other columns about 300 bytes a row


def connect(path: Path) -> sqlite3.Connection:
    """WAL and synchronous=FULL, as the coordinator has it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(_TABLE)
    return connection


def rows_per_second(path: Path, rows_a_commit: int, seconds: float) -> float:
    """Durable rows/s with so many rows in each transaction, receipts ordered by time."""
    with closing(connect(path)) as connection:
        rows, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds or not rows:
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(rows_a_commit):
                receipt = time.time_ns().to_bytes(8, "big") + os.urandom(8)
                connection.execute(_INSERT, (receipt, "job/1234567890", "job.claimed", 1_234_567_890_123, _BODY))
            connection.execute("COMMIT")
            rows += rows_a_commit
    return rows / elapsed
