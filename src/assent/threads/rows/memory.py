"""Long-term memory as rows: values that graphs store beyond their threads, by namespace and key.

A namespace is stored as text with a dot after every label, so that everything below it is one range of the primary key.
An expired memory is never returned, whether or not its row has been deleted yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Row, and_, bindparam, case, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from assent.kernel.quotas import quotas
from assent.kernel.store.tables import TENANT, Instant, memories
from assent.kernel.store.transaction import Tx
from assent.threads.rows.memory_filters import condition

Namespace: TypeAlias = tuple[str, ...]

_END = "."
_AFTER_END = "/"  # the next character: no namespace below another one sorts after it


@dataclass(frozen=True, slots=True)
class MemorySection:
    """How long memories are stored, in minutes, where a graph does not set a lifetime."""

    default_ttl: float | None = None
    refresh_on_read: bool = True


@dataclass(frozen=True, slots=True)
class Memory:
    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """A value to store, or, without a value, a deletion. It is stored for `ttl_minutes`, or forever."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    ttl_minutes: float | None = None


_NOW = bindparam("now", type_=Instant())
_ALIVE = or_(memories.c.expires_at.is_(None), memories.c.expires_at > _NOW)
_IS_THIS = (
    memories.c.tenant_id == TENANT,
    memories.c.namespace == bindparam("in_namespace"),
    memories.c.key == bindparam("with_key"),
)
_GET = select(memories).where(*_IS_THIS)
_REMOVE = delete(memories).where(*_IS_THIS)
_REFRESH = (
    update(memories)
    .where(*_IS_THIS, memories.c.ttl_minutes == bindparam("ttl"), memories.c.expires_at > _NOW)
    .values(expires_at=bindparam("until", type_=Instant()))
)
_OURS = select(memories).where(memories.c.tenant_id == TENANT, _ALIVE)
_NAMESPACES = select(memories.c.namespace).where(memories.c.tenant_id == TENANT, _ALIVE).distinct()
_DELETE_EXPIRED = delete(memories).where(memories.c.expires_at <= _NOW)


def get(tx: Tx, namespace: Namespace, key: str) -> Memory | None:
    row = tx.first(_GET, in_namespace=_text(namespace), with_key=key)
    if row is None or (row.expires_at is not None and row.expires_at <= tx.now()):
        return None
    return _memory(row)


def search(tx: Tx, below: Namespace, wanted: Mapping[str, Any], *, limit: int, offset: int) -> list[Memory]:
    """Memories in and below the namespace whose values match, the latest first."""
    columns = memories.c
    matching = _OURS.where(*_below(below), *condition(columns.value, wanted, tx.dialect))
    ordered = matching.order_by(columns.updated_at.desc(), columns.namespace, columns.key)
    return [_memory(row) for row in tx.all(ordered.limit(limit).offset(offset), now=tx.now())]


def namespaces(tx: Tx, below: Namespace = ()) -> list[Namespace]:
    """The namespaces with memories, in no order."""
    return [_labels(row.namespace) for row in tx.all(_NAMESPACES.where(*_below(below)), now=tx.now())]


def put(tx: Tx, puts: Iterable[Put]) -> None:
    """Of several for one key the last counts. Always in one order, so that two processes cannot deadlock."""
    puts = list(puts)
    if any(entry.value is not None for entry in puts):
        quotas.require_storage(tx)
    latest = {(_text(entry.namespace), entry.key): entry for entry in puts}
    for (namespace, key), entry in sorted(latest.items(), key=lambda item: item[0]):
        if entry.value is None:
            tx.change(_REMOVE, in_namespace=namespace, with_key=key)
        else:
            row = {"namespace": namespace, "key": key, "value": dict(entry.value), "ttl_minutes": entry.ttl_minutes}
            tx.change(_upsert(tx.dialect), **row, now=tx.now(), expires_at=_ends(entry.ttl_minutes, tx.now()))


def refresh(tx: Tx, read: Sequence[Memory]) -> None:
    """Restarts the lifetime of memories that were read."""
    for memory in read:
        until = _ends(memory.ttl_minutes, tx.now())
        named = {"in_namespace": _text(memory.namespace), "with_key": memory.key}
        tx.change(_REFRESH, **named, ttl=memory.ttl_minutes, until=until, now=tx.now())


def delete_expired(tx: Tx) -> int:
    """Needs a transaction across tenants."""
    return tx.change(_DELETE_EXPIRED, now=tx.now())


def _ends(ttl_minutes: float | None, now: datetime) -> datetime | None:
    return None if ttl_minutes is None else now + timedelta(minutes=ttl_minutes)


def _below(namespace: Namespace) -> tuple[ColumnElement[bool], ...]:
    if not namespace:
        return ()
    first = _text(namespace)
    return memories.c.namespace >= first, memories.c.namespace < first[:-1] + _AFTER_END


def _text(namespace: Namespace) -> str:
    return "".join(f"{label}{_END}" for label in namespace)


def _labels(text: str) -> Namespace:
    return tuple(text.split(_END)[:-1])


def _memory(row: Row[Any]) -> Memory:
    return Memory(_labels(row.namespace), row.key, row.value, row.created_at, row.updated_at, row.ttl_minutes)


@lru_cache(maxsize=2)
def _upsert(dialect: str) -> Any:
    """A value that replaces an expired one is new, not changed."""
    into = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(memories)
    required = {name: bindparam(name, type_=memories.c[name].type) for name in ("namespace", "key", "value")}
    lifetime = {name: bindparam(name, type_=memories.c[name].type) for name in ("ttl_minutes", "expires_at")}
    new = into.values(tenant_id=TENANT, **required, **lifetime, created_at=_NOW, updated_at=_NOW)
    created = case((memories.c.expires_at <= new.excluded.updated_at, _NOW), else_=memories.c.created_at)
    changed = {name: new.excluded[name] for name in ("value", "ttl_minutes", "expires_at", "updated_at")}
    return new.on_conflict_do_update(
        index_elements=["tenant_id", "namespace", "key"],
        set_={**changed, "created_at": created},
        where=and_(memories.c.tenant_id == TENANT, new.excluded.tenant_id == TENANT),
    )
