"""The store on aiosqlite's thread."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from coordinator.stores.hosted import host, run_on
from coordinator.stores.sqlite import SqliteStore
from coordinator.stores.sqlite_file import locate, prepare
from tests.stores.rows import append, event, log_of, once


async def test_a_store_lives_on_the_thread_of_its_connection(path: Path) -> None:
    prepare(path, once)
    hosted = await host(locate(path))
    try:
        store = await run_on(hosted, lambda connection: SqliteStore(path, connection))

        def work(_: sqlite3.Connection) -> tuple[list[int], int]:
            append(store, event(1))
            return log_of(store), threading.get_ident()

        found, thread = await run_on(hosted, work)
        with pytest.raises(RuntimeError, match="same thread"):
            store.changed()
        await run_on(hosted, lambda _: store.close())
    finally:
        await hosted.close()

    assert found == [1]
    assert thread != threading.get_ident()


async def test_what_the_function_raises_arrives_and_the_thread_goes_on(path: Path) -> None:
    prepare(path, once)
    hosted = await host(locate(path))
    try:
        with pytest.raises(ZeroDivisionError):
            await run_on(hosted, lambda _: 1 // 0)

        assert await run_on(hosted, lambda _: "on") == "on"
    finally:
        await hosted.close()


async def test_a_store_that_was_reopened_stays_on_the_thread(path: Path) -> None:
    prepare(path, once)
    hosted = await host(locate(path))
    try:
        store = await run_on(hosted, lambda connection: SqliteStore(path, connection))

        await run_on(hosted, lambda _: store.reopen())

        await run_on(hosted, lambda _: append(store, event(1)))
        assert await run_on(hosted, lambda _: log_of(store)) == [1]
        await run_on(hosted, lambda _: store.close())
    finally:
        await hosted.close()


async def test_scripts_still_run_as_aiosqlite_means_them(path: Path) -> None:
    prepare(path, once)
    hosted = await host(locate(path))
    try:
        await hosted.executescript("CREATE TEMP TABLE t(a); INSERT INTO t VALUES (1);")

        async with hosted.execute("SELECT a FROM t") as cursor:
            assert [tuple(found) async for found in cursor] == [(1,)]
    finally:
        await hosted.close()
