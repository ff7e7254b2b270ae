"""Search for threads. The usual searches (a status, a graph, the newest) are one walk along an index.

`graph_id` and `assistant_id` are columns, because clients search the metadata for them; only the other parts of a
filter are compared inside the JSON.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, func, null, select

from assent.identity.rows.visibility import is_visible
from assent.kernel.store import sizes
from assent.kernel.store.containment import contains
from assent.kernel.store.tables import TENANT, threads
from assent.kernel.store.transaction import Tx
from assent.threads.model.threads import Query, SortBy, Thread
from assent.threads.rows.thread_values import WHOLE
from assent.threads.rows.threads import thread_of

_COUNT = select(func.count()).select_from(threads).where(threads.c.tenant_id == TENANT)
_WHOLE = select(*(WHOLE if column.name == "values" else column for column in threads.c)).where(
    threads.c.tenant_id == TENANT
)
_WITHOUT_VALUES = select(
    *(null().label("values") if column.name == "values" else column for column in threads.c)
).where(threads.c.tenant_id == TENANT)
_LARGE = [WHOLE.element, *(threads.c[name] for name in ("metadata", "config", "interrupts", "error"))]
_FEWER = "use a smaller `limit`, or name the fields you need in `select`, without `values`"
_INDEXED = ("graph_id", "assistant_id")
_ORDERS: dict[SortBy, ColumnElement[Any]] = {
    SortBy.THREAD_ID: threads.c.thread_id,
    SortBy.STATUS: threads.c.status,
    SortBy.CREATED_AT: threads.c.created_at,
    SortBy.UPDATED_AT: threads.c.updated_at,
    SortBy.STATE_UPDATED_AT: func.coalesce(threads.c.state_updated_at, threads.c.created_at),
}


def search(tx: Tx, query: Query, *, values: bool = True) -> tuple[list[Thread], bool]:
    """One page, and whether there is more. Without `values` the states are not read."""
    rows = tx.all(statement(query, tx.dialect, values=values))
    return [thread_of(row) for row in rows[: query.limit]], len(rows) > query.limit


def search_for_answer(tx: Tx, query: Query, *, values: bool = True) -> tuple[list[Thread], bool]:
    """As `search`, for a caller; refused where the page exceeds the limit of an answer."""
    require_page(tx, query, values=values)
    return search(tx, query, values=values)


def require_page(tx: Tx, query: Query, *, values: bool = True) -> None:
    page = statement(query, tx.dialect).limit(query.limit)
    sizes.require_page(tx, page, _LARGE if values else _LARGE[1:], hint=_FEWER)


def count(tx: Tx, query: Query) -> int:
    row = tx.first(_COUNT.where(*_conditions(query, tx.dialect)))
    return int(row[0]) if row else 0


def statement(query: Query, dialect: str, *, values: bool = True) -> Select[Any]:
    """A page and one row more. Ties are ordered by id, in the same direction: an index serves both."""
    order = _ORDERS[query.sort_by]
    columns = (order,) if query.sort_by is SortBy.THREAD_ID else (order, threads.c.thread_id)
    matching = (_WHOLE if values else _WITHOUT_VALUES).where(*_conditions(query, dialect))
    ordered = matching.order_by(*(column.desc() if query.descending else column.asc() for column in columns))
    return ordered.limit(query.limit + 1).offset(query.offset)


def _conditions(query: Query, dialect: str) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if query.ids:
        conditions.append(threads.c.thread_id.in_(query.ids))
    if query.status is not None:
        conditions.append(threads.c.status == query.status)
    if query.owner is not None:
        conditions.append(threads.c.owner == query.owner)
    named = {name: query.metadata[name] for name in _INDEXED if isinstance(query.metadata.get(name), str)}
    conditions.extend(threads.c[name] == value for name, value in named.items())
    other = {name: value for name, value in query.metadata.items() if name not in named}
    if other:
        conditions.append(contains(threads.c.metadata, other, dialect))
    if query.values:
        conditions.append(contains(WHOLE.element, query.values, dialect))
    if query.visible is not None:
        conditions.append(is_visible(threads, query.visible, dialect))
    return conditions
