"""Searches items. The first page is one index scan for any number of items; counts stop at a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, false, func, or_, select

from assent.identity.model.visibility import Visible
from assent.identity.rows.visibility import is_visible
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.tables import TENANT, item_marks, items, threads
from assent.kernel.store.transaction import Tx
from assent.review.model.filters import Filter, id_range
from assent.review.model.items import Item, ItemStatus
from assent.review.rows.items import COLUMNS, item_of

MOST_COUNTED = 10_000
_ALL = select(*COLUMNS).where(items.c.tenant_id == TENANT)
_COLUMNS = (items.c.created_at, items.c.item_id)
_ORDERS = {"-created_at": Keyset(_COLUMNS, descending=True), "created_at": Keyset(_COLUMNS)}
SORTS = tuple(_ORDERS)
_INDEXED = frozenset({"graph_id", "assistant_id", "type", "thread_id"})
_EDGE = (
    select(items.c.created_at)
    .where(items.c.tenant_id == TENANT, items.c.open.is_(True))
    .order_by(items.c.created_at.desc())
    .offset(MOST_COUNTED - 1)
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Counts:
    """A count that reaches `MOST_COUNTED` means that many or more."""

    pending: int
    resolved: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The number of pending items; `at_least` if not all were counted."""

    number: int
    at_least: bool = False


def page(
    tx: Tx, criteria: Filter, whose: str, visible: Visible | None, *, sort: str, limit: int, cursor: str | None
) -> Page[Item]:
    statement = _ALL.where(*_conditions(tx, criteria, whose, visible))
    return _ORDERS[sort].page(tx, statement, item_of, limit=limit, cursor=cursor)


def after(tx: Tx, criteria: Filter, whose: str, visible: Visible | None, item: Item) -> list[Item]:
    """Items that follow this one in the list, and items from its beginning."""
    position = _ORDERS["-created_at"].cursor_at(item.created_at, item.id)
    pages = [
        page(tx, criteria, whose, visible, sort="-created_at", limit=20, cursor=cursor) for cursor in (position, None)
    ]
    return [other for part in pages for other in part.items if other.id != item.id]


def counts(tx: Tx, criteria: Filter, whose: str, visible: Visible | None) -> Counts:
    """For the same filter without its status."""
    any_status = replace(criteria, statuses=frozenset())
    statement = _ALL.where(*_conditions(tx, any_status, whose, visible))
    return Counts(*(_count(tx, statement.where(items.c.open.is_(is_open))) for is_open in (True, False)))


def pending(tx: Tx, filters: Sequence[Filter], whose: str, visible: Visible | None) -> list[Waiting]:
    """The number of pending items of each filter. Without a suitable index, only the newest pending items are counted:
    a search for rare items must not scan everything on each page."""
    edge = tx.first(_EDGE)
    recent = [] if edge is None else [items.c.created_at >= edge.created_at]
    return [_pending(tx, criteria, recent, whose, visible) for criteria in filters]


def _pending(
    tx: Tx, criteria: Filter, recent: list[ColumnElement[bool]], whose: str, visible: Visible | None
) -> Waiting:
    """Zero if the filter selects closed items only."""
    opened = frozenset(status for status in ItemStatus if status.open)
    narrowed = replace(criteria, statuses=criteria.statuses & opened if criteria.statuses else opened)
    if not narrowed.statuses:
        return Waiting(0)
    indexed = criteria.ids is not None or any(name in _INDEXED for name, _ in criteria.columns)
    limits = [] if indexed else recent
    number = _count(tx, _ALL.where(*_conditions(tx, narrowed, whose, visible), *limits))
    return Waiting(number, at_least=bool(limits) or number >= MOST_COUNTED)


def _count(tx: Tx, statement: Select[Any]) -> int:
    limited = statement.with_only_columns(items.c.item_id).limit(MOST_COUNTED).subquery()
    row = tx.first(select(func.count()).select_from(limited))
    return int(row[0]) if row else 0


def _conditions(tx: Tx, criteria: Filter, whose: str, visible: Visible | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        items.c[name].in_(values) for name, values in criteria.columns if name != "requester"
    ]
    if criteria.ids is not None:
        conditions.append(_begins(criteria.ids))
    conditions += _status(criteria)
    conditions += [_requested_by(values) for name, values in criteria.columns if name == "requester"]
    conditions += [items.c.title.icontains(word, autoescape=True) for word in criteria.words]
    if criteria.older is not None:
        conditions.append(items.c.created_at < tx.now() - criteria.older)
    if criteria.newer is not None:
        conditions.append(items.c.created_at >= tx.now() - criteria.newer)
    if criteria.claimed:
        conditions.append(items.c.claimed_until > tx.now())
    if criteria.snoozed or _only_open(criteria):
        conditions.append(_snoozed(tx, whose) if criteria.snoozed else ~_snoozed(tx, whose))
    if visible is not None:
        conditions.append(_on_visible_thread(visible, tx.dialect))
    return conditions


def _status(criteria: Filter) -> list[ColumnElement[bool]]:
    """Uses the index if the filter selects exactly the open or the closed items."""
    if not criteria.statuses:
        return []
    opened = frozenset(status for status in ItemStatus if status.open)
    if criteria.statuses in (opened, frozenset(ItemStatus) - opened):
        return [items.c.open.is_(criteria.statuses == opened)]
    return [items.c.status.in_(sorted(criteria.statuses))]


def _begins(ids: tuple[str, ...]) -> ColumnElement[bool]:
    """A range of the primary key for each way to begin."""
    ranges = [bounds for prefix in ids if (bounds := id_range(prefix)) is not None]
    return or_(false(), *(items.c.item_id.between(*bounds) for bounds in ranges))


def _only_open(criteria: Filter) -> bool:
    return bool(criteria.statuses) and all(status.open for status in criteria.statuses)


def _requested_by(values: tuple[object, ...]) -> ColumnElement[bool]:
    """Matches the whole actor (`agent:<id>`) or the id alone."""
    return items.c.requester.in_([f"{kind}{value}" for value in values for kind in ("", "agent:", "service:")])


def _snoozed(tx: Tx, whose: str) -> ColumnElement[bool]:
    mine = (item_marks.c.tenant_id == items.c.tenant_id, item_marks.c.item_id == items.c.item_id)
    return exists().where(*mine, item_marks.c.actor == whose, item_marks.c.snoozed_until > tx.now())


def _on_visible_thread(visible: Visible, dialect: str) -> ColumnElement[bool]:
    same = (threads.c.tenant_id == items.c.tenant_id, threads.c.thread_id == items.c.thread_id)
    return exists().where(*same, is_visible(threads, visible, dialect))
