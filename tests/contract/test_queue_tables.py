"""The queue's own tables: made once, beside ours, replaced when another version needs others, and never missed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import make_url

from assent.errors import ConfigError
from assent.kernel.store import migrations
from assent.kernel.store.drivers.pool import check_idle
from assent.kernel.store.tables import metadata
from assent.runs.queues import jobs
from tests.contract.stores import outside
from tests.postgres import Cluster

TABLES = "SELECT table_schema FROM information_schema.tables WHERE table_name LIKE 'procrastinate%'"
ON_SQLITE = """
import asyncio, sys
from assent.app import open_engine, open_services
from assent.runs.project.loader import LoadedGraphs
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


async def test_concurrent_processes_create_queue_tables_once(url: str) -> None:
    await asyncio.gather(*(jobs.install(url) for _ in range(5)))
    assert _schemas(url) == {jobs.SCHEMA}
    with outside(url).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


async def test_queue_tables_of_another_version_are_replaced(url: str) -> None:
    await jobs.install(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"COMMENT ON SCHEMA {jobs.SCHEMA} IS 'procrastinate of old'")
        connection.execute(f"DROP TABLE {jobs.SCHEMA}.procrastinate_events")
    await jobs.install(url)
    with psycopg.connect(url) as connection:
        connection.execute(f"SELECT count(*) FROM {jobs.SCHEMA}.procrastinate_events")


async def test_tables_of_an_earlier_release_lose_their_history_and_keep_their_jobs(url: str) -> None:
    """Processes of that release may execute them."""
    await jobs.install(url)
    with psycopg.connect(url, autocommit=True, options=jobs.options(url)) as connection:
        connection.execute(
            "CREATE TRIGGER procrastinate_trigger_status_events_insert_v1 AFTER INSERT ON procrastinate_jobs "
            "FOR EACH ROW EXECUTE FUNCTION procrastinate_trigger_function_status_events_insert_v1()"
        )
        connection.execute("INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('runs', 'early')")
        assert connection.execute("SELECT count(*) FROM procrastinate_events").fetchone() == (1,)
    await jobs.install(url)
    with psycopg.connect(url, autocommit=True, options=jobs.options(url)) as connection:
        connection.execute("INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('runs', 'late')")
        assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM procrastinate_events").fetchone() == (1,)


async def test_change_of_a_job_leaves_no_history(url: str) -> None:
    await jobs.install(url)
    with psycopg.connect(url, autocommit=True, options=jobs.options(url)) as connection:
        connection.execute("INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('runs', 'run')")
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
        assert connection.execute("SELECT count(*) FROM procrastinate_events").fetchone() == (0,)


@pytest.mark.parametrize("check", [check_idle, None])
async def test_pool_replaces_a_connection_that_the_server_has_closed(url: str, check: Any) -> None:
    async with AsyncConnectionPool(url, min_size=1, max_size=1, check=check, kwargs={"autocommit": True}) as pool:
        async with pool.connection() as connection:
            pid = connection.info.backend_pid
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        lost = nullcontext() if check else pytest.raises(psycopg.OperationalError)
        with lost:
            async with pool.connection() as connection:
                assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


async def test_role_without_the_create_right_gets_an_error(url: str) -> None:
    role = make_url(url).database or ""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE ROLE "{role}" LOGIN')
    try:
        with pytest.raises(ConfigError, match="permission denied"):
            await jobs.install(make_url(url).set(username=role).render_as_string(hide_password=False))
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'DROP ROLE "{role}"')


def test_queue_library_is_not_imported_on_sqlite() -> None:
    process = subprocess.run([sys.executable, "-c", ON_SQLITE], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def _schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {schema for (schema,) in connection.execute(TABLES)}
