"""Checkpoints as rows: the most frequent writes, so in plain SQL, one statement per operation.

Every write of a run is fenced in that same statement: it succeeds only while the run still has the writing attempt, so
a stalled worker's late checkpoint is refused after a takeover.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, select

from assent.kernel import canonical
from assent.kernel.store.tables import TENANT, checkpoint_writes, checkpoints
from assent.kernel.store.transaction import Tx
from assent.threads.model.parts import Part
from assent.threads.rows.state import parts


class Fenced(Exception):
    """This attempt of the run was taken over or ended; its later writes are refused."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a run: the fence of its writes."""

    run_id: str
    number: int


class Stored(NamedTuple):
    checkpoint_id: str
    ns: str
    parent_id: str | None
    type: str
    checkpoint: bytes
    metadata: str
    size: int | None = None
    """The bytes of the state with its parts; None: it has none."""


class Header(NamedTuple):
    """A checkpoint without its state; `size` is that of the state in bytes."""

    checkpoint_id: str
    ns: str
    metadata: str
    size: int


class StoredWrite(NamedTuple):
    task_id: str
    idx: int
    task_path: str
    channel: str
    type: str
    value: bytes


_ASKED = "__interrupt__"
_RESUMED = "__resume__"
_NO_TASK = "00000000-0000-0000-0000-000000000000"
"""LangGraph's id for writes of a command, which belong to no task."""
_FENCE = "EXISTS (SELECT 1 FROM runs WHERE tenant_id = ? AND run_id = ? AND attempt = ? AND status = 'running'{lock})"
_PUT = (
    "INSERT INTO checkpoints (tenant_id, thread_id, ns, checkpoint_id, parent_id, run_id, type, checkpoint, metadata, "
    "size) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE {condition} "
    "ON CONFLICT (tenant_id, thread_id, ns, checkpoint_id) DO UPDATE SET "
    "type = excluded.type, checkpoint = excluded.checkpoint, metadata = excluded.metadata, size = excluded.size"
)
_PUT_WRITE = (
    "INSERT INTO checkpoint_writes "
    "(tenant_id, thread_id, ns, checkpoint_id, run_id, task_id, idx, task_path, channel, type, value) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (tenant_id, thread_id, ns, checkpoint_id, task_id, idx) DO "
)
_DROP_ERROR = (
    "DELETE FROM checkpoint_writes WHERE tenant_id = ? AND thread_id = ? AND ns = ? AND checkpoint_id = ? "
    "AND task_id = ? AND channel = '__error__'"
)
_REPLACE = "UPDATE SET channel = excluded.channel, type = excluded.type, value = excluded.value"
_COLUMNS = "checkpoint_id, ns, parent_id, type, checkpoint, metadata, size"
_LATEST = (
    f"SELECT {_COLUMNS} FROM checkpoints WHERE tenant_id = ? AND thread_id = ? AND ns = ? "  # noqa: S608
    "ORDER BY checkpoint_id DESC LIMIT 1"
)
_AT = f"SELECT {_COLUMNS} FROM checkpoints WHERE tenant_id = ? AND thread_id = ? AND ns = ? AND checkpoint_id = ?"  # noqa: S608
_WRITES = (
    "SELECT task_id, idx, task_path, channel, type, value FROM checkpoint_writes "
    "WHERE tenant_id = ? AND thread_id = ? AND ns = ? AND checkpoint_id = ? ORDER BY task_path, task_id, idx"
)
_OF_THREAD = (checkpoints.c.tenant_id == TENANT, checkpoints.c.thread_id == bindparam("thread_id"))
_HEADER = (*(checkpoints.c[name] for name in ("checkpoint_id", "ns", "metadata", "size")),)
_DELETE_WRITES_OF_RUN = delete(checkpoint_writes).where(
    checkpoint_writes.c.tenant_id == TENANT,
    checkpoint_writes.c.thread_id == bindparam("thread_id"),
    checkpoint_writes.c.run_id == bindparam("run_id"),
)
_DELETE_OF_RUN = delete(checkpoints).where(*_OF_THREAD, checkpoints.c.run_id == bindparam("run_id"))

_HEAD_RUN = (
    select(checkpoints.c.run_id)
    .where(*_OF_THREAD, checkpoints.c.ns == "")
    .order_by(checkpoints.c.checkpoint_id.desc())
    .limit(1)
)
_ASKERS = select(checkpoint_writes.c.task_id, checkpoint_writes.c.run_id).where(
    checkpoint_writes.c.tenant_id == TENANT,
    checkpoint_writes.c.thread_id == bindparam("thread_id"),
    checkpoint_writes.c.ns == bindparam("ns"),
    checkpoint_writes.c.checkpoint_id == bindparam("at"),
    checkpoint_writes.c.channel == _ASKED,
)
_COMMANDED = (
    select(checkpoint_writes.c.task_id)
    .where(
        checkpoint_writes.c.tenant_id == TENANT,
        checkpoint_writes.c.thread_id == bindparam("thread_id"),
        checkpoint_writes.c.ns == "",
        checkpoint_writes.c.checkpoint_id == bindparam("at"),
        checkpoint_writes.c.run_id == bindparam("run_id"),
        checkpoint_writes.c.task_id == _NO_TASK,
        checkpoint_writes.c.channel != _RESUMED,
    )
    .limit(1)
)
_HEADS = (
    select(checkpoints.c.ns, func.max(checkpoints.c.checkpoint_id).label("newest"))
    .where(checkpoints.c.tenant_id == TENANT, checkpoints.c.thread_id == bindparam("thread"))
    .group_by(checkpoints.c.ns)
)


def put(tx: Tx, thread_id: str, stored: Stored, attempt: Attempt | None, new: Collection[Part] = ()) -> None:
    """`new`: the parts of the state that the thread may not have yet."""
    row = (tx.tenant, thread_id, stored.ns, stored.checkpoint_id, stored.parent_id, attempt and attempt.run_id)
    size = len(stored.checkpoint) if stored.size is None else stored.size
    values = (*row, stored.type, stored.checkpoint, stored.metadata, size, *_proof(tx, attempt))
    if tx.sql(_put(tx.dialect, attempt is not None), values).rowcount == 0:
        raise Fenced
    parts.add(tx, thread_id, new)


def put_writes(
    tx: Tx,
    thread_id: str,
    ns: str,
    checkpoint_id: str,
    writes: Sequence[StoredWrite],
    attempt: Attempt | None,
    *,
    replace: bool,
    new: Collection[Part] = (),
) -> None:
    """Drops an earlier error of a task with a question: LangGraph would keep it beside the question."""
    if attempt is not None:
        hold(tx, attempt)
    parts.add(tx, thread_id, new)
    run_id = attempt.run_id if attempt else None
    statement = _placeholders(_PUT_WRITE + (_REPLACE if replace else "NOTHING"), tx.dialect)
    tx.sql(statement, [(tx.tenant, thread_id, ns, checkpoint_id, run_id, *write) for write in writes])
    for write in writes:
        if write.channel == _ASKED:
            at = (tx.tenant, thread_id, ns, checkpoint_id, write.task_id)
            tx.sql(_placeholders(_DROP_ERROR, tx.dialect), at)


def latest(tx: Tx, thread_id: str, ns: str) -> Stored | None:
    row = tx.sql(_placeholders(_LATEST, tx.dialect), (tx.tenant, thread_id, ns)).first()
    return None if row is None else Stored._make(row)


def heads(tx: Tx, thread_id: str) -> str:
    """A hash of the thread's position: the newest checkpoint of the graph and of every subgraph."""
    return canonical.digest(sorted([ns, head] for ns, head in newest(tx, thread_id).items()))


def newest(tx: Tx, thread_id: str) -> dict[str, str]:
    """The newest checkpoint by namespace: of the graph, and of every subgraph."""
    return {row.ns: row.newest for row in tx.all(_HEADS, thread=thread_id)}


def head_run(tx: Tx, thread_id: str) -> str | None:
    """The run that stored the newest checkpoint of the graph; None where an edit of the state did."""
    row = tx.first(_HEAD_RUN, thread_id=thread_id)
    return None if row is None else row.run_id


def askers(tx: Tx, thread_id: str, ns: str, checkpoint_id: str) -> dict[str, str | None]:
    """By task, the run that first asked its question: a later run replaces the question, but not that run."""
    return {row.task_id: row.run_id for row in tx.all(_ASKERS, thread_id=thread_id, ns=ns, at=checkpoint_id)}


def is_commanded(tx: Tx, thread_id: str, run_id: str) -> bool:
    """Whether the newest checkpoint of the graph has the goto or update of the run's command."""
    head = newest(tx, thread_id).get("")
    return head is not None and tx.first(_COMMANDED, thread_id=thread_id, at=head, run_id=run_id) is not None


def at(tx: Tx, thread_id: str, ns: str, checkpoint_id: str) -> Stored | None:
    row = tx.sql(_placeholders(_AT, tx.dialect), (tx.tenant, thread_id, ns, checkpoint_id)).first()
    return None if row is None else Stored._make(row)


def writes_of(tx: Tx, thread_id: str, ns: str, checkpoint_id: str) -> list[StoredWrite]:
    rows = tx.sql(_placeholders(_WRITES, tx.dialect), (tx.tenant, thread_id, ns, checkpoint_id))
    return [StoredWrite._make(row) for row in rows]


def history(tx: Tx, thread_id: str, ns: str | None, *, before: str | None, limit: int | None) -> list[Header]:
    """Newest first, without the states, which can be large."""
    statement = select(*_HEADER).where(*_OF_THREAD)
    if ns is not None:
        statement = statement.where(checkpoints.c.ns == ns)
    if before is not None:
        statement = statement.where(checkpoints.c.checkpoint_id < before)
    rows = tx.all(statement.order_by(checkpoints.c.checkpoint_id.desc()).limit(limit), thread_id=thread_id)
    return [Header._make(row) for row in rows]


def remove_of_run(tx: Tx, thread_id: str, run_id: str) -> None:
    """Rolls a run back: deletes its checkpoints, and its writes to checkpoints of others."""
    tx.change(_DELETE_WRITES_OF_RUN, thread_id=thread_id, run_id=run_id)
    tx.change(_DELETE_OF_RUN, thread_id=thread_id, run_id=run_id)
    parts.sweep(tx, thread_id)


def hold(tx: Tx, attempt: Attempt) -> None:
    """For other writes of a run: this transaction succeeds only while the attempt is current."""
    if tx.sql(_holds(tx.dialect), _proof(tx, attempt)).first() is None:
        raise Fenced


def _proof(tx: Tx, attempt: Attempt | None) -> tuple[Any, ...]:
    return () if attempt is None else (tx.tenant, attempt.run_id, attempt.number)


@lru_cache(maxsize=4)
def _holds(dialect: str) -> str:
    return _placeholders(f"SELECT 1 WHERE {_FENCE.format(lock=_lock(dialect))}", dialect)


@lru_cache(maxsize=4)
def _put(dialect: str, fenced: bool) -> str:
    condition = _FENCE.format(lock=_lock(dialect)) if fenced else "true"
    return _placeholders(_PUT.format(condition=condition), dialect)


def _lock(dialect: str) -> str:
    """On Postgres the fence is a row lock too: a takeover waits for the end of this write."""
    return " FOR SHARE" if dialect == "postgresql" else ""


@lru_cache(maxsize=64)
def _placeholders(statement: str, dialect: str) -> str:
    return statement.replace("?", "%s") if dialect == "postgresql" else statement
