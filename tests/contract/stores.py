"""The stores under contract: SQLite in a file, SQLite in memory, Postgres. Each test gets an empty, migrated one.

`tests/contract/conftest.py` and `tests/faults/conftest.py` take these fixtures from here. A test that needs a database
which outlives its store narrows the choice: `@both_databases`.
"""

import asyncio
import shutil
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from sqlalchemy import Engine, NullPool, create_engine, make_url

from assent.kernel.store import migrations
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.transaction import Tx
from tests.contract.tables import create_tables
from tests.postgres import SESSION, Cluster

AnyStore: TypeAlias = SqliteStore | PostgresStore

MEMORY = "sqlite://"
PATIENCE = 60.0
both_databases = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
only_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
only_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)


@pytest.fixture
def folder(pytestconfig: pytest.Config) -> Iterator[Path]:
    """In memory where there is enough of it: what is proven here does not depend on a slow disk."""
    folder = pytestconfig.stash[SESSION] / f"files-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database with the newest tables."""
    if request.param == "memory":
        yield MEMORY
    elif request.param == "sqlite":
        file = request.getfixturevalue("folder") / "assent.db"
        shutil.copy(request.getfixturevalue("migrated_file"), file)
        yield f"sqlite:///{file}"
    else:
        cluster: Cluster = request.getfixturevalue("postgres")
        with migrated_database(cluster) as url:
            yield url


@pytest.fixture
async def store(database: str) -> AsyncIterator[AnyStore]:
    async with opened(database) as store:
        await store.write(None, create_tables)
        yield store


def migrated_database(cluster: Cluster) -> AbstractContextManager[str]:
    """The address of an empty database on Postgres with the newest tables, dropped afterwards."""
    return cluster.database(cluster.template("migrated", _migrate))


def new_store(url: str) -> AnyStore:
    return SqliteStore(url) if url.startswith("sqlite") else PostgresStore(url)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[AnyStore]:
    store = new_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def outside(url: str) -> Engine:
    """A door beside the store, for what another process would do. Every statement is its own transaction."""
    target = make_url(url)
    if target.get_backend_name() == "postgresql":
        target = target.set(drivername="postgresql+psycopg")
    return create_engine(target, poolclass=NullPool, isolation_level="AUTOCOMMIT")


async def all_at_once(store: AnyStore, tenant: str, *functions: Callable[[Tx], Any]) -> list[Any]:
    """The outcome of each. On SQLite all of them are one group: the writer is held until the last one is queued."""
    if isinstance(store, PostgresStore):
        return await _outcomes(store, tenant, functions)
    entered, leave = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        entered.set()
        assert leave.wait(PATIENCE)

    holding = asyncio.create_task(store.write(None, hold))
    assert await asyncio.to_thread(entered.wait, PATIENCE)
    waiting = asyncio.create_task(_outcomes(store, tenant, functions))
    for _ in range(3):  # one turn of the loop to start, one in which they queue up, one to spare
        await asyncio.sleep(0)
    assert store._jobs.qsize() == len(functions)
    leave.set()
    await holding
    return await waiting


async def _outcomes(store: AnyStore, tenant: str, functions: tuple[Callable[[Tx], Any], ...]) -> list[Any]:
    return await asyncio.gather(*(store.write(tenant, function) for function in functions), return_exceptions=True)


def _migrate(url: str) -> None:
    migrations.upgrade(url)
