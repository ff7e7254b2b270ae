"""Checks a tenant's usage against its quotas, in the transaction that would add to it.

Active runs and pending items are counted there, by their indexes and never further than the limit. Threads and stored
bytes come from the last count in the background (`count`); see `kernel/limits.py`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, LargeBinary, Select, Table, bindparam, func, select, text

from assent.errors import QuotaExceeded
from assent.kernel.limits import Usage
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.sizes import stored_bytes
from assent.kernel.store.tables import (
    TENANT,
    assistant_versions,
    assistants,
    checkpoint_parts,
    checkpoint_writes,
    checkpoints,
    comments,
    crons,
    event_payloads,
    frames,
    item_marks,
    item_revisions,
    items,
    memories,
    memory_vectors,
    runs,
    thread_values,
    threads,
)
from assent.kernel.store.transaction import Tx

_SOON, _LATER = 5, 60
_ACTIVE: ColumnElement[Any] = text("runs.status IN ('pending', 'running')")  # type: ignore[assignment]
"""As text: SQLite uses a partial index only where a statement has the index's own condition."""

_RUNS = select(runs.c.thread_id).where(runs.c.tenant_id == TENANT, _ACTIVE).limit(bindparam("most"))
_PENDING = select(items.c.item_id).where(items.c.tenant_id == TENANT, items.c.open).limit(bindparam("most"))

_CRONS = select(crons.c.cron_id).where(crons.c.tenant_id == TENANT).limit(bindparam("most"))


def _counted(rows: Select[Any]) -> Prepared:
    return Prepared(select(func.count()).select_from(rows.subquery()))


_ACTIVE_RUNS, _PENDING_ITEMS, _ALL_CRONS = _counted(_RUNS), _counted(_PENDING), _counted(_CRONS)
_THREADS = select(threads.c.tenant_id, func.count().label("total")).group_by(threads.c.tenant_id)
_LARGE: dict[Table, tuple[str, ...]] = {
    checkpoints: ("checkpoint", "metadata"),
    checkpoint_writes: ("value",),
    checkpoint_parts: ("data",),
    threads: ("metadata", "values", "interrupts"),
    thread_values: ("text",),
    runs: ("kwargs", "metadata"),
    assistants: ("config", "context", "metadata"),
    assistant_versions: ("config", "context", "metadata"),
    item_revisions: ("asked", "edits"),
    item_marks: ("draft",),
    comments: ("text",),
    event_payloads: ("payload",),
    frames: ("data",),
    memories: ("value",),
    memory_vectors: ("vector",),
    crons: ("payload", "metadata"),
}
"""The columns with the documents of callers and graphs. The rest of a row is small."""


def _bytes_of(table: Table, names: tuple[str, ...]) -> Select[Any]:
    first, *others = (func.coalesce(_size(table.c[name]), 0) for name in names)
    return select(table.c.tenant_id, func.sum(sum(others, first)).label("total")).group_by(table.c.tenant_id)


def _size(column: Column[Any]) -> ColumnElement[Any]:
    """SQLite gets the length of a BLOB without reading it."""
    return func.length(column) if isinstance(column.type, LargeBinary) else stored_bytes(column)


_BYTES = [_bytes_of(table, names) for table, names in _LARGE.items()]


def require_thread(tx: Tx) -> None:
    """Requires room for one more thread."""
    if tx.usage.threads[tx.tenant] >= tx.limits.threads:
        raise _refusal("threads", tx.limits.threads, _LATER)
    require_storage(tx)


def note_thread(tx: Tx) -> None:
    """Counts one more thread since the last count."""
    tx.usage.threads[tx.tenant] += 1


def require_storage(tx: Tx) -> None:
    if tx.usage.stored_bytes[tx.tenant] >= tx.limits.stored_bytes:
        raise _refusal("stored_bytes", tx.limits.stored_bytes, _LATER)


def require_bytes(tx: Tx, size: int) -> None:
    """Requires room for this many bytes and counts them."""
    if tx.usage.stored_bytes[tx.tenant] + size > tx.limits.stored_bytes:
        raise _refusal("stored_bytes", tx.limits.stored_bytes, _LATER)
    tx.usage.stored_bytes[tx.tenant] += size


def require_run(tx: Tx) -> None:
    """Requires room for one more run and its questions: the end of a run is never refused."""
    require_storage(tx)
    if _count(tx, _ACTIVE_RUNS, tx.limits.active_runs) >= tx.limits.active_runs:
        raise _refusal("active_runs", tx.limits.active_runs, _SOON)
    require_item(tx)


def require_item(tx: Tx) -> None:
    if _count(tx, _PENDING_ITEMS, tx.limits.pending_items) >= tx.limits.pending_items:
        raise _refusal("pending_items", tx.limits.pending_items, _LATER)


def require_cron(tx: Tx) -> None:
    """Requires room for one more cron."""
    require_storage(tx)
    if _count(tx, _ALL_CRONS, tx.limits.crons) >= tx.limits.crons:
        raise _refusal("crons", tx.limits.crons, _LATER)


def count(tx: Tx) -> Usage:
    """Needs a transaction across tenants."""
    usage = Usage()
    usage.threads.update({row.tenant_id: row.total for row in tx.all(_THREADS)})
    for statement in _BYTES:
        usage.stored_bytes.update({row.tenant_id: int(row.total or 0) for row in tx.all(statement)})
    return usage


def _count(tx: Tx, statement: Prepared, most: int) -> int:
    row = tx.first(statement, most=most)
    return int(row[0]) if row else 0


def _refusal(quota: str, limit: int, retry_after: int) -> QuotaExceeded:
    usage = {"stored_bytes": f"{limit} bytes stored"}.get(quota, f"{limit} {quota.replace('_', ' ')}")
    return QuotaExceeded(
        f"this tenant has reached its quota of {usage}",
        retry_after=retry_after,
        hint=f"finish or delete some, or ask the operator to raise quota_{quota}",
        quota=quota,
        limit=limit,
    )
