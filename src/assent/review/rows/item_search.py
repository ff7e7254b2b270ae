"""Searches items. The first page is one index scan for any number of items; counts stop at a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, exists, false, func, null, or_, select, true

from assent.identity.model.access import Kind
from assent.identity.model.visibility import Visible
from assent.identity.rows.names import actors_like, actors_named
from assent.identity.rows.visibility import is_visible
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import NEVER, TENANT, item_marks, items, threads
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Item, ItemStatus
from assent.review.model.questions import ItemType
from assent.review.model.search.filters import Filter, id_range
from assent.review.model.search.search_words import of_actor, of_type, phrase_of
from assent.review.rows import item_texts, mentions
from assent.review.rows.item_texts import Term
from assent.review.rows.items import COLUMNS, RISK_RANKS, item_of
from assent.threads.rows.remote import deployments

MOST_COUNTED = 10_000
MOST_FACETED = 2_000
_ALL = select(*COLUMNS).where(items.c.tenant_id == TENANT)
_IDS = _ALL.with_only_columns(items.c.item_id)
_BY_AGE = (items.c.created_at, items.c.item_id)
_ORDERS = {
    "-created_at": Keyset(_BY_AGE, descending=True),
    "created_at": Keyset(_BY_AGE),
    "deadline": Keyset((items.c.ends_at, items.c.item_id)),
    "risk": Keyset((items.c.risk_rank, *_BY_AGE), descending=True),
}
SORTS = tuple(_ORDERS)
_GROUPS = {"agent": items.c.requester, "thread": items.c.of_thread, "type": items.c.kind}
GROUPS = tuple(_GROUPS)
_FACETS = {"kind": items.c.kind, "risk": items.c.risk, "agent": items.c.requester, "graph": items.c.graph_id}
_FILTERED_BY = {"kind": "kind", "risk": "risk", "agent": "requester", "graph": "graph_id"}
FACETS = tuple(_FACETS)
_ME, _ANYONE = "me", "anyone"
_BASIC_TYPES = frozenset(ItemType)
_ACTORS = frozenset({"requester", "decided_by", "recipient", "owner"})
_NOBODY = "none"
_PRECISE = frozenset({"recipient", "thread_id", "run_id", "entity_id", "owner", "mentions"})
"""A filter by one of these, or by the id, also shows items that are addressed to another person."""
_INDEXED = frozenset(
    {"graph_id", "assistant_id", "type", "thread_id", "requester", "kind", "risk", "owner", "mentions"}
)
_MAY_BE_RARE = frozenset({"graph_id", "assistant_id", "requester", "kind", "risk"})
_RARE = 1000
_OPEN = frozenset(status for status in ItemStatus if status.open)
_EDGE = (
    select(items.c.created_at)
    .where(items.c.tenant_id == TENANT, items.c.open.is_(True))
    .order_by(items.c.created_at.desc())
    .offset(MOST_COUNTED - 1)
    .limit(1)
)

_FOR_PERSON = items.c.recipient.startswith(f"{Kind.REVIEWER}:")
_FOR_OTHERS = Prepared(
    select(items.c.recipient)
    .where(items.c.tenant_id == TENANT, items.c.routing.is_not(null()), _FOR_PERSON)
    .where(items.c.recipient > "", items.c.recipient != bindparam("whose"))  # a range, for the index
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


Facets = Mapping[str, Mapping[str, int]]
"""For each facet, its values with the number of items."""


def page(
    tx: Tx,
    criteria: Filter,
    whose: str,
    visible: Visible | None,
    *,
    sort: str,
    group: str | None = None,
    limit: int,
    cursor: str | None,
) -> Page[Item]:
    statement = _ALL.where(*_conditions(tx, criteria, whose, visible))
    return _order(sort, group).page(tx, statement, item_of, limit=limit, cursor=cursor)


def after(
    tx: Tx, criteria: Filter, whose: str, visible: Visible | None, item: Item, *, sort: str, group: str | None = None
) -> list[Item]:
    """Items that follow this one in the list, and items from its beginning."""
    order = _order(sort, group)
    position = order.cursor_at(*(_value(item, column.name) for column in order.columns))
    pages = [
        page(tx, criteria, whose, visible, sort=sort, group=group, limit=20, cursor=cursor)
        for cursor in (position, None)
    ]
    return [other for part in pages for other in part.items if other.id != item.id]


def counts(tx: Tx, criteria: Filter, whose: str, visible: Visible | None) -> Counts:
    """For the same filter without its status. Snoozed items are not counted as pending, unless the filter selects
    them."""
    narrowed = (replace(criteria, statuses=statuses) for statuses in (_OPEN, frozenset(ItemStatus) - _OPEN))
    return Counts(*(_count(tx, _ALL.where(*_conditions(tx, each, whose, visible))) for each in narrowed))


def pending(tx: Tx, filters: Sequence[Filter], whose: str, visible: Visible | None) -> list[Waiting]:
    """The number of pending items of each filter. Without a suitable index, only the newest pending items are counted:
    a search for rare items must not scan everything on each page."""
    edge = None if all(map(_is_indexed, filters)) else tx.first(_EDGE)
    recent = [] if edge is None else [items.c.created_at >= edge.created_at]
    return [_pending(tx, criteria, recent, whose, visible) for criteria in filters]


def facets(tx: Tx, criteria: Filter, whose: str, visible: Visible | None) -> Facets:
    """The values to narrow the list by. A facet ignores its own selection, so that another value can be added to it.
    Only the newest items are counted: a count that reaches `MOST_FACETED` means that many or more."""
    chosen = {name for name, column in _FILTERED_BY.items() if column in dict(criteria.columns)}
    shared = _tallied(tx, criteria, whose, visible)
    tallied = {name: shared[name] for name in FACETS if name not in chosen}
    for name in chosen:
        others = tuple(pair for pair in criteria.columns if pair[0] != _FILTERED_BY[name])
        tallied[name] = _tallied(tx, replace(criteria, columns=others), whose, visible)[name]
    return {name: tallied[name] for name in FACETS}


def _tallied(tx: Tx, criteria: Filter, whose: str, visible: Visible | None) -> Facets:
    newest = _ALL.where(*_conditions(tx, criteria, whose, visible)).order_by(*(col.desc() for col in _BY_AGE))
    limited = newest.with_only_columns(*_FACETS.values()).limit(MOST_FACETED).subquery()
    rows = tx.all(select(*limited.c, func.count().label("number")).group_by(*limited.c))
    tallies = {name: Counter[str]() for name in FACETS}
    for row in rows:
        for name, value in zip(FACETS, row, strict=False):
            if value:
                tallies[name][value] += row.number
    return tallies


def _order(sort: str, group: str | None) -> Keyset:
    order = _ORDERS[sort]
    return order if group is None else Keyset((_GROUPS[group], *order.columns), descending=order.descending)


def _value(item: Item, column: str) -> Any:
    """The value by which the list is sorted."""
    derived: dict[str, Any] = {
        "item_id": item.id,
        "ends_at": item.expires_at or NEVER,
        "risk_rank": RISK_RANKS.get(item.risk or "", 0),
        "of_thread": item.thread_id or "",
    }
    return derived[column] if column in derived else getattr(item, column)


def _pending(
    tx: Tx, criteria: Filter, recent: list[ColumnElement[bool]], whose: str, visible: Visible | None
) -> Waiting:
    """Zero if the filter selects closed items only."""
    narrowed = replace(criteria, statuses=criteria.statuses & _OPEN if criteria.statuses else _OPEN)
    if not narrowed.statuses:
        return Waiting(0)
    limits = [] if _is_indexed(criteria) else recent
    number = _count(tx, _ALL.where(*_conditions(tx, narrowed, whose, visible), *limits))
    return Waiting(number, at_least=bool(limits) or number >= MOST_COUNTED)


def _is_indexed(criteria: Filter) -> bool:
    """Whether counting the pending items reads few others."""
    plain = replace(criteria, statuses=frozenset(), sort=None, group=None) == Filter()
    return plain or criteria.ids is not None or any(name in _INDEXED for name, _ in criteria.columns)


def _count(tx: Tx, statement: Select[Any]) -> int:
    limited = statement.with_only_columns(items.c.item_id).limit(MOST_COUNTED).subquery()
    row = tx.first(select(func.count()).select_from(limited))
    return int(row[0]) if row else 0


def _conditions(tx: Tx, criteria: Filter, whose: str, visible: Visible | None) -> list[ColumnElement[bool]]:
    conditions = [_looked_up(tx, criteria, name, _column(tx, name, values, whose)) for name, values in criteria.columns]
    if criteria.ids is not None:
        conditions.append(_begins(criteria.ids))
    elif not any(name in _PRECISE for name, _ in criteria.columns):
        conditions += _not_for_others(tx, whose)
    conditions += _status(criteria)
    if criteria.words:
        conditions.append(_said(tx, criteria.words))
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


def _column(tx: Tx, name: str, values: tuple[object, ...], whose: str) -> ColumnElement[bool]:
    if name == "type":
        return _of_types(tx, [str(value) for value in values])
    if name == "mentions":
        return mentions.mentions_any(tx, _actors(tx, values, whose))
    if name == "recipient" and _ANYONE in values:
        return true()
    if name in _ACTORS:
        actors = items.c[name].in_(_actors(tx, values, whose))
        return or_(actors, items.c[name].is_(None)) if _NOBODY in values else actors
    if name == "risk":
        return items.c.risk_rank.in_([RISK_RANKS.get(str(value), -1) for value in values])
    if name == "deployment":
        named = {deployment.name: deployment.id for deployment in deployments.all_of(tx)}
        return items.c.deployment.in_([named.get(str(value), value) for value in values])
    return items.c[name].in_(values)


def _not_for_others(tx: Tx, whose: str) -> list[ColumnElement[bool]]:
    """Workspace reviews of a paired person are in that person's list only. Without any, the condition would only keep
    counts from being read from an index."""
    if tx.first(_FOR_OTHERS, whose=whose) is None:
        return []
    return [or_(items.c.routing.is_(null()), items.c.recipient.is_(None), ~_FOR_PERSON, items.c.recipient == whose)]


def _looked_up(tx: Tx, criteria: Filter, name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """A list in another order would walk past every item to find the few with a rare value. If they are few, they are
    looked up by their ids."""
    states = {status.open for status in criteria.statuses}
    if name not in _MAY_BE_RARE or len(states) != 1 or criteria.ids is not None:
        return condition
    rows = tx.all(_IDS.where(items.c.open.is_(states.pop()), condition).limit(_RARE))
    if len(rows) >= _RARE:
        return condition
    return items.c.item_id.in_([row.item_id for row in rows]) if rows else false()


def _of_types(tx: Tx, types: Sequence[str]) -> ColumnElement[bool]:
    """An item is also of each type that one of its calls is shown as."""
    basic = [type for type in types if type in _BASIC_TYPES]
    shown = [Term((of_type(type),), exact=True) for type in types if type not in _BASIC_TYPES]
    ways: list[ColumnElement[bool]] = [items.c.type.in_(basic)] if basic else []
    ways += [item_texts.matches(tx, [shown])] if shown else []
    return or_(*ways) if ways else false()


def _actors(tx: Tx, values: Sequence[object], whose: str) -> list[str]:
    """The whole actor (`agent:<id>`), the id alone, the name, or `me`."""
    own = [whose] if _ME in values else []
    spelled = (f"{kind}{value}" for value in values for kind in ("", "agent:", "service:", "reviewer:"))
    named = (actor for value in values for actor in actors_named(tx, str(value)))
    return list(dict.fromkeys([*own, *spelled, *named]))


def _said(tx: Tx, texts: Sequence[str]) -> ColumnElement[bool]:
    """Every text has to be found: in the item, or in the name of somebody who took part. Punctuation is no text."""
    phrases = {text: phrase_of(text) for text in texts}
    wanted = [[Term(tuple(phrase)), *_taking_part(tx, text)] for text, phrase in phrases.items() if phrase]
    return item_texts.matches(tx, wanted) if wanted else false()


def _taking_part(tx: Tx, text: str) -> list[Term]:
    spelled = [f"{kind}:{text}" for kind in ("agent", "service", "reviewer")]
    return [Term((of_actor(actor),), exact=True) for actor in (*spelled, *actors_like(tx, text))]


def _status(criteria: Filter) -> list[ColumnElement[bool]]:
    """Uses the index if the filter selects exactly the open or the closed items."""
    if not criteria.statuses:
        return []
    if criteria.statuses in (_OPEN, frozenset(ItemStatus) - _OPEN):
        return [items.c.open.is_(criteria.statuses == _OPEN)]
    return [items.c.status.in_(sorted(criteria.statuses))]


def _begins(ids: tuple[str, ...]) -> ColumnElement[bool]:
    """A range of the primary key for each way to begin."""
    ranges = [bounds for prefix in ids if (bounds := id_range(prefix)) is not None]
    return or_(false(), *(items.c.item_id.between(*bounds) for bounds in ranges))


def _only_open(criteria: Filter) -> bool:
    return bool(criteria.statuses) and all(status.open for status in criteria.statuses)


def _snoozed(tx: Tx, whose: str) -> ColumnElement[bool]:
    mine = (item_marks.c.tenant_id == items.c.tenant_id, item_marks.c.item_id == items.c.item_id)
    return exists().where(*mine, item_marks.c.actor == whose, item_marks.c.snoozed_until > tx.now())


def _on_visible_thread(visible: Visible, dialect: str) -> ColumnElement[bool]:
    same = (threads.c.tenant_id == items.c.tenant_id, threads.c.thread_id == items.c.thread_id)
    return exists().where(*same, is_visible(threads, visible, dialect))
