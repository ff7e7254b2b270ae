"""Long-term memory as rows: what graphs keep beyond their threads, by namespace and key.

A namespace is kept as text with a dot after every label, so that everything below it is one range of the primary key.
What has outlived its time is not there for anyone any more, whether or not its row has been removed yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Row, and_, bindparam, case, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from assent.store.memory_filters import condition
from assent.store.tables import TENANT, Instant, memories
from assent.store.transaction import Tx

Namespace: TypeAlias = tuple[str, ...]

_END = "."
_AFTER_END = "/"  # the next character: no namespace below another one sorts after it


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
    """Something to be kept, or, without a value, to be forgotten. It stays for `ttl_minutes`, or for good."""

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
    """Those in the namespace and below it whose values match, the latest first."""
    columns = memories.c
    found = _OURS.where(*_below(below), *condition(columns.value, wanted, tx.dialect))
    ordered = found.order_by(columns.updated_at.desc(), columns.namespace, columns.key)
    return [_memory(row) for row in tx.all(ordered.limit(limit).offset(offset), now=tx.now())]


def namespaces(tx: Tx, below: Namespace = ()) -> list[Namespace]:
    """Those that hold something, in no order."""
    return [_labels(row.namespace) for row in tx.all(_NAMESPACES.where(*_below(below)), now=tx.now())]


def put(tx: Tx, puts: Iterable[Put]) -> None:
    """Of several for one key the last counts. Always in one order, so that two processes cannot deadlock."""
    wanted = {(_text(one.namespace), one.key): one for one in puts}
    for (namespace, key), one in sorted(wanted.items(), key=lambda item: item[0]):
        if one.value is None:
            tx.change(_REMOVE, in_namespace=namespace, with_key=key)
        else:
            kept = {"namespace": namespace, "key": key, "value": dict(one.value), "ttl_minutes": one.ttl_minutes}
            tx.change(_upsert(tx.dialect), **kept, now=tx.now(), expires_at=_ends(one.ttl_minutes, tx.now()))


def refresh(tx: Tx, read: Sequence[Memory]) -> None:
    """Those that were read, and have only some time, get all of it again."""
    for one in read:
        until = _ends(one.ttl_minutes, tx.now())
        named = {"in_namespace": _text(one.namespace), "with_key": one.key}
        tx.change(_REFRESH, **named, ttl=one.ttl_minutes, until=until, now=tx.now())


def delete_expired(tx: Tx) -> int:
    """Of all tenants. Needs a transaction across them."""
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
    """What replaces something that has outlived its time is new, not changed."""
    into = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(memories)
    given = {name: bindparam(name, type_=memories.c[name].type) for name in ("namespace", "key", "value")}
    kept = {name: bindparam(name, type_=memories.c[name].type) for name in ("ttl_minutes", "expires_at")}
    new = into.values(tenant_id=TENANT, **given, **kept, created_at=_NOW, updated_at=_NOW)
    created = case((memories.c.expires_at <= new.excluded.updated_at, _NOW), else_=memories.c.created_at)
    changed = {name: new.excluded[name] for name in ("value", "ttl_minutes", "expires_at", "updated_at")}
    return new.on_conflict_do_update(
        index_elements=["tenant_id", "namespace", "key"],
        set_={**changed, "created_at": created},
        where=and_(memories.c.tenant_id == TENANT, new.excluded.tenant_id == TENANT),
    )
