"""Threads as rows. `lock` serialises all changes to a thread's runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, bindparam, delete, func, null, select, tuple_, update

from assent.kernel.quotas import quotas
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import (
    TENANT,
    checkpoint_parts,
    checkpoint_writes,
    checkpoints,
    contributors,
    runs,
    thread_values,
    threads,
)
from assent.kernel.store.transaction import Tx
from assent.threads.model.threads import Interrupts, Lifetime, Thinning, Thread, ThreadStatus, Visibility
from assent.threads.rows import thread_values as whole_values
from assent.threads.rows.holds import UNSETTLED

_THIS_ROW = (threads.c.tenant_id == TENANT, threads.c.thread_id == bindparam("id"))
_ONE = select(*(whole_values.WHOLE if column.name == "values" else column for column in threads.c)).where(*_THIS_ROW)
_BY_ID = Prepared(_ONE)
_LOCK = Prepared(_ONE.with_for_update())
_WITHOUT_VALUES = select(*(null().label("values") if column.name == "values" else column for column in threads.c))
_ONE_WITHOUT_VALUES = _WITHOUT_VALUES.where(*_THIS_ROW)
_BY_ID_WITHOUT_VALUES = Prepared(_ONE_WITHOUT_VALUES)
_LOCK_WITHOUT_VALUES = Prepared(_ONE_WITHOUT_VALUES.with_for_update())
_OF_RUN = select(runs.c.thread_id).where(runs.c.tenant_id == TENANT, runs.c.run_id == bindparam("run"))
_LOCK_OF_RUN = Prepared(
    _WITHOUT_VALUES.where(
        threads.c.tenant_id == TENANT, threads.c.thread_id == _OF_RUN.scalar_subquery()
    ).with_for_update()
)
_STAMP = Prepared(select(threads.c.graph_id, threads.c.assistant_id).where(*_THIS_ROW))
_TURN_ENDED = bindparam("turn_ended", type_=threads.c.turn_ended_at.type)
_THIS = update(threads).where(*_THIS_ROW)
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
        turn_ended_at=func.coalesce(_TURN_ENDED, threads.c.turn_ended_at),
        updated_at=bindparam("now"),
        state_updated_at=bindparam("now"),
    )
)
_DROP_QUESTIONS = _THIS.values(interrupts=None, next=None)
_SET_SHOWN = _THIS.values(shown=True)
_SET_SHOWN_AS_OF = _SET_SHOWN.where(threads.c.state_updated_at == bindparam("as_of"))
_SET_VISIBILITY = _THIS.values(visibility=bindparam("new_visibility"), updated_at=bindparam("now"))
_SET_LIFETIME = _THIS.values(
    ttl_minutes=bindparam("minutes"), ttl_strategy=bindparam("strategy"), expires_at=bindparam("until")
)
_PAUSED = select(threads.c.tenant_id, threads.c.thread_id).where(
    threads.c.status.in_([ThreadStatus.INTERRUPTED, ThreadStatus.ERROR])
)
_REMOVES = threads.c.ttl_strategy.is_distinct_from(Thinning.KEEP_LATEST)
_DUE = (
    select(threads.c.tenant_id, threads.c.thread_id)
    .where(threads.c.expires_at <= bindparam("now"), threads.c.status != ThreadStatus.BUSY)
    .order_by(threads.c.expires_at)
    .limit(bindparam("limit"))
)
_EXPIRED = _DUE.where(~(_REMOVES & UNSETTLED))
_DELETE = [
    delete(table).where(table.c.tenant_id == TENANT, table.c.thread_id == bindparam("id"))
    for table in (checkpoint_writes, checkpoints, checkpoint_parts, contributors, thread_values, threads)
]


def insert(
    tx: Tx,
    thread_id: str,
    metadata: dict[str, Any],
    *,
    config: dict[str, Any] | None = None,
    created_at: datetime | None = None,
    **columns: Any,
) -> bool:
    """False where the id is taken."""
    quotas.require_thread(tx)
    now = tx.now()
    inserted = tx.insert_new(
        threads,
        thread_id=thread_id,
        status=ThreadStatus.IDLE,
        metadata=metadata,
        config=config or {},
        shown=False,
        created_at=created_at or now,
        updated_at=now,
        **_indexed(metadata),
        **columns,
    )
    if inserted:
        quotas.note_thread(tx)
    return inserted


def get(tx: Tx, thread_id: str, *, values: bool = True) -> Thread | None:
    row = tx.first(_BY_ID if values else _BY_ID_WITHOUT_VALUES, id=thread_id)
    return None if row is None else thread_of(row)


def lock(tx: Tx, thread_id: str, *, values: bool = True) -> Thread | None:
    """Values can be large, and changes to runs do not need them."""
    row = tx.first(_LOCK if values else _LOCK_WITHOUT_VALUES, id=thread_id)
    return None if row is None else thread_of(row)


def lock_of_run(tx: Tx, run_id: str) -> Thread | None:
    """The thread of this run, without its values."""
    row = tx.first(_LOCK_OF_RUN, run=run_id)
    return None if row is None else thread_of(row)


def paused(tx: Tx, tenant: str | None, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
    """Tenant and id of the threads that may wait for a person, after this one. Needs a transaction across tenants."""
    place = tuple_(threads.c.tenant_id, threads.c.thread_id)
    following = _of_tenant(tenant).where(place > after).order_by(threads.c.tenant_id, threads.c.thread_id)
    return [(row.tenant_id, row.thread_id) for row in tx.all(following.limit(limit))]


def count_paused(tx: Tx, tenant: str | None) -> int:
    """Needs a transaction across tenants."""
    row = tx.first(select(func.count()).select_from(_of_tenant(tenant).subquery()))
    return int(row[0]) if row else 0


def _of_tenant(tenant: str | None) -> Select[Any]:
    return _PAUSED if tenant is None else _PAUSED.where(threads.c.tenant_id == tenant)


def bears(tx: Tx, thread_id: str, graph_id: str, assistant_id: str) -> bool:
    """Whether the thread's metadata names this graph and this assistant."""
    row = tx.first(_STAMP, id=thread_id)
    return row is not None and tuple(row) == (graph_id, assistant_id)


def set_status(tx: Tx, thread_id: str, status: ThreadStatus) -> None:
    tx.change(_SET_STATUS, id=thread_id, new_status=status, now=tx.now())


def set_metadata(tx: Tx, thread_id: str, metadata: dict[str, Any]) -> None:
    indexed = _indexed(metadata)
    tx.change(
        _SET_METADATA,
        id=thread_id,
        new_metadata=metadata,
        new_graph=indexed["graph_id"],
        new_assistant=indexed["assistant_id"],
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
    ends_turn: bool = False,
) -> None:
    tx.change(
        _SET_STATE,
        id=thread_id,
        new_status=status,
        new_values=whole_values.put(tx, thread_id, values),
        new_interrupts=interrupts,
        new_error=error,
        new_next=next,
        new_shown=shown,
        turn_ended=tx.now() if ends_turn else None,
        now=tx.now(),
    )


def drop_questions(tx: Tx, thread_id: str) -> None:
    tx.change(_DROP_QUESTIONS, id=thread_id)


def mark_shown(tx: Tx, thread_id: str, *, as_of: datetime | None = None) -> None:
    """Records that a caller has seen the questions: from now on a positional answer can only mean these.

    With `as_of`, the time of the state they were read from, later questions stay unseen.
    """
    if as_of is None:
        tx.change(_SET_SHOWN, id=thread_id)
    else:
        tx.change(_SET_SHOWN_AS_OF, id=thread_id, as_of=as_of)


def set_visibility(tx: Tx, thread_id: str, visibility: Visibility) -> None:
    tx.change(_SET_VISIBILITY, id=thread_id, new_visibility=visibility, now=tx.now())


def set_lifetime(tx: Tx, thread_id: str, lifetime: Lifetime | None) -> None:
    """How long the thread is stored, counted from now; None stores it forever."""
    tx.change(_SET_LIFETIME, id=thread_id, **_lifetime(tx, lifetime))


def expired(tx: Tx, limit: int) -> list[tuple[str, str]]:
    """Tenant and id of expired threads without active runs. A thread that would be removed stays until its gated
    questions are closed and no call is in doubt. Needs a transaction across tenants."""
    return [(row.tenant_id, row.thread_id) for row in tx.all(_EXPIRED, now=tx.now(), limit=limit)]


def remove(tx: Tx, thread_id: str) -> bool:
    """Removes the thread with its runs, answers and checkpoints."""
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
        owner=row.owner,
        visibility=Visibility(row.visibility),
        turn_ended_at=row.turn_ended_at,
    )


def _lifetime(tx: Tx, lifetime: Lifetime | None) -> dict[str, Any]:
    if lifetime is None:
        return {"minutes": None, "strategy": None, "until": None}
    return {"minutes": lifetime.minutes, "strategy": lifetime.strategy, "until": lifetime.ends(tx.now())}


def _indexed(metadata: Mapping[str, Any]) -> dict[str, str | None]:
    """The two keys that clients search by, stored as columns."""
    texts = {name: metadata.get(name) for name in ("graph_id", "assistant_id")}
    return {name: value if isinstance(value, str) else None for name, value in texts.items()}
