"""From nothing to the newest schema, on both databases, whoever asks and however often."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from assent.errors import ConfigError
from assent.kernel.store import migrations
from assent.kernel.store.tables import metadata
from tests.contract.stores import both_databases, opened, outside
from tests.postgres import Cluster

UPGRADER = """
import sys
from assent.kernel.store import migrations
from alembic import command
print("ready", flush=True)
for url in sys.stdin:
    try:
        print(migrations.upgrade(url.strip()), flush=True)
    except Exception as error:
        print("failed:", repr(error).replace(chr(10), " "), flush=True)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def empty_databases(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The addresses of databases without any table; on SQLite not even the folder is there."""
    if request.param == "sqlite":
        folder: Path = request.getfixturevalue("folder")
        yield [f"sqlite:///{folder}/new/{number}.db" for number in range(3)]
    else:
        cluster: Cluster = request.getfixturevalue("postgres")
        with ExitStack() as stack:
            yield [stack.enter_context(cluster.database()) for _ in range(3)]


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest) -> str:
    """One of the kind."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('folder')}/new/assent.db"
    return str(request.getfixturevalue("postgres_url"))


def differences(url: str) -> list[object]:
    """Apart from the full-text index, which is SQLite's own there."""
    with outside(url).connect() as connection:
        of_its_own = ("item_texts_index", "ix_item_texts_lexemes") if connection.dialect.name == "sqlite" else ()
        opts = {"include_object": lambda _, name, *__: not str(name).startswith(of_its_own)}
        return list(compare_metadata(MigrationContext.configure(connection, opts=opts), metadata))


def triggers(url: str) -> list[str]:
    """The statements that maintain the full-text index."""
    with outside(url).connect() as connection:
        made = text(
            "SELECT sql FROM sqlite_master WHERE name LIKE 'item_texts_%' AND sql LIKE 'CREATE %' ORDER BY name"
        )
        return list(connection.execute(made).scalars())


def tables(url: str) -> set[str]:
    return set(inspect(outside(url)).get_table_names())


def test_new_database_has_exactly_the_declared_tables(empty: str) -> None:
    assert migrations.current(empty) is None
    assert migrations.upgrade(empty) == migrations.newest()
    assert migrations.current(empty) == migrations.newest()
    assert tables(empty) >= {*metadata.tables}
    assert differences(empty) == []


def test_older_database_is_upgraded_to_the_same_tables_with_its_rows(empty: str) -> None:
    """From the first revision, as Alembic made it, to the newest: what a new database is made as at once."""
    with migrations._connection(empty) as connection, migrations._exclusive(connection):
        migrations._run_alembic(connection, "0001")
    with outside(empty).connect() as connection:
        connection.execute(
            text(
                "INSERT INTO users (tenant_id, user_id, name, role, created_at) VALUES ('t', 'u', 'ana', 'admin', :at)"
            ),
            {"at": "2026-01-01T00:00:00Z" if "postgres" in empty else 0},
        )
        connection.execute(
            text(
                "INSERT INTO api_keys (tenant_id, key_id, kind, name, user_id, hash, scopes, created_at)"
                " VALUES ('t', 'k1', 'agent', 'bot', NULL, 'h1', '[]', :at),"
                " ('t', 'k2', 'reviewer', 'x', 'u', 'h2', '[]', :at)"
            ),
            {"at": "2026-01-01T00:00:00Z" if "postgres" in empty else 0},
        )
    assert migrations.upgrade(empty) == migrations.newest()
    assert differences(empty) == []
    with outside(empty).connect() as connection:
        assert connection.execute(text("SELECT name, groups FROM users")).one()[0] == "ana"
        keys = connection.execute(text("SELECT key_id, principal_id FROM api_keys ORDER BY key_id")).all()
        assert [tuple(key) for key in keys] == [("k1", "k1"), ("k2", None)]


def test_upgraded_sqlite_has_the_same_full_text_index_as_a_new_one(folder: Path) -> None:
    new, old = f"sqlite:///{folder}/new.db", f"sqlite:///{folder}/old.db"
    migrations.upgrade(new)
    with migrations._connection(old) as connection, migrations._exclusive(connection):
        migrations._run_alembic(connection, "0001")
    migrations.upgrade(old)
    assert triggers(new) == triggers(old)
    assert sum(statement.startswith("CREATE TRIGGER") for statement in triggers(new)) == 3


def test_control_a_missing_column_is_noticed(empty: str) -> None:
    """The control of the comparison above."""
    migrations.upgrade(empty)
    with outside(empty).connect() as connection:
        connection.execute(text("ALTER TABLE users DROP COLUMN email"))
    assert differences(empty)


def test_second_upgrade_changes_nothing(empty: str) -> None:
    migrations.upgrade(empty)
    with outside(empty).connect() as connection:
        connection.execute(text("INSERT INTO event_heads VALUES ('acme', 5, 'x')"))
    assert migrations.upgrade(empty) == migrations.newest()
    with outside(empty).connect() as connection:
        assert connection.execute(text("SELECT seq FROM event_heads")).scalars().all() == [5]


def test_a_database_newer_than_the_code_is_refused(empty: str) -> None:
    migrations.upgrade(empty)
    with outside(empty).connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigError, match="9999, newer than this Assent supports"):
        migrations.upgrade(empty)
    assert migrations.current(empty) == "9999"


def test_failed_upgrade_is_rolled_back_completely(empty: str) -> None:
    """Something of that name is in the way: all of the upgrade is undone, not only its last step."""
    assert migrations.current(empty) is None
    with outside(empty).connect() as connection:
        connection.execute(text("CREATE TABLE users (id integer)"))
    with pytest.raises(Exception, match="already exists"):
        migrations.upgrade(empty)
    assert tables(empty) == {"users"}
    with outside(empty).connect() as connection:
        connection.execute(text("DROP TABLE users"))
    assert migrations.upgrade(empty) == migrations.newest()


def test_of_all_processes_that_start_at_once_one_upgrades(empty_databases: list[str]) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(_upgrader()) for _ in range(3)]
        for url in empty_databases:
            for process in processes:
                print(url, file=process.stdin, flush=True)
            assert [_answer(process) for process in processes] == [migrations.newest()] * 3
        for process in processes:
            process.stdin.close()  # type: ignore[union-attr]
    assert all(differences(url) == [] for url in empty_databases)


@both_databases
async def test_database_is_upgraded_beside_a_running_server(database: str) -> None:
    async with opened(database) as store:
        await store.write(None, lambda tx: tx.now())
        assert migrations.upgrade(database) == migrations.newest()


def _upgrader() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", UPGRADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert _answer(process) == "ready"
    return process


def _answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()
