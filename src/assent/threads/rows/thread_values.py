"""The last values of threads. Large ones are stored in pieces, so that a turn of a conversation writes only its end.

A piece is a part of the JSON text. Each value of the state begins with a piece of its own, so that one that becomes
longer does not shift the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, select, type_coerce
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from assent.kernel import jsontext
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, Json, thread_values, threads
from assent.kernel.store.transaction import Tx

_LARGE = 16 * 1024
_PIECE = 3500  # with its key, a row fills a page of SQLite and is not compressed by Postgres
_PER_VALUE = 1_000_000
_OF_THREAD = (thread_values.c.tenant_id == TENANT, thread_values.c.thread_id == bindparam("id"))
_PIECES = Prepared(select(thread_values.c.n, thread_values.c.text).where(*_OF_THREAD))
_REMOVE = Prepared(delete(thread_values).where(*_OF_THREAD, thread_values.c.n == bindparam("n")))
_PUT = (
    "INSERT INTO thread_values (tenant_id, thread_id, n, text) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (tenant_id, thread_id, n) DO UPDATE SET text = excluded.text"
)


class _joined(FunctionElement[Any]):
    """The pieces of the thread's row, in order."""

    type = Json
    inherit_cache = True


@compiles(_joined, "sqlite")
def _joined_sqlite(element: _joined, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"(SELECT group_concat(text, '') FROM (SELECT text {_SAME_THREAD} ORDER BY n))"  # noqa: S608


@compiles(_joined, "postgresql")
def _joined_postgres(element: _joined, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"(SELECT string_agg(text, '' ORDER BY n)::json {_SAME_THREAD})"


_SAME_THREAD = (
    "FROM thread_values WHERE thread_values.tenant_id = threads.tenant_id "
    "AND thread_values.thread_id = threads.thread_id"
)
WHOLE: ColumnElement[Any] = type_coerce(func.coalesce(threads.c["values"], _joined()), Json).label("values")
"""The values of a row of `threads`."""


def put(tx: Tx, thread_id: str, values: Any) -> Any:
    """Stores large values in pieces. Returns what the thread's row has to hold: small values, or None."""
    pieces = dict(_pieces(values))
    before = {row.n: row.text for row in tx.all(_PIECES, id=thread_id)}
    new = [(tx.tenant, thread_id, n, text) for n, text in pieces.items() if before.get(n) != text]
    if new:
        tx.sql(_PUT if tx.dialect == "sqlite" else _PUT.replace("?", "%s"), new)
    for n in before.keys() - pieces.keys():
        tx.change(_REMOVE, id=thread_id, n=n)
    return None if pieces else values


def _pieces(values: Any) -> Iterator[tuple[int, str]]:
    texts = list(_texts(values))
    if sum(map(len, texts)) <= _LARGE:
        return
    for place, text in enumerate(texts):
        for n, start in enumerate(range(0, len(text), _PIECE)):
            yield place * _PER_VALUE + n, text[start : start + _PIECE]


def _texts(values: Any) -> Iterator[str]:
    """The JSON text, divided before each key of an object."""
    if not isinstance(values, dict) or not values:
        yield jsontext.dump(values)
        return
    for place, (key, value) in enumerate(values.items()):
        closing = "}" if place == len(values) - 1 else ""
        yield f"{',' if place else '{'}{jsontext.dump(str(key))}:{jsontext.dump(value)}{closing}"
