"""Long-term memory as rows: values that graphs store beyond their threads, by namespace and key.

A namespace is stored as text with a dot after every label, so that everything below it is one range of the primary key.
An expired memory is never returned, whether or not its row has been deleted yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Delete,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    false,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from assent.errors import Conflict
from assent.identity.model.visibility import Visible, shows
from assent.identity.rows.visibility import is_visible
from assent.kernel.quotas import quotas
from assent.kernel.store import sizes
from assent.kernel.store.tables import TENANT, Instant, memories, memory_vectors, runs, threads
from assent.kernel.store.transaction import Tx
from assent.kernel.store.vectors import Vector, similarity
from assent.threads.model.threads import Visibility
from assent.threads.rows.memory.filters import condition

Namespace: TypeAlias = tuple[str, ...]

LONGEST_MINUTES = 100 * 365 * 24 * 60
"""The longest lifetime."""

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
    owner: str | None = None
    visibility: Visibility = Visibility.SHARED
    score: float | None = None
    """The similarity to a query, from -1 to 1, where one was searched for."""

    def open_to(self, actor: str) -> bool:
        """Whether a program may read and change it through the API."""
        return self.owner in (None, actor) or self.visibility is Visibility.SHARED


@dataclass(frozen=True, slots=True)
class Ownership:
    """The first writer of a memory, and whether other programs see it through the API. Graphs see all memories of
    their tenant."""

    owner: str | None = None
    visibility: Visibility = Visibility.SHARED


NOBODY = Ownership()


@dataclass(frozen=True, slots=True)
class Put:
    """A value to store, or, without a value, a deletion. It is stored for `ttl_minutes`, or forever."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    ttl_minutes: float | None = None
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    """By the path of their text in the value."""
    model: str = ""
    """The embedding of the vectors."""


@dataclass(frozen=True, slots=True)
class Near:
    """A search for the memories that are most similar to a vector of this embedding."""

    vector: Vector
    model: str
    pgvector: bool = False
    """Whether Postgres has the extension."""


_NOW = bindparam("now", type_=Instant())
_NEAR = bindparam("near", type_=memory_vectors.c.vector.type)
_ALIVE = or_(memories.c.expires_at.is_(None), memories.c.expires_at > _NOW)
_IS_THIS = (
    memories.c.tenant_id == TENANT,
    memories.c.namespace == bindparam("in_namespace"),
    memories.c.key == bindparam("with_key"),
)
_GET = select(memories).where(*_IS_THIS)
_REMOVE = delete(memories).where(*_IS_THIS)
_FORGET = delete(memory_vectors).where(
    memory_vectors.c.tenant_id == TENANT,
    memory_vectors.c.namespace == bindparam("in_namespace"),
    memory_vectors.c.key == bindparam("with_key"),
)
_REFRESH = (
    update(memories)
    .where(*_IS_THIS, memories.c.ttl_minutes == bindparam("ttl"), memories.c.expires_at > _NOW)
    .values(expires_at=bindparam("until", type_=Instant()))
)
_OF_RUN = (
    select(runs.c.actor, threads.c.visibility)
    .join(threads, and_(threads.c.tenant_id == runs.c.tenant_id, threads.c.thread_id == runs.c.thread_id))
    .where(runs.c.tenant_id == TENANT, threads.c.tenant_id == TENANT, runs.c.run_id == bindparam("run_id"))
)
_OURS = select(memories).where(memories.c.tenant_id == TENANT, _ALIVE)
_NAMESPACES = select(memories.c.namespace).where(memories.c.tenant_id == TENANT, _ALIVE).distinct()
_DELETE_EXPIRED = delete(memories).where(memories.c.expires_at <= _NOW)


def get(tx: Tx, namespace: Namespace, key: str, visible: Visible | None = None) -> Memory | None:
    row = tx.first(_GET, in_namespace=_text(namespace), with_key=key)
    if row is None or (row.expires_at is not None and row.expires_at <= tx.now()):
        return None
    memory = _memory(row)
    return memory if shows(visible, memory.value, memory.open_to) else None


def search(
    tx: Tx, below: Namespace, wanted: Mapping[str, Any], *, limit: int, offset: int, visible: Visible | None = None
) -> list[Memory]:
    """Memories in and below the namespace whose values match, the latest first."""
    page = _page(tx, below, wanted, limit, offset, visible)
    return [_memory(row) for row in tx.all(page, now=tx.now())]


def require_page(
    tx: Tx, below: Namespace, wanted: Mapping[str, Any], *, limit: int, offset: int, visible: Visible | None = None
) -> None:
    """Refuses a page of a search that exceeds the limit of an answer."""
    page = _page(tx, below, wanted, limit, offset, visible)
    sizes.require_page(tx, page, [memories.c.value], hint="use a smaller `limit`", now=tx.now())


def _page(
    tx: Tx, below: Namespace, wanted: Mapping[str, Any], limit: int, offset: int, visible: Visible | None
) -> Select[Any]:
    columns = memories.c
    matching = _OURS.where(*_below(below), *condition(columns.value, wanted, tx.dialect), *_seen(visible, tx.dialect))
    ordered = matching.order_by(columns.updated_at.desc(), columns.namespace, columns.key)
    return ordered.limit(limit).offset(offset)


def nearest(
    tx: Tx,
    below: Namespace,
    wanted: Mapping[str, Any],
    near: Near,
    *,
    limit: int,
    offset: int,
    visible: Visible | None = None,
    limited: bool = False,
) -> list[Memory]:
    """As `search`, the most similar first; after them those without a vector, the latest first. `limited`: refuses a
    page that exceeds the limit of an answer."""
    page = _ranking(tx, below, wanted, near, visible).limit(limit).offset(offset)
    ranked = tx.all(page, now=tx.now(), near=near.vector, model=near.model)
    if limited:
        tx.limits.require_answer(sum(row.size for row in ranked), len(ranked), hint="use a smaller `limit`")
    matching = [(get(tx, _labels(row.namespace), row.key), row.score) for row in ranked]
    return [replace(memory, score=score) for memory, score in matching if memory is not None]


def _ranking(tx: Tx, below: Namespace, wanted: Mapping[str, Any], near: Near, visible: Visible | None) -> Select[Any]:
    """Of several vectors of a memory the most similar counts. The values are not read: most are not on the page."""
    columns, vectors = memories.c, memory_vectors.c
    best = func.max(similarity(vectors.vector, _NEAR, tx.dialect, pgvector=near.pgvector))
    same = (vectors.tenant_id == TENANT, vectors.namespace == columns.namespace, vectors.key == columns.key)
    score = select(best).where(*same, vectors.model == bindparam("model")).correlate(memories).scalar_subquery()
    size = sizes.total([columns.value]).label("size")
    listed = select(columns.namespace, columns.key, score.label("score"), size, columns.updated_at)
    listed = listed.where(columns.tenant_id == TENANT, _ALIVE, *_below(below))
    listed = listed.where(*condition(columns.value, wanted, tx.dialect), *_seen(visible, tx.dialect))
    ranked = listed.subquery()
    order = (ranked.c.score.desc().nulls_last(), ranked.c.updated_at.desc(), ranked.c.namespace, ranked.c.key)
    return select(ranked.c.namespace, ranked.c.key, ranked.c.score, ranked.c.size).order_by(*order)


def namespaces(tx: Tx, below: Namespace = (), visible: Visible | None = None) -> list[Namespace]:
    """The namespaces with memories, in no order."""
    listed = _NAMESPACES.where(*_below(below), *_seen(visible, tx.dialect))
    return [_labels(row.namespace) for row in tx.all(listed, now=tx.now())]


def ownership(tx: Tx, run_id: str) -> Ownership:
    """Of what a run stores: it belongs to the run's actor, and is as visible as the run's thread."""
    row = tx.first(_OF_RUN, run_id=run_id)
    return NOBODY if row is None else Ownership(row.actor, Visibility(row.visibility))


def put(tx: Tx, puts: Iterable[Put], by: Ownership = NOBODY, visible: Visible | None = None) -> None:
    """Of several for one key the last counts. Always in one order, so that two processes cannot deadlock. A memory that
    is not `visible` is neither replaced, which is a conflict, nor deleted."""
    puts = list(puts)
    if any(entry.value is not None for entry in puts):
        quotas.require_storage(tx)
    latest = {(_text(entry.namespace), entry.key): entry for entry in puts}
    upsert = _upsert(tx.dialect) if visible is None else _upsert_of(visible, tx.dialect)
    for (namespace, key), entry in sorted(latest.items(), key=lambda item: item[0]):
        if entry.value is None:
            tx.change(_removal(visible, tx.dialect), in_namespace=namespace, with_key=key)
        else:
            row = {"namespace": namespace, "key": key, "value": dict(entry.value), "ttl_minutes": entry.ttl_minutes}
            row |= {"owner": by.owner, "visibility": by.visibility.value}
            ends = _ends(entry.ttl_minutes, tx.now())
            if not tx.change(upsert, **row, now=tx.now(), expires_at=ends):
                raise Conflict("another agent stores a private item under this key", hint="use another namespace")
            _put_vectors(tx, namespace, entry)


def _put_vectors(tx: Tx, namespace: str, entry: Put) -> None:
    tx.change(_FORGET, in_namespace=namespace, with_key=entry.key)
    named = {"namespace": namespace, "key": entry.key, "model": entry.model}
    tx.insert_all(memory_vectors, [{**named, "path": path, "vector": each} for path, each in entry.vectors.items()])


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
    return Memory(
        namespace=_labels(row.namespace),
        key=row.key,
        value=row.value,
        created_at=row.created_at,
        updated_at=row.updated_at,
        ttl_minutes=row.ttl_minutes,
        owner=row.owner,
        visibility=Visibility(row.visibility),
    )


def _seen(visible: Visible | None, dialect: str) -> tuple[ColumnElement[bool], ...]:
    return () if visible is None else (is_visible(memories, visible, dialect, memories.c.value),)


def _removal(visible: Visible | None, dialect: str) -> Delete:
    return _REMOVE.where(*_seen(visible, dialect))


@lru_cache(maxsize=2)
def _upsert(dialect: str) -> Any:
    return _upsert_of(None, dialect)


def _upsert_of(visible: Visible | None, dialect: str) -> Any:
    """A value that replaces an expired one is new, not changed."""
    into = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(memories)
    required = {name: bindparam(name, type_=memories.c[name].type) for name in ("namespace", "key", "value")}
    lifetime = {name: bindparam(name, type_=memories.c[name].type) for name in ("ttl_minutes", "expires_at")}
    owned = {name: bindparam(name, type_=memories.c[name].type) for name in ("owner", "visibility")}
    new = into.values(tenant_id=TENANT, **required, **lifetime, **owned, created_at=_NOW, updated_at=_NOW)
    expired = memories.c.expires_at <= new.excluded.updated_at
    first = {"created_at": _NOW, **{name: new.excluded[name] for name in owned}}
    kept = {name: case((expired, value), else_=memories.c[name]) for name, value in first.items()}
    changed = {name: new.excluded[name] for name in ("value", "ttl_minutes", "expires_at", "updated_at")}
    seen = [or_(func.coalesce(expired, false()), *_seen(visible, dialect))] if visible is not None else []
    return new.on_conflict_do_update(
        index_elements=["tenant_id", "namespace", "key"],
        set_={**changed, **kept},
        where=and_(memories.c.tenant_id == TENANT, new.excluded.tenant_id == TENANT, *seen),
    ).execution_options(preserve_rowcount=True)
