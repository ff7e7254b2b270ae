"""Brings a database up to the newest schema: at start, and by `assent db upgrade`.

Revisions are numbered files under `revisions/`, so the newest is found without importing Alembic, which is slow to
import and needed only to upgrade an older schema: a new database gets the current tables.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, create_engine, create_mock_engine, inspect, make_url, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import OperationalError

from assent.errors import ConfigError
from assent.kernel.store import faults
from assent.kernel.store.tables import metadata

_REVISIONS = Path(__file__).parent / "revisions"
_MOST_SECONDS_TO_CONNECT = 30.0
_MOST_SECONDS_TO_SWITCH = 10.0
_UPGRADE_LOCK = 0x617373656E74  # "assent": one process upgrades, the others wait

log = logging.getLogger(__name__)


def newest() -> str:
    return max(path.name[:4] for path in _REVISIONS.glob("versions/[0-9]*.py"))


def current(url: str) -> str | None:
    with _connection(url) as connection:
        return _current(connection)


def upgrade(url: str) -> str:
    """Upgrades if needed, under a lock, in one transaction. Returns the current revision."""
    with _connection(url) as connection:
        revision = _current(connection)
        if revision == newest():
            return revision
        with _exclusive(connection):
            revision = _current(connection)
            if revision is not None and revision > newest():
                raise ConfigError(f"the database has revision {revision}, newer than this Assent supports ({newest()})")
            if revision is None:
                _create(connection)
            elif revision != newest():
                _run_alembic(connection)
            if revision != newest():
                log.info("database upgraded", extra={"from": revision, "to": newest()})
    return newest()


def _current(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    target = make_url(url)
    if target.get_backend_name() == "postgresql":
        target = target.set(drivername="postgresql+psycopg")
    elif target.database not in (None, "", ":memory:"):
        Path(target.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(target.database).touch(mode=0o600)  # readable by the operator only
    engine = create_engine(target, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with _connected(engine) as connection:
        yield connection


def _connected(engine: Engine) -> Connection:
    """Waits until other processes close connections that are idle, if they have all."""
    deadline = time.monotonic() + _MOST_SECONDS_TO_CONNECT
    while True:
        try:
            return engine.connect()
        except OperationalError as error:
            if not faults.has_no_connection_left(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


@contextmanager
def _exclusive(connection: Connection) -> Iterator[None]:
    """One transaction that excludes other upgrades. DDL is transactional on both databases."""
    if connection.dialect.name == "sqlite":
        _write_ahead(connection)
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
    try:
        yield
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")


def _write_ahead(connection: Connection) -> None:
    """Another process may be switching the same file, and SQLite does not wait for that, whatever the timeout."""
    deadline = time.monotonic() + _MOST_SECONDS_TO_SWITCH
    while True:
        try:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def create_tables(connection: Connection) -> None:
    """Creates all tables of an empty database."""
    if connection.dialect.name != "sqlite":
        return metadata.create_all(connection, checkfirst=False)
    for statement in _sqlite_tables():
        connection.exec_driver_sql(statement)


@cache
def _sqlite_tables() -> list[str]:
    """The statements, compiled once: a program that tests its agents opens many databases in memory."""
    statements: list[str] = []
    dialect = sqlite.dialect()
    engine = create_mock_engine("sqlite://", lambda ddl, *_: statements.append(str(ddl.compile(dialect=dialect))))
    metadata.create_all(engine, checkfirst=False)
    return statements


def _create(connection: Connection) -> None:
    """Creates all tables at once, marked as the newest revision. Tests compare them with the revisions."""
    create_tables(connection)
    connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY NOT NULL)")
    connection.execute(text("INSERT INTO alembic_version VALUES (:newest)"), {"newest": newest()})


def _run_alembic(connection: Connection, to: str = "head") -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_REVISIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, to)
