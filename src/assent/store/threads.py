"""Threads as rows. `lock` serialises everything that decides about a thread's runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, null, select, update

from assent.domain.questions import Resolution
from assent.domain.threads import Interrupts, Lifetime, Thread, ThreadStatus
from assent.store import asking
from assent.store.prepared import Prepared
from assent.store.tables import TENANT, checkpoint_writes, checkpoints, threads
from assent.store.transaction import Tx

_ALL = select(threads).where(threads.c.tenant_id == TENANT)
_ONE = _ALL.where(threads.c.thread_id == bindparam("id"))
_BY_ID = Prepared(_ONE)
_LOCK = Prepared(_ONE.with_for_update())
_LOCK_WITHOUT_VALUES = Prepared(
    select(*(null().label("values") if column.name == "values" else column for column in threads.c))
    .where(threads.c.tenant_id == TENANT, threads.c.thread_id == bindparam("id"))
    .with_for_update()
)
_THIS = update(threads).where(threads.c.tenant_id == TENANT, threads.c.thread_id == bindparam("id"))
_SET_STATUS = Prepared(_THIS.values(status=bindparam("new_status"), updated_at=bindparam("now")))
_SET_METADATA = _THIS.values(
    metadata=bindparam("new_metadata"),
    graph_id=bindparam("new_graph"),
    assistant_id=bindparam("new_assistant"),
    updated_at=bindparam("now"),
)
_SET_STATE = Prepared(
    _THIS.values(
        status=bindparam("new_status"),
        **{name: bindparam(f"new_{name}") for name in ("values", "interrupts", "error", "next")},
        shown=bindparam("new_shown"),
        updated_at=bindparam("now"),
        state_updated_at=bindparam("now"),
    )
)
_DROP_QUESTIONS = _THIS.values(interrupts=None, next=None)
_SET_SHOWN = _THIS.values(shown=True)
_SET_SHOWN_AS_OF = _SET_SHOWN.where(threads.c.state_updated_at == bindparam("as_of"))
_SET_LIFETIME = _THIS.values(
    ttl_minutes=bindparam("minutes"), ttl_strategy=bindparam("strategy"), expires_at=bindparam("until")
)
_EXPIRED = (
    select(threads.c.tenant_id, threads.c.thread_id)
    .where(threads.c.expires_at <= bindparam("now"), threads.c.status != ThreadStatus.BUSY)
    .order_by(threads.c.expires_at)
    .limit(bindparam("limit"))
)
_DELETE = [
    delete(table).where(table.c.tenant_id == TENANT, table.c.thread_id == bindparam("id"))
    for table in (checkpoint_writes, checkpoints, threads)
]


def insert(
    tx: Tx, thread_id: str, metadata: dict[str, Any], *, config: dict[str, Any] | None = None, **columns: Any
) -> bool:
    """False where the id is taken."""
    now = tx.now()
    return tx.insert_new(
        threads,
        thread_id=thread_id,
        status=ThreadStatus.IDLE,
        metadata=metadata,
        config=config or {},
        shown=False,
        created_at=now,
        updated_at=now,
        **_indexed(metadata),
        **columns,
    )


def get(tx: Tx, thread_id: str) -> Thread | None:
    row = tx.first(_BY_ID, id=thread_id)
    return None if row is None else thread_of(row)


def lock(tx: Tx, thread_id: str, *, values: bool = True) -> Thread | None:
    """Values can be large; who decides about runs need not read them."""
    row = tx.first(_LOCK if values else _LOCK_WITHOUT_VALUES, id=thread_id)
    return None if row is None else thread_of(row)


def set_status(tx: Tx, thread_id: str, status: ThreadStatus) -> None:
    tx.change(_SET_STATUS, id=thread_id, new_status=status, now=tx.now())


def set_metadata(tx: Tx, thread_id: str, metadata: dict[str, Any]) -> None:
    found = _indexed(metadata)
    tx.change(
        _SET_METADATA,
        id=thread_id,
        new_metadata=metadata,
        new_graph=found["graph_id"],
        new_assistant=found["assistant_id"],
        now=tx.now(),
    )


def set_state(
    tx: Tx,
    thread_id: str,
    *,
    status: ThreadStatus,
    values: Any,
    interrupts: Interrupts,
    error: dict[str, Any] | None,
    next: list[str],
    shown: bool = False,
) -> None:
    tx.change(
        _SET_STATE,
        id=thread_id,
        new_status=status,
        new_values=values,
        new_interrupts=interrupts,
        new_error=error,
        new_next=next,
        new_shown=shown,
        now=tx.now(),
    )


def drop_questions(tx: Tx, thread_id: str, actor: str) -> None:
    """The thread moves on without an answer: nothing waits on it any more."""
    tx.change(_DROP_QUESTIONS, id=thread_id)
    asking.end(tx, thread_id, Resolution.SUPERSEDED, actor)


def mark_shown(tx: Tx, thread_id: str, *, as_of: datetime | None = None) -> None:
    """Someone has seen the questions: from now on a positional answer can only mean these.

    With `as_of`, the time of the state they were read from, questions that came after it stay unseen.
    """
    if as_of is None:
        tx.change(_SET_SHOWN, id=thread_id)
    else:
        tx.change(_SET_SHOWN_AS_OF, id=thread_id, as_of=as_of)


def set_lifetime(tx: Tx, thread_id: str, lifetime: Lifetime | None) -> None:
    """How long the thread is kept, counted from now; None keeps it for good."""
    tx.change(_SET_LIFETIME, id=thread_id, **_lifetime(tx, lifetime))


def expired(tx: Tx, limit: int) -> list[tuple[str, str]]:
    """Tenant and id of threads whose time is over and that nothing runs on. Needs a transaction across tenants."""
    return [(row.tenant_id, row.thread_id) for row in tx.all(_EXPIRED, now=tx.now(), limit=limit)]


def remove(tx: Tx, thread_id: str) -> bool:
    """The thread with its runs, answers and checkpoints. What it asked is closed; items are kept."""
    asking.end(tx, thread_id)
    return [tx.change(statement, id=thread_id) for statement in _DELETE][-1] == 1


def thread_of(row: Row[Any]) -> Thread:
    return Thread(
        id=row.thread_id,
        status=ThreadStatus(row.status),
        metadata=row.metadata,
        config=row.config,
        values=row.values,
        interrupts=row.interrupts,
        error=row.error,
        next=row.next,
        shown=row.shown,
        created_at=row.created_at,
        updated_at=row.updated_at,
        state_updated_at=row.state_updated_at,
        ttl_minutes=row.ttl_minutes,
        ttl_strategy=row.ttl_strategy,
        expires_at=row.expires_at,
    )


def _lifetime(tx: Tx, lifetime: Lifetime | None) -> dict[str, Any]:
    if lifetime is None:
        return {"minutes": None, "strategy": None, "until": None}
    return {"minutes": lifetime.minutes, "strategy": lifetime.strategy, "until": lifetime.ends(tx.now())}


def _indexed(metadata: Mapping[str, Any]) -> dict[str, str | None]:
    """The two keys clients search by, as columns of their own."""
    found = {name: metadata.get(name) for name in ("graph_id", "assistant_id")}
    return {name: value if isinstance(value, str) else None for name, value in found.items()}
