"""Sample data as rows: its items are marked in a column."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, select, update

from assent.kernel.store.tables import TENANT, item_revisions, items
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Item

_SAMPLES = select(items.c.item_id).where(items.c.tenant_id == TENANT, items.c.sample)
_COUNT = select(func.count()).select_from(_SAMPLES.subquery())
_COUNT_SINCE = select(func.count()).select_from(_SAMPLES.where(items.c.created_at >= bindparam("since")).subquery())
_THIS = update(items).where(items.c.tenant_id == TENANT, items.c.item_id == bindparam("this"))
_THIS_REVISION = update(item_revisions).where(
    item_revisions.c.tenant_id == TENANT, item_revisions.c.item_id == bindparam("this")
)


def count(tx: Tx, since: Any = None) -> int:
    row = tx.first(_COUNT) if since is None else tx.first(_COUNT_SINCE, since=since)
    return int(row[0]) if row else 0


def ids(tx: Tx) -> list[str]:
    return [row.item_id for row in tx.all(_SAMPLES)]


def close(tx: Tx, item: Item, **columns: Any) -> None:
    """Marks a new item as a sample that was decided in the past."""
    tx.change(_THIS.values(sample=True, open=False, **columns), this=item.id)
    tx.change(_THIS_REVISION.values(created_at=columns["created_at"]), this=item.id)
