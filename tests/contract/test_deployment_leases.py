"""The lease of the process that follows a deployment, on Postgres, where it is renewed while that process records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import psycopg
import pytest

from assent.kernel.store.transaction import Tx
from assent.threads.rows.remote import deployments
from tests.contract.stores import AnyStore, migrated_database, opened
from tests.postgres import Cluster
from tests.waiting import until

TENANT, LEASE = "default", timedelta(seconds=60)
_RECORDS = "SELECT 1 FROM deployments WHERE deployment_id = 'followed' FOR SHARE"
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def database(postgres: Cluster) -> Iterator[str]:
    with migrated_database(postgres) as url:
        yield url


@pytest.fixture
async def store(database: str) -> AsyncIterator[AnyStore]:
    async with opened(database) as store:
        await store.write(TENANT, _insert)
        yield store


async def test_process_that_records_keeps_its_lease(store: AnyStore, database: str) -> None:
    """Else it would end its round, and forget what it knows, whenever the renewal meets a record."""
    assert await led_by(store, "this") == ["followed"]
    with psycopg.connect(database) as recording, psycopg.connect(database, autocommit=True) as observing:
        recording.execute(_RECORDS)
        renewal = asyncio.create_task(led_by(store, "this"))

        async def came() -> bool:
            return renewal.done() or observing.execute(_WAITING).fetchone() == (1,)

        await until(came, "the lease is not renewed")
        recording.rollback()
        assert await renewal == ["followed"]


async def test_process_does_not_wait_for_what_another_follows(store: AnyStore, database: str) -> None:
    assert await led_by(store, "other") == ["followed"]
    with psycopg.connect(database) as recording:
        recording.execute(_RECORDS)
        assert await asyncio.wait_for(led_by(store, "this"), 60) == []


async def led_by(store: AnyStore, who: str) -> list[str]:
    return [deployment.id for _, deployment in await store.write(None, deployments.lead, who, LEASE)]


def _insert(tx: Tx) -> None:
    named = {"name": "followed", "url": "http://127.0.0.1:1", "credentials": None}
    assert deployments.insert(tx, "followed", **named, graphs=[], stringify_args=False)
