"""The transaction of a store function: of one tenant, on the database's clock.

A write is a plain function `def create(tx, …)` that may be run again after a failed commit, so it must have no effect
outside `tx`, and it cannot end the transaction, which on SQLite it shares with other functions. `Tx` is also the one
layer that separates tenants: it binds `TENANT` in every statement and refuses a statement over a tenant's table that
does not contain it, unless the transaction was opened across tenants on purpose.
"""

from __future__ import annotations

import operator
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import (
    Alias,
    Column,
    Connection,
    CursorResult,
    Engine,
    Executable,
    FromClause,
    Row,
    Table,
    event,
    insert,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import BinaryExpression, BindParameter

from assent.kernel.limits import Limits, Usage
from assent.kernel.store.prepared import DriverResult, Prepared, driven, driver_of, insertion, repeated
from assent.kernel.store.tables import TENANT

T = TypeVar("T")
Statement: TypeAlias = Executable | Prepared

_RUNNING = "a store function runs"
_CONTROL = re.compile(
    r"(\s|/\*.*?\*/|--[^\n]*\n)*(abort|begin|commit|end|prepare\s+transaction|release|rollback|savepoint|start)\b",
    re.IGNORECASE | re.DOTALL,
)


class Clock(Protocol):
    """Reads the database's time."""

    def __call__(self, connection: Connection) -> datetime: ...


class Places(Protocol):
    """The free execution slots of this process."""

    prepare: Callable[[Tx, Any], Any]
    """Reads what a run begins with, in the transaction that begins it."""

    def take(self) -> bool: ...

    def leave(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Handover:
    """A run given to the queue, in the transaction that made it the head of its thread; `wake_at` delays it. `begun` is
    the run if this transaction has also begun it: it then has a slot."""

    tenant: str
    run_id: str
    wake_at: datetime | None = None
    begun: Any = None
    turn: str = ""
    """The caller whose turn it takes where runs wait for a slot. Without a name, as for an answer, it comes first."""


Path = tuple[str, ...]
"""Keys from the arguments of a call down to one value."""

Marks = Callable[[str | None, str], frozenset[Path]]
"""The secret paths in the schema of a graph's tool, if this process has loaded it. None means any graph."""


def no_marks(graph_id: str | None, tool: str) -> frozenset[Path]:
    return frozenset()


class TenantForgotten(RuntimeError):
    """A statement over a tenant's table does not name the tenant. This is a bug in the statement."""


class Tx:
    def __init__(
        self,
        connection: Connection,
        tenant: str | None,
        clock: Clock,
        places: Places | None = None,
        limits: Limits | None = None,
        usage: Usage | None = None,
        marks: Marks = no_marks,
    ) -> None:
        """`places` are the slots of this process, where it executes runs; `marks` the secret arguments of its tools."""
        self._connection = connection
        self._tenant = tenant
        self._clock = clock
        self._places = places
        self.limits = limits or Limits()
        self.usage = usage or Usage()
        self.marks = marks
        self._driver = driver_of(connection)
        self._now: datetime | None = None
        self.handovers: list[Handover] = []
        self.bells: dict[str, list[Any]] = {}
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

    def hand_over(self, run_id: str, wake_at: datetime | None = None, begun: Any = None, turn: str = "") -> None:
        """Gives a run to the queue if, and only if, this transaction commits."""
        self.handovers.append(Handover(self.tenant, run_id, wake_at, begun, turn))

    def take_place(self) -> bool:
        """Reserves a slot of this process; on success the caller must begin a run and hand it over as begun."""
        return self._places is not None and self._places.take()

    def prepare(self, run: Any) -> Any:
        """Reads the facts with which the run, which has a slot, begins."""
        return None if self._places is None else self._places.prepare(self, run)

    def ring(self, bell: str, *about: Any) -> None:
        """Calls this process' listener of the bell if, and only if, this transaction commits: once, with everything
        that it was rung about."""
        self.bells.setdefault(bell, []).extend(about)

    def all(self, statement: Statement, **params: Any) -> Sequence[Row[Any]]:
        return list(self._execute(statement, params))

    def first(self, statement: Statement, **params: Any) -> Row[Any] | None:
        row: Row[Any] | None = self._execute(statement, params).first()
        return row

    def change(self, statement: Statement, **params: Any) -> int:
        """Runs an update or delete and returns the number of matched rows, for compare-and-set."""
        return int(self._execute(statement, params).rowcount)

    def insert(self, table: Table, **row: Any) -> None:
        self._insert(table, self._owned(row), unless_taken=False)

    def insert_all(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._run(insert_into(table), [self._owned(row) for row in rows])

    def insert_new(self, table: Table, **row: Any) -> bool:
        """Inserts unless a unique key is taken; returns whether it did. Never aborts the transaction."""
        return bool(self._insert(table, self._owned(row), unless_taken=True).rowcount == 1)

    def sql(self, statement: str, params: Any = ()) -> DriverResult | CursorResult[Any]:
        """Plain SQL in the driver's style, for the few hot statements. It has to name its tenant."""
        try:
            if not isinstance(self._driver, sqlite3.Connection):
                return self._connection.exec_driver_sql(statement, params)
            _refuse_control(self._connection, None, statement)
            return DriverResult(driven(self._driver, statement, params))
        except DBAPIError:
            self.failed = True
            raise

    @property
    def dialect(self) -> str:
        return self._connection.dialect.name

    def _owned(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return dict(row) if self._tenant is None else {**row, "tenant_id": self._tenant}

    def _execute(self, statement: Statement, params: dict[str, Any]) -> Any:
        if self._tenant is not None:
            _require_tenant(statement.statement if isinstance(statement, Prepared) else statement)
            params["tenant"] = self._tenant
        return self._run(statement, params)

    def _insert(self, table: Table, row: dict[str, Any], *, unless_taken: bool) -> Any:
        if self._driver is not None:
            return self._run(insertion(self.dialect, table, tuple(row), unless_taken=unless_taken), row)
        return self._run(insert_unless_taken(table) if unless_taken else insert_into(table), row)

    def _run(self, statement: Statement, params: Any) -> Any:
        try:
            core = statement.statement if isinstance(statement, Prepared) else statement
            if self._driver is None:
                return self._connection.execute(core, params)
            prepared = statement if isinstance(statement, Prepared) else repeated(core, self._connection.dialect)
            if prepared is None:
                return self._connection.execute(core, params)
            return prepared.execute(self._driver, self._connection, params)
        except DBAPIError:
            self.failed = True
            raise


def run(tx: Tx, function: Callable[[Tx], T]) -> T:
    """Runs a function. It can neither end the transaction nor continue in it after the database refused a statement:
    Postgres would then answer COMMIT by rolling back, without an error."""
    if not tx._connection.in_transaction():
        tx._connection.begin()  # so that SQLAlchemy notices a function that tries to end it
    running = tx._connection.info
    running[_RUNNING] = True
    try:
        result = function(tx)
    finally:
        running.pop(_RUNNING, None)
    if tx.failed:
        raise RuntimeError("a store function must not hide a database error: check first, or use insert_new")
    return result


def forbid_ending(engine: Engine) -> None:
    """Makes every attempt to end a transaction raise while a function runs in it: its executor ends it."""
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
    """Every table of a statement must be bound to the tenant: by TENANT, or by the `tenant_id` of another bound table.
    Checks each statement object once, so statements built at module level cost nothing afterwards."""
    elements = list(visitors.iterate(statement))  # type: ignore[arg-type]
    if not any(isinstance(element, BindParameter) and element.key == TENANT.key for element in elements):
        raise TenantForgotten(f"add `.where(table.c.tenant_id == TENANT)` to: {statement}")
    free = _tables(elements) - _held_tables(elements)
    if free:
        names = ", ".join(sorted(str(table) for table in free))
        raise TenantForgotten(f"compare the tenant_id of {names} as well in: {statement}")


def _tables(elements: Sequence[object]) -> set[FromClause]:
    """The tables with tenants that are read or written; the table behind an alias counts only where it is named."""
    behind = {element.element for element in elements if isinstance(element, Alias)}
    named: set[FromClause] = {element.table for element in elements if isinstance(element, Column)}
    sources = named | {element for element in elements if isinstance(element, Table | Alias)} - behind
    return {source for source in sources if isinstance(source, Table | Alias) and "tenant_id" in source.c}


def _held_tables(elements: Sequence[object]) -> set[FromClause]:
    equalities = (each for each in elements if isinstance(each, BinaryExpression) and each.operator is operator.eq)
    sides = (side for equality in equalities for side in (equality.left, equality.right))
    return {side.table for side in sides if isinstance(side, Column) and side.name == "tenant_id"}


@lru_cache(maxsize=256)
def insert_into(table: Table) -> Any:
    return insert(table)


@lru_cache(maxsize=256)
def insert_unless_taken(table: Table) -> Any:
    return postgresql.insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
