"""What a store function sees: one transaction, of one tenant, on the database's clock.

A write is a plain function `def create(tx, …)` that may be run again after a failed commit, so it must have no effect
outside `tx`, and it cannot end the transaction, which on SQLite is its neighbours' as well. `Tx` is also the one layer
that keeps tenants apart: it binds `TENANT` in every statement and refuses a statement over a tenant's table that does
not contain it, unless the transaction was opened across tenants on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, Executable, Row, Table, event, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import BindParameter

from assent.store.tables import TENANT

T = TypeVar("T")

_RUNNING = "a store function runs"
_CONTROL = re.compile(
    r"(\s|/\*.*?\*/|--[^\n]*\n)*(abort|begin|commit|end|prepare\s+transaction|release|rollback|savepoint|start)\b",
    re.IGNORECASE | re.DOTALL,
)


class Clock(Protocol):
    """Reads the time where the data is kept."""

    def __call__(self, connection: Connection) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Handover:
    """A run given to the queue, in the transaction that made it the head of its thread; `wake_at` delays it."""

    tenant: str
    run_id: str
    wake_at: datetime | None = None


class TenantForgotten(RuntimeError):
    """A statement over a tenant's table does not name the tenant. This is a bug in the statement."""


class Tx:
    def __init__(self, connection: Connection, tenant: str | None, clock: Clock) -> None:
        self._connection = connection
        self._tenant = tenant
        self._clock = clock
        self._now: datetime | None = None
        self.handovers: list[Handover] = []
        self.bells: set[str] = set()
        self.failed = False

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

    def hand_over(self, run_id: str, wake_at: datetime | None = None) -> None:
        """Gives a run to the queue if, and only if, this transaction commits."""
        self.handovers.append(Handover(self.tenant, run_id, wake_at))

    def ring(self, bell: str) -> None:
        """Wakes whoever listens to this bell, in this process, if, and only if, this transaction commits."""
        self.bells.add(bell)

    def all(self, statement: Executable, **params: Any) -> Sequence[Row[Any]]:
        return list(self._execute(statement, params))

    def first(self, statement: Executable, **params: Any) -> Row[Any] | None:
        row: Row[Any] | None = self._execute(statement, params).first()
        return row

    def change(self, statement: Executable, **params: Any) -> int:
        """Runs an update or delete and says how many rows it met: the heart of every compare-and-set."""
        return int(self._execute(statement, params).rowcount)

    def insert(self, table: Table, **row: Any) -> None:
        self._run(insert_into(table), self._owned(row))

    def insert_all(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._run(insert_into(table), [self._owned(row) for row in rows])

    def insert_new(self, table: Table, **row: Any) -> bool:
        """Inserts unless a unique key is taken, and says whether it did. Never aborts the transaction."""
        statement = insert_unless_taken(table, self.dialect)
        return bool(self._run(statement, self._owned(row)).rowcount == 1)

    def sql(self, statement: str, params: Any = ()) -> CursorResult[Any]:
        """Plain SQL in the driver's style, for the few statements hot enough to need it. Names its tenant itself."""
        try:
            return self._connection.exec_driver_sql(statement, params)
        except DBAPIError:
            self.failed = True
            raise

    @property
    def dialect(self) -> str:
        return self._connection.dialect.name

    def _owned(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return dict(row) if self._tenant is None else {**row, "tenant_id": self._tenant}

    def _execute(self, statement: Executable, params: dict[str, Any]) -> Any:
        if self._tenant is not None:
            _require_tenant(statement)
            params["tenant"] = self._tenant
        return self._run(statement, params)

    def _run(self, statement: Executable, params: Any) -> Any:
        try:
            return self._connection.execute(statement, params)
        except DBAPIError:
            self.failed = True
            raise


def run(tx: Tx, function: Callable[[Tx], T]) -> T:
    """Runs a function. It can neither end the transaction nor go on in it after the database refused a statement:
    Postgres would then answer COMMIT by rolling back, without an error."""
    running = tx._connection.info
    running[_RUNNING] = True
    try:
        result = function(tx)
    finally:
        running.pop(_RUNNING, None)
    if tx.failed:
        raise RuntimeError("a store function must not hide an error of the database: ask first, or use insert_new")
    return result


def forbid_ending(engine: Engine) -> None:
    """Makes whatever would end a transaction raise while a function runs in it: its executor ends it."""
    event.listen(engine, "commit", _refuse_while_running)
    event.listen(engine, "rollback", _refuse_while_running)
    event.listen(engine, "before_cursor_execute", _refuse_control)


def _refuse_while_running(connection: Connection) -> None:
    if connection.in_transaction() and not connection.invalidated and connection.info.get(_RUNNING):
        raise RuntimeError("a store function must not end its transaction: its executor does")


def _refuse_control(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
    if _CONTROL.match(statement):
        raise RuntimeError(f"a store function must not control its transaction: {statement.strip()}")


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
    return into(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
