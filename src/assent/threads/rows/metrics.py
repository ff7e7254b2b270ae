"""The number of waiting runs and their waiting time, over all tenants. Reads only the rows of active runs.

The conditions are text because SQLite uses a partial index only where a statement has the index's own condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, exists, func, or_, select, text

from assent.kernel.store.tables import runs, threads
from assent.kernel.store.transaction import Tx

_ACTIVE: ColumnElement[Any] = text("runs.status IN ('pending', 'running')")  # type: ignore[assignment]
_AWAKE = or_(runs.c.wake_at.is_(None), runs.c.wake_at <= bindparam("now"))
_WAITING = and_(_ACTIVE, runs.c.status == "pending", _AWAKE)
_COUNTS = select(runs.c.status, func.count().label("runs")).where(_ACTIVE).group_by(runs.c.status)
_SINCE = select(runs.c.created_at).where(_WAITING).order_by(runs.c.created_at)
_AT = _SINCE.limit(bindparam("most")).offset(bindparam("skipped"))
_HOW_MANY = select(func.count()).select_from(runs).where(_WAITING)

_other = runs.alias("other")
_thread_runs = exists().where(
    _other.c.tenant_id == runs.c.tenant_id, _other.c.thread_id == runs.c.thread_id, _other.c.status == "running"
)
_thread_waits = exists().where(
    threads.c.tenant_id == runs.c.tenant_id,
    threads.c.thread_id == runs.c.thread_id,
    threads.c.status == "interrupted",
)
_UNBLOCKED = _SINCE.where(~_thread_runs, or_(runs.c.answers, ~_thread_waits)).limit(1)


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Waits in seconds, None where nothing waits. A delayed run does not wait; an unblocked one needs only a worker."""

    pending: int
    running: int
    longest_wait: float | None
    median_wait: float | None
    longest_unblocked_wait: float | None


def queue_depth(tx: Tx) -> QueueDepth:
    """Needs a transaction across tenants."""
    counts = {row.status: row.runs for row in tx.all(_COUNTS)}
    row = tx.first(_HOW_MANY, now=tx.now())
    waiting: int = row[0] if row else 0
    half = (waiting - 1) // 2
    return QueueDepth(
        pending=counts.get("pending", 0),
        running=counts.get("running", 0),
        longest_wait=_wait(tx, tx.all(_AT, now=tx.now(), most=1, skipped=0)),
        median_wait=_wait(tx, tx.all(_AT, now=tx.now(), most=2 - waiting % 2, skipped=half)) if waiting else None,
        longest_unblocked_wait=_wait(tx, tx.all(_UNBLOCKED, now=tx.now())),
    )


def _wait(tx: Tx, since: Sequence[Any]) -> float | None:
    """The average waiting time."""
    waits = [max((tx.now() - row.created_at).total_seconds(), 0.0) for row in since]
    return sum(waits) / len(waits) if waits else None
