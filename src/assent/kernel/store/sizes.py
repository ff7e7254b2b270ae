"""The bytes that columns hold, as SQL, for the limit of an answer and for quotas, without reading the documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from assent.kernel.store.transaction import Tx


class text_bytes(FunctionElement[int]):
    """The bytes of a text or a JSON column."""

    type = BigInteger()
    inherit_cache = True


class stored_bytes(FunctionElement[int]):
    """The bytes of a column in the database: on Postgres as compressed, so that nothing is decompressed."""

    type = BigInteger()
    inherit_cache = True


@compiles(text_bytes, "postgresql")
def _text_bytes_postgres(element: text_bytes, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"octet_length(({compiler.process(element.clauses, **kwargs)})::text)"


@compiles(text_bytes, "sqlite")
@compiles(stored_bytes, "sqlite")
def _bytes_sqlite(element: FunctionElement[int], compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"length(CAST({compiler.process(element.clauses, **kwargs)} AS BLOB))"


@compiles(stored_bytes, "postgresql")
def _stored_bytes_postgres(element: stored_bytes, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"pg_column_size({compiler.process(element.clauses, **kwargs)})"


def total(columns: Sequence[ColumnElement[Any]]) -> ColumnElement[Any]:
    """The bytes of several text or JSON columns of one row. An absent value has none."""
    first, *others = (func.coalesce(text_bytes(column), 0) for column in columns)
    return sum(others, first)


def require_page(tx: Tx, page: Select[Any], columns: Sequence[ColumnElement[Any]], *, hint: str, **params: Any) -> None:
    """Refuses a page whose documents together exceed the limit of an answer, before any of them is read."""
    sized = page.with_only_columns(total(columns).label("size"), maintain_column_froms=True).subquery()
    counted = select(func.count().label("number"), func.sum(sized.c.size).label("size")).select_from(sized)
    row = tx.first(counted, **params)
    if row is not None:
        tx.limits.require_answer(int(row.size or 0), int(row.number), hint=hint)
