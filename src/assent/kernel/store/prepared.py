"""Statements that are built once and executed often, by the driver alone.

SQLAlchemy takes several times as long to execute a small statement as SQLite does, and twice the time of psycopg: it
looks up the compiled form, makes a context, a result and its metadata each time. A prepared statement keeps its SQL,
the order of its parameters, and the converters of its values.

A statement is prepared at its second execution, if it can be: those that are built for one execution never are.
"""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sqlalchemy import Connection, Delete, Dialect, Executable, Select, Table, Update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.schema import ScalarElementColumnDefault
from sqlalchemy.util import await_only

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Driver: TypeAlias = sqlite3.Connection | AsyncConnection[Any]

Convert = Callable[[Any], Any]


class Prepared:
    """A statement, built at module level. Its values are passed by name at each execution."""

    def __init__(self, statement: Any, columns: Sequence[str] | None = None) -> None:
        self.statement = statement
        self._columns = columns
        self._compiled: dict[str, _Compiled] = {}

    def execute(self, driver: Driver, connection: Connection, params: Mapping[str, Any]) -> Result:
        compiled = self.compiled(connection.dialect)
        if isinstance(driver, sqlite3.Connection):
            return DriverResult(driven(driver, compiled.sql, compiled.values(params)), compiled.row_of)
        return _executed(driver, connection, compiled, params)

    def compiled(self, dialect: Dialect) -> _Compiled:
        """Its form for this database; a `TypeError` if it has none."""
        known = self._compiled.get(dialect.name)
        if known is None:
            known = self._compiled[dialect.name] = _Compiled(self.statement, dialect, self._columns)
        return known


def driver_of(connection: Connection) -> Driver | None:
    """The driver's connection, if prepared statements are executed on it."""
    raw = connection.connection.driver_connection
    if isinstance(raw, sqlite3.Connection):
        return raw
    return cast(Any, raw) if connection.dialect.is_async else None


def repeated(statement: Executable, dialect: Dialect) -> Prepared | None:
    """The prepared form of a statement that was executed before; None of a new one, and of one that has none."""
    if type(statement) not in (Select, Update, Delete):
        return None
    known = _known(statement)
    if known.is_new:
        known.is_new = False
    elif known.prepared is None and not known.is_special:
        try:
            prepared = Prepared(statement)
            prepared.compiled(dialect)
            known.prepared = prepared
        except TypeError:
            known.is_special = True
    return known.prepared


@dataclass(slots=True)
class _Known:
    is_new: bool = True
    is_special: bool = False
    prepared: Prepared | None = None


@lru_cache(maxsize=2048)
def _known(statement: Executable) -> _Known:
    return _Known()


class DriverResult:
    """The result of a statement: its rows, and the number of changed rows."""

    __slots__ = ("_cursor", "_row")

    def __init__(self, cursor: sqlite3.Cursor, row: Convert | None = None) -> None:
        self._cursor = cursor
        self._row = row

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def first(self) -> Any:
        row = _fetched_by(self._cursor.fetchone)
        self._cursor.close()  # ends the statement, which would otherwise stay open on its table
        return row if row is None or self._row is None else self._row(row)

    def all(self) -> list[Any]:
        rows: list[Any] = _fetched_by(self._cursor.fetchall)
        return rows if self._row is None else list(map(self._row, rows))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.all())


def _fetched_by(fetch: Callable[[], Any]) -> Any:
    """SQLite finds some faults of a row only when the row is fetched."""
    try:
        return fetch()
    except sqlite3.Error as error:
        raise _raised_by_sqlalchemy(error, "a row") from error


def driven(raw: sqlite3.Connection, sql: str, params: Any) -> sqlite3.Cursor:
    """Executes SQL on the driver; a list of tuples is many rows at once. Raises the errors of SQLAlchemy."""
    try:
        many = isinstance(params, list) and params and isinstance(params[0], tuple)
        return raw.executemany(sql, params) if many else raw.execute(sql, params)
    except sqlite3.Error as error:
        raise _raised_by_sqlalchemy(error, sql) from error


def _raised_by_sqlalchemy(error: sqlite3.Error, statement: str) -> BaseException:
    return DBAPIError.instance(statement, None, error, sqlite3.Error)


class FetchedResult:
    """The same of a driver that has fetched all rows."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: Sequence[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def first(self) -> Any:
        return self._rows[0] if self._rows else None

    def all(self) -> list[Any]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


Result: TypeAlias = DriverResult | FetchedResult


def _executed(driver: Any, connection: Connection, compiled: _Compiled, params: Mapping[str, Any]) -> FetchedResult:
    """On psycopg's asynchronous connection, from a function that runs in a greenlet."""
    try:
        cursor, rows = await_only(_fetched(driver, compiled.sql, compiled.named(params)))
    except BaseException as error:  # noqa: BLE001 - SQLAlchemy translates it, and discards a lost connection
        connection._handle_dbapi_exception(error, compiled.sql, None, None, None)
    if not rows or not compiled.selects:
        return FetchedResult(rows, cursor.rowcount)
    row_of = compiled.row_of or compiled.learn_types([column.type_code for column in cursor.description])
    return FetchedResult([row_of(row) for row in rows], cursor.rowcount)


async def _fetched(driver: Any, sql: str, params: dict[str, Any]) -> tuple[Any, list[Any]]:
    cursor = await driver.execute(sql, params)
    return cursor, await cursor.fetchall() if cursor.description else []


@lru_cache(maxsize=256)
def insertion(dialect: str, table: Table, columns: tuple[str, ...], *, unless_taken: bool) -> Prepared:
    new: Any = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    return Prepared((new.on_conflict_do_nothing() if unless_taken else new).inline(), columns)


class _Compiled:
    def __init__(self, statement: ClauseElement, dialect: Dialect, columns: Sequence[str] | None) -> None:
        compiled = cast(SQLCompiler, statement.compile(dialect=dialect, column_keys=columns))
        if compiled.post_compile_params or compiled.update_prefetch or _has_defaults(compiled):
            raise TypeError(f"this statement depends on its values, so it cannot be prepared: {compiled}")
        if compiled.effective_returning:
            raise TypeError(f"this statement returns rows of a change, so it cannot be prepared: {compiled}")
        self.sql = str(compiled)
        self.selects = isinstance(statement, Select)
        self._statement, self._dialect = statement, dialect
        names = compiled.positiontup or list(compiled.bind_names.values())
        self._places = [(name, *_place(name, compiled, dialect)) for name in names]
        self.row_of = self.learn_types() if self.selects and dialect.name == "sqlite" else None

    def learn_types(self, types: Sequence[Any] | None = None) -> Convert:
        """Makes the converter of rows; on Postgres some types depend on those of the result."""
        self.row_of = _row_maker(cast(Select[Any], self._statement), self._dialect, types)
        return self.row_of

    def values(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        """In the order of the places; a name can have several."""
        return tuple(value for _, value in self._given(params))

    def named(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._given(params))

    def _given(self, params: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, key, constant, convert in self._places:
            yield name, constant if key is None else params[key] if convert is None else convert(params[key])


def _has_defaults(compiled: SQLCompiler) -> bool:
    """Whether an execution may replace a value that the statement has; an insert has those of its columns."""
    binds = () if compiled.isinsert else compiled.binds.values()
    return any(not bind.required and (bind.callable is not None or not bind.unique) for bind in binds)


def _place(name: str, compiled: SQLCompiler, dialect: Dialect) -> tuple[str | None, Any, Convert | None]:
    """One parameter in the SQL: the name of its value with its converter, or a constant."""
    bind = compiled.binds[name]
    convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
    if bind.required:
        return bind.key, None, convert
    value = _default_of(name, compiled) if bind.callable is None and bind.value is None else bind.effective_value
    return None, value if convert is None else convert(value), None


def _default_of(name: str, compiled: SQLCompiler) -> Any:
    """The default of a column that an insert omits."""
    for column in compiled.insert_prefetch:
        if column.key == name and isinstance(column.default, ScalarElementColumnDefault):
            return column.default.arg
    return None


def _row_maker(statement: Select[Any], dialect: Dialect, types: Sequence[Any] | None) -> Convert:
    """Makes rows with attributes named like the columns, as SQLAlchemy does."""
    columns = statement.selected_columns.values()
    made: Any = namedtuple("Row", [str(column.name) for column in columns], rename=True)  # type: ignore[misc] # no literal
    typed = zip(columns, types or [None] * len(columns), strict=True)
    processors = (column.type.dialect_impl(dialect).result_processor(dialect, of) for column, of in typed)
    converters = [(index, convert) for index, convert in enumerate(processors) if convert is not None]

    def make(raw: tuple[Any, ...]) -> Any:
        values = list(raw)
        for index, convert in converters:
            values[index] = convert(values[index])
        return made._make(values)

    return make
