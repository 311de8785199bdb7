"""A mapping that does not grow in memory: what was not used lately lies in a temporary file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

V = TypeVar("V")

Entry = tuple[str, int, str]
"""Bucket, rank and body of a value, as a store keeps a row."""

_HOT = 20_000


class Spill:
    """The temporary file, which is gone with this object. SQLite creates it without a name."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE entry(map TEXT, key TEXT, bucket TEXT, rank INTEGER, body TEXT, PRIMARY KEY (map, key))"
            " WITHOUT ROWID"
        )

    def get(self, map: str, key: str) -> str | None:
        found = self._connection.execute("SELECT body FROM entry WHERE map = ? AND key = ?", (map, key)).fetchone()
        return None if found is None else found[0]

    def put(self, entries: list[tuple[str, str, str, int, str]], gone: list[tuple[str, str]]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?)", entries)
        self._connection.executemany("DELETE FROM entry WHERE map = ? AND key = ?", gone)
        self._connection.execute("COMMIT")

    def entries(self, map: str) -> Iterator[tuple[str, Entry]]:
        sql = "SELECT key, bucket, rank, body FROM entry WHERE map = ? ORDER BY key"
        for key, *entry in self._connection.execute(sql, (map,)):
            yield key, (entry[0], entry[1], entry[2])

    def close(self) -> None:
        self._connection.close()


class SpilledMap(Generic[V]):
    """Values by key.

    Args:
        name: among the maps of one spill.
        hot: so many entries stay in memory.
    """

    def __init__(
        self,
        spill: Spill,
        name: str,
        encode: Callable[[V], Entry],
        decode: Callable[[str], V],
        hot: int = _HOT,
    ) -> None:
        self._spill = spill
        self._name = name
        self._encode = encode
        self._decode = decode
        self._hot_most = hot
        self._hot: dict[str, V | None] = {}
        self._changed: set[str] = set()
        self._spilled = False

    def get(self, key: str, /) -> V | None:
        value = self._hot.get(key)
        if value is not None or key in self._hot:
            return value
        if not self._spilled:
            return None
        body = self._spill.get(self._name, key)
        value = None if body is None else self._decode(body)
        self._keep(key, value)
        return value

    def set(self, key: str, row: V | None) -> None:
        """Put a value under a key; None removes what stands there."""
        self._changed.add(key)
        if key in self._hot:
            self._hot[key] = row
        else:
            self._keep(key, row)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """All entries as they were encoded, by key in binary order."""
        self._write()
        return self._spill.entries(self._name)

    def _keep(self, key: str, value: V | None) -> None:
        if len(self._hot) >= self._hot_most and key not in self._hot:
            self._write()
            self._changed.add(key)  # it may not be: written once too often is no harm
        self._hot[key] = value

    def _write(self) -> None:
        changed = [(key, self._hot[key]) for key in self._changed if key in self._hot]
        self._spill.put(
            [(self._name, key, *self._encode(value)) for key, value in changed if value is not None],
            [(self._name, key) for key, value in changed if value is None],
        )
        self._changed.clear()
        self._hot.clear()
        self._spilled = True
