"""Faults of a SQLite file: another process locks it, its disk is full, its folder is missing."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError

from assent.audit.service import Audit
from assent.errors import StorageFull, StoreBusy, Unavailable
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.transaction import Tx
from tests.contract.stores import only_sqlite, outside
from tests.contract.tables import add, create_tables, point, values

TENANT = "acme"
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""

pytestmark = [only_sqlite, pytest.mark.promise("P12")]


@pytest.fixture
async def impatient(database: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(database, lock_wait=timedelta(milliseconds=50))
    await store.open()
    await store.write(None, create_tables)
    yield store
    await store.close()


class Holder:
    """Another process that has the database locked for writing."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-S", "-c", HOLD, url.removeprefix("sqlite:///")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        assert self._process.stdout.readline() == "locked\n"

    def let_go(self) -> None:
        self._process.communicate("now\n", timeout=10)


@contextmanager
def held(url: str) -> Iterator[Holder]:
    holder = Holder(url)
    try:
        yield holder
    finally:
        holder.let_go()


async def test_a_locked_database_is_busy_and_then_recovers(database: str, impatient: SqliteStore) -> None:
    with held(database):
        outcomes = await asyncio.gather(
            *(impatient.write(TENANT, add, f"n{number}") for number in range(5)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [StoreBusy] * 5
        assert await impatient.read(TENANT, values) == {}  # readers are not held up
    await impatient.write(TENANT, add, "after")
    assert await impatient.read(TENANT, values) == {"after": 0}


async def test_a_short_lock_is_waited_for(database: str) -> None:
    store = SqliteStore(database, lock_wait=timedelta(seconds=30))
    await store.open()
    await store.write(None, create_tables)
    holder = Holder(database)
    writing = asyncio.create_task(store.write(TENANT, add, "waited"))
    await asyncio.sleep(0)
    assert not writing.done()
    await asyncio.to_thread(holder.let_go)
    assert await writing == "waited"
    await store.close()


def act(tx: Tx, name: str) -> None:
    """A row and an event with much to tell."""
    add(tx, name)
    events.append(tx, "service:test", "row.added", name, {"text": name * 5000})


async def act_until_full(store: SqliteStore) -> list[str]:
    """Sixteen at a time; what was told as done before the disk was full."""
    done: list[str] = []
    for round_number in range(1000):
        names = [f"n{round_number:03}-{number:02}" for number in range(16)]
        outcomes = await asyncio.gather(*(store.write(TENANT, act, name) for name in names), return_exceptions=True)
        done += [name for name, outcome in zip(names, outcomes, strict=True) if outcome is None]
        failures = {type(outcome) for outcome in outcomes} - {type(None)}
        if failures:
            assert failures == {StorageFull}
            return done
    raise AssertionError("the disk never was full")


async def assert_whole(store: SqliteStore, done: list[str]) -> None:
    """Exactly what was told is there, each row with its event."""
    assert list(await store.read(TENANT, values)) == done
    verdict = await Audit(store).verify(operator(TENANT))
    assert (verdict.breaks, verdict.head.seq) == ([], len(done))


async def test_full_database_leaves_no_partial_write_and_recovers(impatient: SqliteStore) -> None:
    """As full as SQLite itself makes it, on any machine: every connection may use only so many pages."""
    room = {"pages": 500}

    def limit(raw: sqlite3.Connection, _: object) -> None:
        raw.execute(f"PRAGMA max_page_count = {room['pages']}")

    event.listen(impatient._engine, "connect", limit)
    with pytest.raises(IntegrityError):
        await impatient.write(TENANT, point, "p", "nowhere")  # makes it connect again
    done = await act_until_full(impatient)
    assert done
    await assert_whole(impatient, done)
    with pytest.raises(StorageFull):
        await impatient.write(TENANT, act, "still full")
    room["pages"] = 100_000
    await impatient.write(TENANT, act, "room again")
    await assert_whole(impatient, [*done, "room again"])


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of two megabytes. Only where this process may mount one."""
    disk = folder / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.call(["mount", "-t", "tmpfs", "-o", "size=2m", "small", disk]):
        pytest.skip("may not mount a file system here")
    yield disk
    subprocess.check_call(["umount", disk])


async def test_full_disk_leaves_no_partial_write_and_recovers(small_disk: Path, database: str) -> None:
    store = SqliteStore(f"sqlite:///{small_disk / 'assent.db'}")
    shutil.move(database.removeprefix("sqlite:///"), small_disk / "assent.db")
    await store.open()
    await store.write(None, create_tables)
    done = await act_until_full(store)
    assert done
    await assert_whole(store, done)
    remount = ["mount", "-o", "remount,size=16m", small_disk]
    await (await asyncio.create_subprocess_exec(*map(str, remount))).wait()
    await store.write(TENANT, act, "room again")
    await assert_whole(store, [*done, "room again"])
    await store.close()


async def test_store_recovers_after_its_folder_was_missing(folder: Path, impatient: SqliteStore) -> None:
    """The writer cannot even connect again; it must tell so, and still be there afterwards."""
    elsewhere = folder.with_name(f"{folder.name}-elsewhere")
    folder.rename(elsewhere)
    with pytest.raises(IntegrityError):
        await impatient.write(TENANT, point, "p", "nowhere")  # makes it give its connection up
    for _ in range(2):
        with pytest.raises(Unavailable):
            await impatient.write(TENANT, add, "lost")
    elsewhere.rename(folder)
    await impatient.write(TENANT, add, "found")
    assert await impatient.read(TENANT, values) == {"found": 0}


async def test_every_commit_is_on_disk_before_it_is_confirmed(impatient: SqliteStore) -> None:
    settings = await impatient.write(
        None, lambda tx: [tx.sql(f"PRAGMA {name}").all()[0][0] for name in ("synchronous", "journal_mode")]
    )
    assert settings == [2, "wal"]  # 2 is FULL: the log is flushed with every commit


async def test_backup_during_writes_is_consistent(folder: Path, impatient: SqliteStore) -> None:
    copy = folder / "a copy #1 %.db"
    writing = asyncio.gather(*(impatient.write(TENANT, act, f"n{number:02}") for number in range(40)))
    await impatient.backup(str(copy))
    await writing
    restored = SqliteStore(f"sqlite:///{copy}")
    await restored.open()
    there = await restored.read(TENANT, values)
    await assert_whole(restored, list(there))
    await restored.close()
    with outside(f"sqlite:///{copy}").connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
