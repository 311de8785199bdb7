"""A mapping that does not grow in memory: what was not used lately lies in a temporary file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

V = TypeVar("V")

_HOT = 20_000


class Spill:
    """The temporary file, which is gone with this object. SQLite creates it without a name."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE entry(map TEXT, key TEXT, body TEXT, PRIMARY KEY (map, key)) WITHOUT ROWID"
        )

    def get(self, map: str, key: str) -> str | None:
        found = self._connection.execute("SELECT body FROM entry WHERE map = ? AND key = ?", (map, key)).fetchone()
        return None if found is None else found[0]

    def put(self, entries: list[tuple[str, str, str]], gone: list[tuple[str, str]]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?)", entries)
        self._connection.executemany("DELETE FROM entry WHERE map = ? AND key = ?", gone)
        self._connection.execute("COMMIT")

    def items(self, map: str) -> Iterator[tuple[str, str]]:
        yield from self._connection.execute("SELECT key, body FROM entry WHERE map = ? ORDER BY key", (map,))

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
        encode: Callable[[V], bytes],
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

    def get(self, key: str, /) -> V | None:
        if key in self._hot:
            return self._hot[key]
        body = self._spill.get(self._name, key)
        value = None if body is None else self._decode(body)
        self._keep(key, value)
        return value

    def set(self, key: str, row: V | None) -> None:
        """Put a value under a key; None removes what stands there."""
        self._changed.add(key)
        self._keep(key, row)

    def items(self) -> Iterator[tuple[str, V]]:
        """All entries, by key in binary order."""
        self._write()
        for key, body in self._spill.items(self._name):
            yield key, self._decode(body)

    def _keep(self, key: str, value: V | None) -> None:
        self._hot[key] = value
        if len(self._hot) > self._hot_most:
            self._write()

    def _write(self) -> None:
        changed = [(key, self._hot[key]) for key in self._changed]
        self._spill.put(
            [(self._name, key, self._encode(value).decode()) for key, value in changed if value is not None],
            [(self._name, key) for key, value in changed if value is None],
        )
        self._changed.clear()
        self._hot.clear()
