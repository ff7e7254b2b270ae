"""Finding items. The first page is one walk along an index, however many there are; counts stop where nobody would
read on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, select

from assent.domain.filters import Filter
from assent.domain.items import Item, ItemStatus
from assent.domain.visibility import Visible
from assent.store.items import item_of
from assent.store.paging import Keyset, Page
from assent.store.tables import TENANT, item_marks, items, threads
from assent.store.transaction import Tx
from assent.store.visibility import is_visible

MOST_COUNTED = 10_000
_ALL = select(items).where(items.c.tenant_id == TENANT)
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
    """How many items wait; `at_least` where not all were looked at."""

    number: int
    at_least: bool = False


def page(
    tx: Tx, found: Filter, whose: str, visible: Visible | None, *, sort: str, limit: int, cursor: str | None
) -> Page[Item]:
    statement = _ALL.where(*_conditions(tx, found, whose, visible))
    return _ORDERS[sort].page(tx, statement, item_of, limit=limit, cursor=cursor)


def after(tx: Tx, found: Filter, whose: str, visible: Visible | None, item: Item) -> list[Item]:
    """Some that follow this one in the list, and some of its beginning."""
    there = _ORDERS["-created_at"].cursor_at(item.created_at, item.id)
    pages = [page(tx, found, whose, visible, sort="-created_at", limit=20, cursor=cursor) for cursor in (there, None)]
    return [one for part in pages for one in part.items if one.id != item.id]


def counts(tx: Tx, found: Filter, whose: str, visible: Visible | None) -> Counts:
    """For the same filter without its status."""
    any_status = replace(found, statuses=frozenset())
    statement = _ALL.where(*_conditions(tx, any_status, whose, visible))
    return Counts(*(_count(tx, statement.where(items.c.open.is_(is_open))) for is_open in (True, False)))


def pending(tx: Tx, wanted: Sequence[Filter], whose: str, visible: Visible | None) -> list[Waiting]:
    """How many items of each filter still wait. Where no index leads to them, as many as are among the newest that
    wait: a search for what is rare must not walk past everything on each page."""
    edge = tx.first(_EDGE)
    recent = [] if edge is None else [items.c.created_at >= edge.created_at]
    return [_pending(tx, found, recent, whose, visible) for found in wanted]


def _pending(tx: Tx, found: Filter, recent: list[ColumnElement[bool]], whose: str, visible: Visible | None) -> Waiting:
    """None where the filter means only what is closed."""
    opened = frozenset(status for status in ItemStatus if status.open)
    narrowed = replace(found, statuses=found.statuses & opened if found.statuses else opened)
    if not narrowed.statuses:
        return Waiting(0)
    limits = [] if any(name in _INDEXED for name, _ in found.columns) else recent
    number = _count(tx, _ALL.where(*_conditions(tx, narrowed, whose, visible), *limits))
    return Waiting(number, at_least=bool(limits) or number >= MOST_COUNTED)


def _count(tx: Tx, statement: Select[Any]) -> int:
    limited = statement.with_only_columns(items.c.item_id).limit(MOST_COUNTED).subquery()
    row = tx.first(select(func.count()).select_from(limited))
    return int(row[0]) if row else 0


def _conditions(tx: Tx, found: Filter, whose: str, visible: Visible | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        items.c[name].in_(values) for name, values in found.columns if name != "requester"
    ]
    conditions += _status(found)
    conditions += [_requested_by(values) for name, values in found.columns if name == "requester"]
    conditions += [items.c.title.icontains(word, autoescape=True) for word in found.words]
    if found.older is not None:
        conditions.append(items.c.created_at < tx.now() - found.older)
    if found.newer is not None:
        conditions.append(items.c.created_at >= tx.now() - found.newer)
    if found.claimed:
        conditions.append(items.c.claimed_until > tx.now())
    if found.snoozed or _only_open(found):
        conditions.append(_snoozed(tx, whose) if found.snoozed else ~_snoozed(tx, whose))
    if visible is not None:
        conditions.append(_on_visible_thread(visible, tx.dialect))
    return conditions


def _status(found: Filter) -> list[ColumnElement[bool]]:
    """What the index is made for, where the filter asks for just that."""
    if not found.statuses:
        return []
    opened = frozenset(status for status in ItemStatus if status.open)
    if found.statuses in (opened, frozenset(ItemStatus) - opened):
        return [items.c.open.is_(found.statuses == opened)]
    return [items.c.status.in_(sorted(found.statuses))]


def _only_open(found: Filter) -> bool:
    return bool(found.statuses) and all(status.open for status in found.statuses)


def _requested_by(values: tuple[object, ...]) -> ColumnElement[bool]:
    """By the whole actor (`agent:<id>`) or by the id alone."""
    return items.c.requester.in_([f"{kind}{value}" for value in values for kind in ("", "agent:", "service:")])


def _snoozed(tx: Tx, whose: str) -> ColumnElement[bool]:
    mine = (item_marks.c.tenant_id == items.c.tenant_id, item_marks.c.item_id == items.c.item_id)
    return exists().where(*mine, item_marks.c.actor == whose, item_marks.c.snoozed_until > tx.now())


def _on_visible_thread(visible: Visible, dialect: str) -> ColumnElement[bool]:
    same = (threads.c.tenant_id == items.c.tenant_id, threads.c.thread_id == items.c.thread_id)
    return exists().where(*same, is_visible(threads.c.metadata, visible, dialect))
