"""The people whom comments mention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, bindparam, exists, false, select

from assent.kernel.store.tables import TENANT, items, mentions
from assent.kernel.store.transaction import Tx

_OF_ITEM = (
    select(mentions.c.comment_id, mentions.c.actor)
    .where(mentions.c.tenant_id == TENANT, mentions.c.item_id == bindparam("item"))
    .order_by(mentions.c.comment_id, mentions.c.actor)
)

_MANY = 1000
_MENTIONING = (
    select(mentions.c.item_id)
    .where(mentions.c.tenant_id == TENANT, mentions.c.actor.in_(bindparam("actors", expanding=True)))
    .distinct()
    .limit(_MANY)
)


def add(tx: Tx, item_id: str, comment_id: str, actor: str) -> None:
    tx.insert(mentions, item_id=item_id, comment_id=comment_id, actor=actor)


def of_item(tx: Tx, item_id: str) -> Mapping[str, list[str]]:
    """The mentioned actors of each comment."""
    actors = defaultdict[str, list[str]](list)
    for row in tx.all(_OF_ITEM, item=item_id):
        actors[row.comment_id].append(row.actor)
    return actors


def mentions_any(tx: Tx, actors: Sequence[str]) -> ColumnElement[bool]:
    """Whether a comment on an item mentions one of them. A few items are looked up by their ids."""
    rows = tx.all(_MENTIONING, actors=list(actors))
    if len(rows) < _MANY:
        return items.c.item_id.in_([row.item_id for row in rows]) if rows else false()
    same = (mentions.c.tenant_id == items.c.tenant_id, mentions.c.item_id == items.c.item_id)
    return exists().where(*same, mentions.c.actor.in_(actors))
