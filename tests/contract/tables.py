"""Tables of the suite's own, so that the contract stands without any noun: counters, notes, deferred references."""

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    bindparam,
    select,
    update,
)
from sqlalchemy.schema import CreateTable

from assent.kernel.store.tables import TENANT, Instant, Json
from assent.kernel.store.transaction import Tx

metadata = MetaData()

counters = Table(
    "counters",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", Integer, nullable=False),
)

notes = Table(
    "notes",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("note_id", Integer, primary_key=True, autoincrement=False),
    Column("slug", String),
    Column("at", Instant),
    Column("body", Json),
    UniqueConstraint("tenant_id", "slug"),
)

pointers = Table(
    "pointers",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("target", String, nullable=False),
    ForeignKeyConstraint(
        ["tenant_id", "target"], ["counters.tenant_id", "counters.name"], initially="DEFERRED", deferrable=True
    ),
)

_COUNTERS = select(counters.c.name, counters.c.value).where(counters.c.tenant_id == TENANT).order_by(counters.c.name)
_SWAP = (
    update(counters)
    .where(
        counters.c.tenant_id == TENANT, counters.c.name == bindparam("which"), counters.c.value == bindparam("expected")
    )
    .values(value=bindparam("wanted"))
)


def create_tables(tx: Tx) -> None:
    for table in metadata.sorted_tables:
        tx.change(CreateTable(table))


def add(tx: Tx, name: str, value: int = 0) -> str:
    tx.insert(counters, name=name, value=value)
    return name


def compare_and_set(tx: Tx, name: str, expected: int, wanted: int) -> bool:
    return tx.change(_SWAP, which=name, expected=expected, wanted=wanted) == 1


def values(tx: Tx) -> dict[str, int]:
    return {row.name: row.value for row in tx.all(_COUNTERS)}


def point(tx: Tx, name: str, target: str) -> None:
    """A reference that is checked at the commit: to nowhere, it makes the COMMIT itself fail."""
    tx.insert(pointers, name=name, target=target)
