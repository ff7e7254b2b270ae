"""Finding threads. What people and inboxes ask for (a status, a graph, the newest) is one walk along an index.

`graph_id` and `assistant_id` are columns of their own, because that is what clients look for in the metadata; only
what else a filter names is compared inside the JSON.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, func, null, select

from assent.domain.threads import Query, SortBy, Thread
from assent.store.containment import contains
from assent.store.tables import TENANT, threads
from assent.store.threads import thread_of
from assent.store.transaction import Tx
from assent.store.visibility import is_visible

_COUNT = select(func.count()).select_from(threads).where(threads.c.tenant_id == TENANT)
_WHOLE = select(threads).where(threads.c.tenant_id == TENANT)
_WITHOUT_VALUES = select(
    *(null().label("values") if column.name == "values" else column for column in threads.c)
).where(threads.c.tenant_id == TENANT)
_INDEXED = ("graph_id", "assistant_id")
_ORDERS: dict[SortBy, ColumnElement[Any]] = {
    SortBy.THREAD_ID: threads.c.thread_id,
    SortBy.STATUS: threads.c.status,
    SortBy.CREATED_AT: threads.c.created_at,
    SortBy.UPDATED_AT: threads.c.updated_at,
    SortBy.STATE_UPDATED_AT: func.coalesce(threads.c.state_updated_at, threads.c.created_at),
}


def search(tx: Tx, query: Query, *, values: bool = True) -> tuple[list[Thread], bool]:
    """One page, and whether there is more. Without `values` the states stay where they are."""
    rows = tx.all(statement(query, tx.dialect, values=values))
    return [thread_of(row) for row in rows[: query.limit]], len(rows) > query.limit


def count(tx: Tx, query: Query) -> int:
    row = tx.first(_COUNT.where(*_conditions(query, tx.dialect)))
    return int(row[0]) if row else 0


def statement(query: Query, dialect: str, *, values: bool = True) -> Select[Any]:
    """A page and one row more. Rows that are equal are ordered by id, the same way round: an index serves both."""
    order = _ORDERS[query.sort_by]
    columns = (order,) if query.sort_by is SortBy.THREAD_ID else (order, threads.c.thread_id)
    found = (_WHOLE if values else _WITHOUT_VALUES).where(*_conditions(query, dialect))
    ordered = found.order_by(*(column.desc() if query.descending else column.asc() for column in columns))
    return ordered.limit(query.limit + 1).offset(query.offset)


def _conditions(query: Query, dialect: str) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if query.ids:
        conditions.append(threads.c.thread_id.in_(query.ids))
    if query.status is not None:
        conditions.append(threads.c.status == query.status)
    named = {name: query.metadata[name] for name in _INDEXED if isinstance(query.metadata.get(name), str)}
    conditions.extend(threads.c[name] == value for name, value in named.items())
    other = {name: value for name, value in query.metadata.items() if name not in named}
    if other:
        conditions.append(contains(threads.c.metadata, other, dialect))
    if query.values:
        conditions.append(contains(threads.c["values"], query.values, dialect))
    if query.visible is not None:
        conditions.append(is_visible(threads.c.metadata, query.visible, dialect))
    return conditions
