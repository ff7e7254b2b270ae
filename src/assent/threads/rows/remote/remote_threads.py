"""Threads of deployments as rows: their state when they were last seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, bindparam, or_, select, update

from assent.kernel.store.tables import TENANT, remote_threads
from assent.kernel.store.transaction import Tx

_OF = select(remote_threads).where(
    remote_threads.c.tenant_id == TENANT, remote_threads.c.deployment_id == bindparam("deployment")
)
_ONE = _OF.where(remote_threads.c.thread_id == bindparam("thread"))
_BY_KEY = select(remote_threads).where(remote_threads.c.tenant_id == TENANT, remote_threads.c.key == bindparam("key"))
_UNSETTLED = _OF.with_only_columns(remote_threads.c.thread_id).where(~remote_threads.c.settled)
_OF_KEY = update(remote_threads).where(
    remote_threads.c.tenant_id == TENANT, remote_threads.c.key == bindparam("its_key")
)
_UNSETTLE = _OF_KEY.values(settled=False)
_TAKE_TURN = _OF_KEY.where(
    or_(
        remote_threads.c.turn_until.is_(None),
        remote_threads.c.turn_until <= bindparam("now", type_=remote_threads.c.turn_until.type),
        remote_threads.c.turn == bindparam("taker"),
    )
).values(turn=bindparam("taker"), turn_until=bindparam("until"))
_END_TURN = _OF_KEY.where(remote_threads.c.turn == bindparam("taker")).values(turn=None, turn_until=None)
_SAVE = update(remote_threads).where(
    remote_threads.c.tenant_id == TENANT,
    remote_threads.c.deployment_id == bindparam("deployment"),
    remote_threads.c.thread_id == bindparam("thread"),
    remote_threads.c.key == bindparam("its_key"),
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


def get(tx: Tx, deployment_id: str, thread_id: str) -> RemoteThread | None:
    row = tx.first(_ONE, deployment=deployment_id, thread=thread_id)
    return None if row is None else _thread(row)


def unsettled(tx: Tx, deployment_id: str) -> list[str]:
    """The threads that have to be read again, even if they seem unchanged."""
    return [row.thread_id for row in tx.all(_UNSETTLED, deployment=deployment_id)]


def unsettle(tx: Tx, key: str) -> None:
    """The deployment has accepted an answer: the thread is read again, to learn whether it took effect."""
    tx.change(_UNSETTLE, its_key=key)


def take_turn(tx: Tx, key: str, delivery_id: str, lease: timedelta) -> bool:
    """Whether this delivery may answer on the thread now, until it ends its turn or the lease is over."""
    now = tx.now()
    return tx.change(_TAKE_TURN, its_key=key, taker=delivery_id, now=now, until=now + lease) == 1


def end_turn(tx: Tx, key: str, delivery_id: str) -> None:
    tx.change(_END_TURN, its_key=key, taker=delivery_id)


def save(tx: Tx, thread: RemoteThread) -> bool:
    """Inserts or updates it; False where it is stored under another key. The row is locked until the transaction
    ends."""
    columns: dict[str, Any] = {
        "graph_id": thread.graph_id,
        "assistant_id": thread.assistant_id,
        "version": thread.version,
        "waits": thread.waits,
        "settled": thread.settled,
        "seen_at": tx.now(),
    }
    identity = {"deployment_id": thread.deployment_id, "thread_id": thread.thread_id}
    if tx.insert_new(remote_threads, **identity, key=thread.key, **columns):
        return True
    named = {"deployment": thread.deployment_id, "thread": thread.thread_id, "its_key": thread.key}
    return tx.change(_SAVE.values(**columns), **named) == 1


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
