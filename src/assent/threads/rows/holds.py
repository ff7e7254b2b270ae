"""Conditions under which the inbox holds a thread: an open decision, or a decision still in effect."""

from __future__ import annotations

from sqlalchemy import bindparam, exists, literal_column, select

from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, deliveries, items, threads
from assent.kernel.store.transaction import Tx

UNDER_WAY = exists().where(
    deliveries.c.tenant_id == items.c.tenant_id,
    deliveries.c.subject == literal_column("'item:'").concat(items.c.item_id),
    deliveries.c.status.in_([literal_column("'pending'"), literal_column("'sending'")]),
)
"""A decision about the item has not arrived yet."""
UNSETTLED = (
    exists()
    .where(items.c.tenant_id == threads.c.tenant_id, items.c.thread_id == threads.c.thread_id)
    .where((items.c.gated & items.c.open) | (items.c.execution == literal_column("'in_doubt'")) | UNDER_WAY)
)
_STOPS = Prepared(
    select(items.c.item_id)
    .where(items.c.tenant_id == TENANT, items.c.thread_id == bindparam("thread"))
    .where(items.c.dialect == "breakpoint", items.c.gated, items.c.open | UNDER_WAY)
    .limit(1)
)


def is_stopped(tx: Tx, thread_id: str) -> bool:
    """Whether the thread is stopped at a breakpoint whose decision is open or can still be withdrawn."""
    return tx.first(_STOPS, thread=thread_id) is not None
