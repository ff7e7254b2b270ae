"""Items and decisions in a range of time, read along the indexes and limited in number."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, bindparam, exists, func, or_, select

from assent.identity.model.visibility import Visible
from assent.identity.rows.visibility import is_visible
from assent.kernel.store.tables import TENANT, decisions, items, threads
from assent.kernel.store.transaction import Tx
from assent.review.model.insights import Asked, Said, outcome_of, outcome_said

MOST_READ = 5_000
_BY_NAME = ("tool",)
"""The types whose title is the tool's name; the title of other questions is a sentence."""
_PARTS = 16**3
_REQUEST = "request"
_SENT_BACK = "revision_request"

_SINCE = (items.c.tenant_id == TENANT, items.c.created_at >= bindparam("since"))
_HOW_MANY = select(func.count()).select_from(items).where(*_SINCE)
_NEWEST = (items.c.created_at.desc(), items.c.item_id.desc())
_ASKED = (
    select(
        items.c.title,
        items.c.called,
        items.c.type,
        items.c.dialect,
        items.c.created_at,
        items.c.open,
        items.c.resolution,
        items.c.decided_at,
    )
    .where(*_SINCE)
    .order_by(*_NEWEST)
)
_SAID = (
    select(decisions.c.actor, decisions.c.kind, decisions.c.verdicts, decisions.c.at, items.c.created_at)
    .join(items, and_(items.c.tenant_id == decisions.c.tenant_id, items.c.item_id == decisions.c.item_id))
    .where(
        *_SINCE,
        decisions.c.tenant_id == TENANT,
        decisions.c.actor.startswith("reviewer:"),
        or_(decisions.c.standing, decisions.c.kind == _SENT_BACK),
    )
    .order_by(*_NEWEST)
)
_OPEN = (items.c.tenant_id == TENANT, items.c.open.is_(True))
_COUNT = select(func.count()).select_from(items).where(*_OPEN)
_OLDEST = select(func.min(items.c.created_at).label("at")).where(*_OPEN)


def asked_since(tx: Tx, since: datetime, visible: Visible | None) -> tuple[list[Asked], int]:
    """All items, or an even sample of too many; and their total number."""
    seen = _seen(tx, visible)
    row = tx.first(_HOW_MANY.where(*seen), since=since)
    count = int(row[0]) if row else 0
    seen += _sample(count)
    return [_asked(row) for row in tx.all(_ASKED.where(*seen).limit(MOST_READ), since=since)], count


def _sample(count: int) -> list[ColumnElement[bool]]:
    """Ids end in random digits: selects the fraction of them that can be read."""
    if count <= MOST_READ:
        return []
    below = max(_PARTS * MOST_READ // count, 1)
    return [func.substr(items.c.item_id, 34, 3) < f"{below:03x}"]


def said_since(tx: Tx, since: datetime, visible: Visible | None, actor: str | None) -> tuple[list[Said], bool]:
    """The newest decisions, and whether there are more; with `actor`, only theirs. Not sampled, because the time
    between consecutive decisions matters."""
    statement = _SAID if actor is None else _SAID.where(decisions.c.actor == actor)
    rows = tx.all(statement.where(*_seen(tx, visible)).limit(MOST_READ + 1), since=since)
    return [_said(row) for row in rows[:MOST_READ]], len(rows) > MOST_READ


def backlog(tx: Tx, ages: Sequence[timedelta], visible: Visible | None) -> tuple[list[int], datetime | None]:
    """The number of open items by age, the youngest first, and the creation time of the oldest."""
    seen, now = _seen(tx, visible), tx.now()
    edges = [None, *(now - age for age in ages), None]
    counts = [_between(tx, seen, upper, lower) for upper, lower in pairwise(edges)]
    row = tx.first(_OLDEST.where(*seen))
    return counts, row.at if row else None


def _between(tx: Tx, seen: Sequence[ColumnElement[bool]], before: datetime | None, since: datetime | None) -> int:
    statement = _COUNT.where(*seen)
    if before is not None:
        statement = statement.where(items.c.created_at < before)
    if since is not None:
        statement = statement.where(items.c.created_at >= since)
    row = tx.first(statement)
    return int(row[0]) if row else 0


def _seen(tx: Tx, visible: Visible | None) -> list[ColumnElement[bool]]:
    if visible is None:
        return []
    same = (threads.c.tenant_id == items.c.tenant_id, threads.c.thread_id == items.c.thread_id)
    return [exists().where(*same, is_visible(threads, visible, tx.dialect))]


def _asked(row: Row[Any]) -> Asked:
    by_name = row.type in _BY_NAME and row.dialect != _REQUEST
    return Asked(
        (row.called or row.title) if by_name else row.type,
        row.created_at,
        bool(row.open),
        outcome_of(row.resolution),
        row.decided_at,
    )


def _said(row: Row[Any]) -> Said:
    verbs = [str(verdict["verb"]) for verdict in row.verdicts]
    return Said(row.actor, outcome_said(verbs, sent_back=row.kind == _SENT_BACK), row.at, row.created_at)
