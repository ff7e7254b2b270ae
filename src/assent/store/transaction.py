"""What a store function sees: one transaction, of one tenant, on the database's clock.

A write is a plain function `def create(tx, …)` that may be run again after a failed commit, so it must have no effect
outside `tx`. `Tx` is also the one layer that keeps tenants apart: it binds `TENANT` in every statement and refuses a
statement over a tenant's table that does not contain it, unless the transaction was opened across tenants on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from sqlalchemy import Connection, CursorResult, Executable, Row, Table, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import BindParameter

from assent.store.tables import TENANT


class Clock(Protocol):
    """Reads the time where the data is kept."""

    def __call__(self, connection: Connection) -> datetime: ...


class TenantForgotten(RuntimeError):
    """A statement over a tenant's table does not name the tenant. This is a bug in the statement."""


class Tx:
    def __init__(self, connection: Connection, tenant: str | None, clock: Clock) -> None:
        self._connection = connection
        self._tenant = tenant
        self._clock = clock
        self._now: datetime | None = None

    @property
    def tenant(self) -> str:
        if self._tenant is None:
            raise TenantForgotten("this transaction was opened across tenants")
        return self._tenant

    def now(self) -> datetime:
        """The database's time, the same for the whole function."""
        if self._now is None:
            self._now = self._clock(self._connection)
        return self._now

    def all(self, statement: Executable, **params: Any) -> Sequence[Row[Any]]:
        return list(self._execute(statement, params))

    def first(self, statement: Executable, **params: Any) -> Row[Any] | None:
        row: Row[Any] | None = self._execute(statement, params).first()
        return row

    def change(self, statement: Executable, **params: Any) -> int:
        """Runs an update or delete and says how many rows it met: the heart of every compare-and-set."""
        return int(self._execute(statement, params).rowcount)

    def insert(self, table: Table, **row: Any) -> None:
        self._connection.execute(insert_into(table), self._owned(row))

    def insert_all(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._connection.execute(insert_into(table), [self._owned(row) for row in rows])

    def insert_new(self, table: Table, **row: Any) -> bool:
        """Inserts unless a unique key is taken, and says whether it did. Never aborts the transaction."""
        statement = insert_unless_taken(table, self.dialect)
        return bool(self._connection.execute(statement, self._owned(row)).rowcount)

    def sql(self, statement: str, params: Any = ()) -> CursorResult[Any]:
        """Plain SQL in the driver's style, for the few statements hot enough to need it. Names its tenant itself."""
        return self._connection.exec_driver_sql(statement, params)

    @property
    def dialect(self) -> str:
        return self._connection.dialect.name

    def _owned(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return dict(row) if self._tenant is None else {**row, "tenant_id": self._tenant}

    def _execute(self, statement: Executable, params: dict[str, Any]) -> Any:
        if self._tenant is not None:
            _require_tenant(statement)
            params["tenant"] = self._tenant
        return self._connection.execute(statement, params)


@lru_cache(maxsize=1024)
def _require_tenant(statement: Executable) -> None:
    """Looks once at each statement object; those built once at module level cost nothing afterwards."""
    for element in visitors.iterate(statement):  # type: ignore[arg-type]
        if isinstance(element, BindParameter) and element.key == TENANT.key:
            return
    raise TenantForgotten(f"add `.where(table.c.tenant_id == TENANT)` to: {statement}")


@lru_cache(maxsize=256)
def insert_into(table: Table) -> Any:
    return insert(table)


@lru_cache(maxsize=256)
def insert_unless_taken(table: Table, dialect: str) -> Any:
    into = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return into(table).on_conflict_do_nothing()
