"""Deletes closed items that can no longer change.

An item is deleted with all its rows, and only together with its whole thread: while the thread has an open item, one
in doubt or a recent decision, earlier questions still determine which answers belong to what. Items with undelivered
messages or usable grants stay.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import bindparam, delete, exists, literal_column, or_, select

from assent.kernel.store.tables import TENANT, decisions, deliveries, grants, items
from assent.kernel.store.transaction import Tx
from assent.review.model.grants import GrantStatus
from assent.review.model.items import Execution
from assent.review.rows.items import tables

_UNSETTLED = [Execution.STARTED.value, Execution.IN_DOUBT.value]
_beside = items.alias("beside")
_THREAD_LIVES = exists().where(
    _beside.c.tenant_id == items.c.tenant_id,
    _beside.c.thread_id == items.c.thread_id,
    or_(_beside.c.open, _beside.c.updated_at >= bindparam("before"), _beside.c.execution.in_(_UNSETTLED)),
)
_UNDELIVERED = exists().where(
    deliveries.c.tenant_id == items.c.tenant_id,
    deliveries.c.subject == literal_column("'item:'").concat(items.c.item_id),
    deliveries.c.status != "delivered",
)
_USABLE = exists().where(
    grants.c.tenant_id == items.c.tenant_id,
    grants.c.item_id == items.c.item_id,
    grants.c.status == GrantStatus.GRANTED,
    grants.c.expires_at > bindparam("now"),
)
_OUTDATED = (
    select(items.c.item_id)
    .where(items.c.tenant_id == TENANT, ~items.c.open)
    .where(items.c.created_at < bindparam("before"), items.c.updated_at < bindparam("before"))
    .where(items.c.execution.is_(None) | items.c.execution.not_in(_UNSETTLED))
    .where(~_THREAD_LIVES, ~_UNDELIVERED, ~_USABLE)
    .order_by(items.c.created_at, items.c.item_id)
    .limit(bindparam("limit"))
    .with_for_update(of=items, skip_locked=True)
)
_REMOVALS = [
    delete(table).where(table.c.tenant_id == TENANT, table.c.item_id == bindparam("gone"))
    for table in (*tables(), decisions, grants)
]


def outdated(tx: Tx, before: datetime, limit: int) -> list[str]:
    """Closed items without recent changes and without pending effects. Oldest first."""
    return [row.item_id for row in tx.all(_OUTDATED, before=before, now=tx.now(), limit=limit)]


def remove(tx: Tx, item_id: str) -> None:
    for statement in _REMOVALS:
        tx.change(statement, gone=item_id)
