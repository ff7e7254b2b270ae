"""A read that one caller asks for ends in time, and does not take all the readers."""

from __future__ import annotations

import asyncio
from contextvars import Context

import pytest
from sqlalchemy import text

from assent.errors import Invalid
from assent.kernel.fair_threads import caller
from assent.kernel.store.drivers import postgres, sqlite
from assent.kernel.store.transaction import Tx
from tests.contract.stores import AnyStore, both_databases, only_postgres, only_sqlite
from tests.waiting import until

_FOR_EVER = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers"


def count_for_ever(tx: Tx) -> object:
    return tx._connection.execute(text(_FOR_EVER)).scalar()


def count_counting(tx: Tx) -> object:
    counting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND state = 'active' AND query LIKE 'WITH RECURSIVE numbers%'"
    )
    return tx._connection.execute(text(counting)).scalar()


async def slow_read(store: AnyStore) -> None:
    """Run it as a task: the tests share one context, and the caller would stay set in it."""
    caller.set("agent:slow")
    await store.read(None, count_for_ever)


@both_databases
async def test_a_read_that_takes_too_long_is_refused(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "_MOST_SECONDS", 0.2)
    with pytest.raises(Invalid, match="too long"):
        await asyncio.create_task(slow_read(store))
    assert await store.read(None, lambda tx: tx.now()) is not None


@only_postgres
async def test_postgres_stops_a_read_that_takes_too_long(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_MOST_SECONDS", 0.2)
    with pytest.raises(Invalid, match="too long"):
        await asyncio.create_task(slow_read(store))

    async def stopped() -> bool:
        return not await store.read(None, count_counting)

    await until(stopped, "Postgres goes on counting")


@only_postgres
async def test_control_a_read_of_the_server_itself_is_not_limited(
    store: AnyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_MOST_SECONDS", 0.2)
    without_caller = asyncio.create_task(store.read(None, count_for_ever), context=Context())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await without_caller


@only_sqlite
async def test_reads_of_one_caller_leave_a_reader_for_others(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the caller has gone."""
    monkeypatch.setattr(sqlite, "_MOST_SECONDS", 5.0)
    reads = [asyncio.create_task(slow_read(store)) for _ in range(6)]
    await asyncio.sleep(0)
    for gone in reads[:3]:
        gone.cancel()
    async with asyncio.timeout(4):
        assert await store.read(None, lambda tx: tx.now()) is not None
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)
