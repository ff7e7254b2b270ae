"""The SQLite store's writer against its floor: one plain connection that commits each write.

Both insert the same rows into the same table, on the same file system, with `synchronous=FULL`, by turns, so that a
noisy machine disturbs both. The store earns its keep by committing in groups: many writers share one flush.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from assent.kernel.ids import new_id
from assent.kernel.store import migrations
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.tables import users
from assent.kernel.store.transaction import Tx
from bench.rows import Row, ratio_at_least, reported

WRITERS = 64
WRITES = 3200
ALONE = 300
ROUNDS = 7

INSERT = "INSERT INTO users (tenant_id, user_id, name, role, created_at) VALUES ('bench', ?, ?, 'viewer', ?)"


def run() -> list[Row]:
    floor, group = _by_turns(_commit_each, _commit_in_groups)
    plain, alone = _by_turns(_latency_of_a_plain_connection, _latency_of_the_store)
    return [
        ratio_at_least(f"store: durable writes, {WRITERS} writers", group, "writes/s", peer=floor, target=2),
        reported("store: one write alone, p50", alone * 1e3, "ms", peer=plain * 1e3),
    ]


def _by_turns(floor: Callable[[Path], float], ours: Callable[[Path], float]) -> tuple[float, float]:
    pairs = []
    for _ in range(ROUNDS):
        with _database() as file:
            pairs.append((floor(file), ours(file)))
    return median(each for each, _ in pairs), median(each for _, each in pairs)


@contextmanager
def _database() -> Iterator[Path]:
    """In the working directory: a temporary folder is often in memory, where a flush costs nothing."""
    with TemporaryDirectory(prefix=".bench-", dir=Path.cwd()) as folder:
        file = Path(folder) / "assent.db"
        migrations.upgrade(f"sqlite:///{file}")
        yield file


def _commit_each(file: Path) -> float:
    with closing(_plain(file)) as connection:
        before, began = _count(connection), time.perf_counter()
        for _ in range(WRITES):
            _insert_and_commit(connection)
        rate = WRITES / (time.perf_counter() - began)
        assert _count(connection) == before + WRITES
    return rate


def _commit_in_groups(file: Path) -> float:
    with closing(_plain(file)) as connection:
        before = _count(connection)
        rate = asyncio.run(_rate(file))
        assert _count(connection) == before + WRITES  # seen from another connection: committed
    return rate


async def _rate(file: Path) -> float:
    store = SqliteStore(f"sqlite:///{file}")
    await store.open()
    assert await store.write(None, lambda tx: tx.sql("PRAGMA synchronous").all()[0][0]) == 2  # FULL

    async def write_on() -> None:
        for _ in range(WRITES // WRITERS):
            await store.write("bench", _insert)

    began = time.perf_counter()
    await asyncio.gather(*(write_on() for _ in range(WRITERS)))
    rate = WRITES / (time.perf_counter() - began)
    await store.close()
    return rate


def _latency_of_a_plain_connection(file: Path) -> float:
    times = []
    with closing(_plain(file)) as connection:
        for _ in range(ALONE):
            began = time.perf_counter()
            _insert_and_commit(connection)
            times.append(time.perf_counter() - began)
    return median(times)


def _latency_of_the_store(file: Path) -> float:
    return asyncio.run(_latency(file))


async def _latency(file: Path) -> float:
    store, times = SqliteStore(f"sqlite:///{file}"), []
    await store.open()
    for _ in range(ALONE):
        began = time.perf_counter()
        await store.write("bench", _insert)
        times.append(time.perf_counter() - began)
    await store.close()
    return median(times)


def _insert(tx: Tx) -> None:
    name = new_id()
    tx.insert(users, user_id=name, name=name, role="viewer", created_at=tx.now())


def _insert_and_commit(connection: sqlite3.Connection) -> None:
    name = new_id()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(INSERT, (name, name, time.time_ns() // 1000))
    connection.execute("COMMIT")


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM users").fetchone()[0])


def _plain(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection
