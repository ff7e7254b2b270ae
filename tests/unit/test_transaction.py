"""The guards around a store function, over a bare connection without an executor."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from sqlalchemy import Column, Connection, MetaData, String, Table, create_engine, select
from sqlalchemy.exc import IntegrityError

from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import TenantForgotten, Tx, forbid_ending, insert_into, insert_unless_taken, run

things = Table(
    "things",
    MetaData(),
    Column("tenant_id", String, primary_key=True),
    Column("name", String, primary_key=True),
)
NAMES = select(things.c.name).where(things.c.tenant_id == TENANT).order_by(things.c.name)
START = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    forbid_ending(engine)
    with engine.connect() as connection:
        things.create(connection)
        yield connection


def ticking() -> Iterator[datetime]:
    return (START + timedelta(seconds=number) for number in count())


def transaction(connection: Connection, tenant: str | None = "acme") -> Tx:
    times = ticking()
    return Tx(connection, tenant, lambda _: next(times))


def test_the_clock_is_read_once_and_only_when_asked(connection: Connection) -> None:
    asked: list[Connection] = []

    def clock(connection: Connection) -> datetime:
        asked.append(connection)
        return START

    tx = Tx(connection, "acme", clock)
    assert asked == []
    assert [tx.now(), tx.now()] == [START, START]
    assert asked == [connection]


def test_rows_belong_to_the_transactions_tenant(connection: Connection) -> None:
    transaction(connection).insert(things, tenant_id="other", name="x")
    assert [row.name for row in transaction(connection).all(NAMES)] == ["x"]
    assert transaction(connection, "other").all(NAMES) == []


def test_transaction_across_tenants_needs_the_tenant_in_the_row(connection: Connection) -> None:
    tx = transaction(connection, None)
    tx.insert(things, tenant_id="other", name="x")
    assert [row.name for row in transaction(connection, "other").all(NAMES)] == ["x"]
    with pytest.raises(TenantForgotten):
        tx.tenant  # noqa: B018


def test_refused_statement_names_the_missing_condition(connection: Connection) -> None:
    with pytest.raises(TenantForgotten, match=r"add `\.where\(table\.c\.tenant_id == TENANT\)` to: SELECT things"):
        transaction(connection).first(select(things))


ENDINGS = [
    "COMMIT",
    "commit;",
    "\n\tRollBack to job",
    "END TRANSACTION",
    "-- a note\nCOMMIT",
    "/* a\nnote */ BEGIN",
    "savepoint mine",
    "RELEASE job",
    "START TRANSACTION",
    "ABORT",
    "PREPARE TRANSACTION 'x'",
]
HARMLESS = [
    "SELECT 'COMMIT'",
    "SELECT 1 AS commit_count",
    "SELECT 1 -- COMMIT",
    "SELECT 1 AS beginning, 2 AS endpoint",
]


@pytest.mark.parametrize("statement", ENDINGS)
def test_a_function_cannot_control_its_transaction(connection: Connection, statement: str) -> None:
    with pytest.raises(RuntimeError, match="must not control"):
        run(transaction(connection), lambda tx: tx.sql(statement))


@pytest.mark.parametrize("statement", HARMLESS)
def test_keyword_inside_a_statement_is_accepted(connection: Connection, statement: str) -> None:
    run(transaction(connection), lambda tx: tx.sql(statement))


@pytest.mark.parametrize("way", ["commit", "rollback"])
def test_connection_is_ended_by_the_executor_only(connection: Connection, way: str) -> None:
    with pytest.raises(RuntimeError, match="must not end"):
        run(transaction(connection), lambda tx: [tx.all(NAMES), getattr(connection, way)()])
    connection.rollback()
    run(transaction(connection), lambda tx: tx.all(NAMES))
    getattr(connection, way)()


def test_an_error_of_the_database_cannot_be_hidden(connection: Connection) -> None:
    def hide(tx: Tx) -> None:
        tx.insert(things, name="same")
        with pytest.raises(IntegrityError):
            tx.insert(things, name="same")

    with pytest.raises(RuntimeError, match="must not hide"):
        run(transaction(connection), hide)


def test_insert_of_an_existing_key_returns_false(connection: Connection) -> None:
    tx = transaction(connection)
    assert run(tx, lambda tx: [tx.insert_new(things, name="x"), tx.insert_new(things, name="x")]) == [True, False]


def test_statements_are_built_once() -> None:
    assert insert_into(things) is insert_into(things)
    assert insert_unless_taken(things) is insert_unless_taken(things)


def test_insert_of_no_rows_sends_no_statement(connection: Connection) -> None:
    transaction(connection).insert_all(things, [])
    assert transaction(connection).all(NAMES) == []
