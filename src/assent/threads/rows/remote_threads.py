"""Threads of deployments as rows: their state when they were last seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.kernel.store.tables import TENANT, remote_threads
from assent.kernel.store.transaction import Tx

_OF = select(remote_threads).where(
    remote_threads.c.tenant_id == TENANT, remote_threads.c.deployment_id == bindparam("deployment")
)
_BY_KEY = select(remote_threads).where(remote_threads.c.tenant_id == TENANT, remote_threads.c.key == bindparam("key"))
_UNSETTLED = _OF.with_only_columns(remote_threads.c.thread_id).where(~remote_threads.c.settled)
_UNSETTLE = (
    update(remote_threads)
    .where(remote_threads.c.tenant_id == TENANT, remote_threads.c.key == bindparam("its_key"))
    .values(settled=False)
)
_SAVE = update(remote_threads).where(
    remote_threads.c.tenant_id == TENANT,
    remote_threads.c.deployment_id == bindparam("deployment"),
    remote_threads.c.thread_id == bindparam("thread"),
)


@dataclass(frozen=True, slots=True)
class RemoteThread:
    """`key` is its id here. `waits`: it had questions. Not `settled`: it has to be read again, even if its version,
    which is the time of its last change there, is the same."""

    deployment_id: str
    thread_id: str
    key: str
    graph_id: str | None
    assistant_id: str | None
    version: str
    waits: bool
    settled: bool


def of_deployment(tx: Tx, deployment_id: str) -> list[RemoteThread]:
    return [_thread(row) for row in tx.all(_OF, deployment=deployment_id)]


def by_key(tx: Tx, key: str) -> RemoteThread | None:
    row = tx.first(_BY_KEY, key=key)
    return None if row is None else _thread(row)


def unsettled(tx: Tx, deployment_id: str) -> list[str]:
    """The threads that have to be read again, even if they seem unchanged."""
    return [row.thread_id for row in tx.all(_UNSETTLED, deployment=deployment_id)]


def unsettle(tx: Tx, key: str) -> None:
    """The deployment has accepted an answer: the thread is read again, to learn whether it took effect."""
    tx.change(_UNSETTLE, its_key=key)


def save(tx: Tx, thread: RemoteThread) -> None:
    """Inserts or updates it. The row is locked until the transaction ends."""
    columns: dict[str, Any] = {
        "graph_id": thread.graph_id,
        "assistant_id": thread.assistant_id,
        "version": thread.version,
        "waits": thread.waits,
        "settled": thread.settled,
        "seen_at": tx.now(),
    }
    identity = {"deployment_id": thread.deployment_id, "thread_id": thread.thread_id}
    if not tx.insert_new(remote_threads, **identity, key=thread.key, **columns):
        tx.change(_SAVE.values(**columns), deployment=thread.deployment_id, thread=thread.thread_id)


def _thread(row: Row[Any]) -> RemoteThread:
    return RemoteThread(
        row.deployment_id,
        row.thread_id,
        row.key,
        row.graph_id,
        row.assistant_id,
        row.version,
        row.waits,
        row.settled,
    )
