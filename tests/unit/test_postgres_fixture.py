"""The fixtures that give tests a real Postgres."""

import psycopg
import pytest

from tests.postgres import Cluster
from tests.postgres_server import PostgresServer


def tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]


@pytest.mark.parametrize("attempt", [1, 2])
def test_every_test_gets_an_empty_database(postgres_url: str, attempt: int) -> None:
    assert tables(postgres_url) == []
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"CREATE TABLE left_over_{attempt} (id int)")


async def test_async_connections_work_and_may_stay_open(postgres_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        rows = await connection.execute("SELECT 6 * 7")
        assert await rows.fetchone() == (42,)


def test_a_database_is_dropped_under_an_open_connection(postgres: Cluster) -> None:
    with postgres.database() as url:
        connection = psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()


def test_a_template_is_built_once_and_copied(postgres: Cluster) -> None:
    built: list[str] = []

    def build(url: str) -> None:
        built.append(url)
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE migrated (id int)")

    names = {postgres.template("proof", build) for _ in range(3)}
    assert len(built) == len(names) == 1
    with postgres.database(template=names.pop()) as url:
        assert tables(url) == ["migrated"]


def test_a_durable_server_keeps_what_was_committed_before_a_crash(durable_postgres: PostgresServer) -> None:
    with psycopg.connect(durable_postgres.url) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        connection.execute("CREATE TABLE kept (id int)")
    durable_postgres.crash()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(durable_postgres.url)
    durable_postgres.start()
    assert tables(durable_postgres.url) == ["kept"]
    durable_postgres.stop()
    durable_postgres.start()
    assert tables(durable_postgres.url) == ["kept"]
