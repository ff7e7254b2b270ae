"""The queue's own tables: made once, beside ours, replaced when another version needs others, and never missed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import make_url

from assent.engine.queues import jobs
from assent.errors import ConfigError
from assent.store import migrations
from assent.store.tables import metadata
from tests.contract.stores import outside
from tests.postgres import Cluster

TABLES = "SELECT table_schema FROM information_schema.tables WHERE table_name LIKE 'procrastinate%'"
ON_SQLITE = """
import asyncio, sys
from assent.app import open_engine, open_services
from assent.engine.loader import LoadedGraphs
from assent.settings import Settings

async def main():
    settings = Settings(database="sqlite://")
    async with open_services(settings) as services, open_engine(services.store, LoadedGraphs({}, {}), settings):
        print(sorted({"procrastinate", "psycopg"} & sys.modules.keys()))

asyncio.run(main())
"""


@pytest.fixture
def url(postgres: Cluster) -> Iterator[str]:
    with postgres.database() as url:
        migrations.upgrade(url)
        yield url


async def test_many_processes_make_them_once_and_leave_ours_alone(url: str) -> None:
    await asyncio.gather(*(jobs.install(url) for _ in range(5)))
    assert _schemas(url) == {jobs.SCHEMA}
    with outside(url).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


async def test_those_of_another_version_are_replaced(url: str) -> None:
    await jobs.install(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"COMMENT ON SCHEMA {jobs.SCHEMA} IS 'procrastinate of old'")
        connection.execute(f"DROP TABLE {jobs.SCHEMA}.procrastinate_events")
    await jobs.install(url)
    with psycopg.connect(url) as connection:
        connection.execute(f"SELECT count(*) FROM {jobs.SCHEMA}.procrastinate_events")


async def test_a_role_that_may_not_make_them_is_told(url: str) -> None:
    role = make_url(url).database or ""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE ROLE "{role}" LOGIN')
    try:
        with pytest.raises(ConfigError, match="permission denied"):
            await jobs.install(make_url(url).set(username=role).render_as_string(hide_password=False))
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'DROP ROLE "{role}"')


def test_nothing_of_it_is_imported_on_sqlite() -> None:
    found = subprocess.run([sys.executable, "-c", ON_SQLITE], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def _schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {schema for (schema,) in connection.execute(TABLES)}
