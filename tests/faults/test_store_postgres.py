"""Faults of Postgres: connections are cut, locks held, the disk full, the server stopped or killed."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import text

from assent.audit.service import Audit
from assent.errors import StorageFull, StoreBusy, Unavailable
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store import migrations
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.transaction import Tx
from tests.contract.stores import AnyStore, only_postgres, opened, outside
from tests.contract.tables import add, create_tables, values
from tests.postgres_server import PostgresServer
from tests.scoreboard import Count, RecordScore

TENANT = "acme"
CUT_ALL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
CUT_SELF = "SELECT pg_terminate_backend(pg_backend_pid())"
AT_COMMIT = """
CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON counters DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION die();
"""
DISK_FULL = """
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER fill BEFORE INSERT ON event_payloads FOR EACH ROW EXECUTE FUNCTION fill();
"""

pytestmark = pytest.mark.promise("P12")


def act(tx: Tx, name: str) -> str:
    add(tx, name)
    events.append(tx, "service:test", "row.added", name)
    return name


def run_outside(url: str, script: str) -> None:
    with outside(url).connect() as connection:
        connection.execute(text(script))


@only_postgres
async def test_cut_connections_are_replaced_without_an_error(database: str, store: AnyStore) -> None:
    await asyncio.gather(*(store.write(TENANT, add, f"n{number}") for number in range(12)))
    run_outside(database, CUT_ALL)
    assert len(await store.read(TENANT, values)) == 12
    run_outside(database, CUT_ALL)
    await asyncio.gather(*(store.write(TENANT, add, f"m{number}") for number in range(12)))
    assert len(await store.read(TENANT, values)) == 24


@only_postgres
async def test_connection_cut_before_the_commit_is_retried(store: AnyStore) -> None:
    def act_and_die_once(tx: Tx) -> None:
        runs.append(1)
        add(tx, "x")
        if len(runs) == 1:
            tx.sql(CUT_SELF)

    runs: list[int] = []
    await store.write(TENANT, act_and_die_once)
    assert len(runs) == 2
    assert await store.read(TENANT, values) == {"x": 0}


@only_postgres
async def test_a_connection_cut_in_the_commit_is_never_taken_for_a_failure(database: str, store: AnyStore) -> None:
    """The outcome of the commit is unknown, so it is not retried, and the caller gets an error that says so."""

    def act(tx: Tx) -> None:
        runs.append(1)
        add(tx, "x")

    runs: list[int] = []
    run_outside(database, AT_COMMIT)
    with pytest.raises(Unavailable, match="lost during the commit"):
        await store.write(TENANT, act)
    assert len(runs) == 1
    run_outside(database, "DROP TRIGGER die ON counters")
    await store.write(TENANT, add, "after")
    assert await store.read(TENANT, values) == {"after": 0}


@only_postgres
async def test_held_lock_is_busy(database: str, store: AnyStore) -> None:
    def want(tx: Tx) -> None:
        tx.sql("SET LOCAL lock_timeout = '20ms'")
        act(tx, "x")

    await store.write(TENANT, act, "first")
    with psycopg.connect(database) as connection:
        connection.execute("SELECT * FROM event_heads FOR UPDATE")
        with pytest.raises(StoreBusy):
            await store.write(TENANT, want)
    await store.write(TENANT, want)
    assert list(await store.read(TENANT, values)) == ["first", "x"]


@only_postgres
async def test_no_connection_free_is_busy(database: str, store: AnyStore) -> None:
    narrow = PostgresStore(database, connections=2, patience=0.05)
    await narrow.open()
    with psycopg.connect(database) as connection:
        connection.execute("LOCK TABLE counters")
        waiting = [asyncio.create_task(narrow.write(TENANT, add, f"n{number}")) for number in range(2)]
        await asyncio.sleep(0)
        for go in (narrow.write(TENANT, add, "too many"), narrow.read(TENANT, values)):
            with pytest.raises(StoreBusy, match="in use"):
                await go
    assert await asyncio.gather(*waiting) == ["n0", "n1"]
    await narrow.close()


@only_postgres
async def test_full_disk_leaves_no_partial_write_and_recovers(database: str, store: AnyStore) -> None:
    run_outside(database, DISK_FULL)
    with pytest.raises(StorageFull):
        await store.write(TENANT, act, "half")
    assert await store.read(TENANT, values) == {}
    run_outside(database, "DROP TRIGGER fill ON event_payloads")
    await store.write(TENANT, act, "whole")
    assert await store.read(TENANT, values) == {"whole": 0}


@only_postgres
async def test_error_text_that_quotes_a_caller_is_not_classified_as_a_fault(store: AnyStore) -> None:
    """Database messages quote callers: `disk is full` as a name must not look like a full disk."""
    name = "database or disk is full, database is locked, connection failed"
    await store.write(TENANT, add, name)
    with pytest.raises(Exception, match="already exists") as caught:
        await store.write(TENANT, add, name)
    assert not isinstance(caught.value, Unavailable)


@pytest.fixture
async def crashing(durable_postgres: PostgresServer) -> AsyncIterator[AnyStore]:
    await asyncio.to_thread(migrations.upgrade, durable_postgres.url)
    async with opened(durable_postgres.url) as store:
        await store.write(None, create_tables)
        yield store


@pytest.mark.scoreboard
async def test_a_crashed_server_loses_nothing_and_the_store_recovers_by_itself(
    durable_postgres: PostgresServer, crashing: AnyStore, count: Count, record_score: RecordScore
) -> None:
    told: list[str] = []
    arrived, over = asyncio.Event(), asyncio.Event()

    async def write_on(writer: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            try:
                told.append(await crashing.write(TENANT, act, f"n{writer}-{number}"))
                arrived.set()
            except Unavailable:
                await asyncio.sleep(0.01)  # what a client does who was told Retry-After

    async def more(than: int) -> None:
        while len(told) <= than + 20:
            arrived.clear()
            await arrived.wait()

    writers = [asyncio.create_task(write_on(writer)) for writer in range(8)]
    crashes, longest = count(full=10, quick=2), 0.0
    for _ in range(crashes):
        await asyncio.wait_for(more(len(told)), 30)
        await asyncio.to_thread(durable_postgres.crash)
        await asyncio.to_thread(durable_postgres.start)
        began = asyncio.get_running_loop().time()
        await asyncio.wait_for(more(len(told)), 30)
        longest = max(longest, asyncio.get_running_loop().time() - began)
    over.set()
    await asyncio.gather(*writers)

    stored_values = await crashing.read(TENANT, values)
    lost = set(told) - stored_values.keys()
    record_score(
        "Postgres crash while writing",
        "0 acknowledged rows lost, recovery ≤ 5 s",
        f"{len(lost)} of {len(told)} in {crashes} crashes, recovered in ≤ {longest:.1f} s",
    )
    assert lost == set()
    assert longest <= 5
    verdict = await Audit(crashing).verify(operator(TENANT))
    assert (verdict.breaks, verdict.head.seq) == ([], len(stored_values))


async def test_a_stopped_server_is_unavailable_until_it_is_back(
    durable_postgres: PostgresServer, crashing: AnyStore
) -> None:
    await asyncio.to_thread(durable_postgres.stop)
    for go in (crashing.write(TENANT, add, "x"), crashing.read(TENANT, values)):
        with pytest.raises(Unavailable):
            await go
    await asyncio.to_thread(durable_postgres.start)
    await crashing.write(TENANT, add, "x")
    assert await crashing.read(TENANT, values) == {"x": 0}
