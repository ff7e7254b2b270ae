"""Statements that are built once and executed often, on SQLite by its driver alone.

SQLAlchemy takes several times as long to execute a small statement as SQLite does: it looks up the compiled form, makes
a context, a result and its metadata each time. A prepared statement keeps its SQL, the order of its parameters, and the
converters of its values. Postgres executes the statement as it is: there the round trip costs far more than this.

A statement is prepared at its second execution, if it can be: those that are built for one execution never are.
"""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Delete, Dialect, Executable, Select, Table, Update, insert
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.schema import ScalarElementColumnDefault

Convert = Callable[[Any], Any]


class Prepared:
    """A statement, built at module level. Its values are passed by name at each execution."""

    def __init__(self, statement: Any, columns: Sequence[str] | None = None) -> None:
        self.statement = statement
        self._columns = columns
        self._compiled: _Compiled | None = None

    def execute(self, raw: sqlite3.Connection, dialect: Dialect, params: Mapping[str, Any]) -> DriverResult:
        compiled = self._compiled or self._compile(dialect)
        return DriverResult(driven(raw, compiled.sql, compiled.values(params)), compiled.row)

    def checked(self, dialect: Dialect) -> Prepared:
        """This one, or a `TypeError` if it cannot be prepared."""
        self._compile(dialect)
        return self

    def _compile(self, dialect: Dialect) -> _Compiled:
        self._compiled = _Compiled(self.statement, dialect, self._columns)
        return self._compiled


def repeated(statement: Executable, dialect: Dialect) -> Prepared | None:
    """The prepared form of a statement that was executed before; None of a new one, and of one that has none."""
    if type(statement) not in (Select, Update, Delete):
        return None
    known = _known(statement)
    if known.is_new:
        known.is_new = False
    elif known.prepared is None and not known.is_special:
        try:
            known.prepared = Prepared(statement).checked(dialect)
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
        row = self._cursor.fetchone()
        self._cursor.close()  # ends the statement, which would otherwise stay open on its table
        return row if row is None or self._row is None else self._row(row)

    def all(self) -> list[Any]:
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor) if self._row is None else map(self._row, self._cursor)


def driven(raw: sqlite3.Connection, sql: str, params: Any) -> sqlite3.Cursor:
    """Executes SQL on the driver; a list of tuples is many rows at once. Raises the errors of SQLAlchemy."""
    try:
        many = isinstance(params, list) and params and isinstance(params[0], tuple)
        return raw.executemany(sql, params) if many else raw.execute(sql, params)
    except sqlite3.Error as error:
        raise DBAPIError.instance(sql, None, error, sqlite3.Error) from error


@lru_cache(maxsize=256)
def insertion(table: Table, columns: tuple[str, ...], *, unless_taken: bool) -> Prepared:
    into = sqlite.insert(table).on_conflict_do_nothing() if unless_taken else insert(table)
    return Prepared(into.inline(), columns)


class _Compiled:
    def __init__(self, statement: ClauseElement, dialect: Dialect, columns: Sequence[str] | None) -> None:
        compiled = cast(SQLCompiler, statement.compile(dialect=dialect, column_keys=columns))
        if compiled.post_compile_params or compiled.update_prefetch or _has_defaults(compiled):
            raise TypeError(f"this statement depends on its values, so it cannot be prepared: {compiled}")
        if compiled.effective_returning:
            raise TypeError(f"this statement returns rows of a change, so it cannot be prepared: {compiled}")
        self.sql = str(compiled)
        self._places = [_place(name, compiled, dialect) for name in compiled.positiontup or ()]
        self.row = _row_maker(statement, dialect) if isinstance(statement, Select) else None

    def values(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(
            constant if name is None else params[name] if convert is None else convert(params[name])
            for name, constant, convert in self._places
        )


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


def _row_maker(statement: Select[Any], dialect: Dialect) -> Convert:
    """Makes rows with attributes named like the columns, as SQLAlchemy does."""
    columns = statement.selected_columns.values()
    made: Any = namedtuple("Row", [str(column.name) for column in columns], rename=True)  # type: ignore[misc] # no literal
    processors = (column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns)
    converters = [(index, convert) for index, convert in enumerate(processors) if convert is not None]

    def make(raw: tuple[Any, ...]) -> Any:
        values = list(raw)
        for index, convert in converters:
            values[index] = convert(values[index])
        return made._make(values)

    return make
