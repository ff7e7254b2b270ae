"""Assistants as rows: one with the current version, and one for every version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, Select, Table, bindparam, delete, func, select, update

from assent.identity.rows.visibility import is_visible
from assent.kernel.store import sizes
from assent.kernel.store.containment import contains
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, assistant_versions, assistants
from assent.kernel.store.transaction import Tx
from assent.threads.model.assistants import Assistant, AssistantVersion, Query

SortBy = Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"]

_ALL = select(assistants).where(assistants.c.tenant_id == TENANT)
_ONE = _ALL.where(assistants.c.assistant_id == bindparam("id"))
_BY_ID = Prepared(_ONE)
_LOCK = _ONE.with_for_update()
_VERSIONS = select(assistant_versions).where(
    assistant_versions.c.tenant_id == TENANT, assistant_versions.c.assistant_id == bindparam("id")
)
_VERSION = _VERSIONS.where(assistant_versions.c.version == bindparam("number"))
_NEWEST = select(func.max(assistant_versions.c.version)).where(
    assistant_versions.c.tenant_id == TENANT, assistant_versions.c.assistant_id == bindparam("id")
)
_FEWER = "use a smaller `limit`"
_CONTENT = ("graph_id", "name", "description", "config", "context", "metadata")
_SET = (
    update(assistants)
    .where(assistants.c.tenant_id == TENANT, assistants.c.assistant_id == bindparam("id"))
    .values({name: bindparam(f"new_{name}") for name in ("version", *_CONTENT, "updated_at")})
)
_SET_VERSION = (
    update(assistant_versions)
    .where(
        assistant_versions.c.tenant_id == TENANT,
        assistant_versions.c.assistant_id == bindparam("id"),
        assistant_versions.c.version == bindparam("number"),
    )
    .values({name: bindparam(f"new_{name}") for name in _CONTENT})
)
_DELETE = [
    delete(table).where(table.c.tenant_id == TENANT, table.c.assistant_id == bindparam("id"))
    for table in (assistant_versions, assistants)
]


def insert(tx: Tx, assistant: Assistant) -> bool:
    """False where the id is taken."""
    content = _content(assistant)
    facts = {name: getattr(assistant, name) for name in ("version", "owner", "created_at", "updated_at")}
    if not tx.insert_new(assistants, assistant_id=assistant.id, **facts, **content):
        return False
    add_version(tx, assistant)
    return True


def get(tx: Tx, assistant_id: str) -> Assistant | None:
    return _assistant(tx.first(_BY_ID, id=assistant_id))


def lock(tx: Tx, assistant_id: str) -> Assistant | None:
    """As `get`, with a lock until this transaction ends."""
    return _assistant(tx.first(_LOCK, id=assistant_id))


def put_in_force(tx: Tx, assistant: Assistant) -> None:
    facts = {"new_version": assistant.version, "new_updated_at": assistant.updated_at}
    tx.change(_SET, id=assistant.id, **facts, **_content(assistant, "new_"))


def add_version(tx: Tx, assistant: Assistant) -> None:
    """Stores the assistant's current state as a permanent version."""
    facts = {"assistant_id": assistant.id, "version": assistant.version, "created_at": assistant.updated_at}
    tx.insert(assistant_versions, **facts, **_content(assistant))


def correct(tx: Tx, assistant: Assistant) -> None:
    """Changes the current version itself, when the server updates a graph's own assistant."""
    put_in_force(tx, assistant)
    tx.change(_SET_VERSION, id=assistant.id, number=assistant.version, **_content(assistant, "new_"))


def remove(tx: Tx, assistant_id: str) -> None:
    """With all its versions. Lock it first, so that no version is added in the meantime."""
    for statement in _DELETE:
        tx.change(statement, id=assistant_id)


def newest_version(tx: Tx, assistant_id: str) -> int:
    row = tx.first(_NEWEST, id=assistant_id)
    return row[0] or 0 if row else 0


def version(tx: Tx, assistant_id: str, number: int) -> AssistantVersion | None:
    row = tx.first(_VERSION, id=assistant_id, number=number)
    return None if row is None else _version(row)


def versions(
    tx: Tx, assistant_id: str, *, metadata: Mapping[str, Any], limit: int, offset: int
) -> list[AssistantVersion]:
    """The newest first."""
    statement = _VERSIONS.order_by(assistant_versions.c.version.desc()).limit(limit).offset(offset)
    if metadata:
        statement = statement.where(contains(assistant_versions.c.metadata, metadata, tx.dialect))
    sizes.require_page(tx, statement, _large(assistant_versions), hint=_FEWER, id=assistant_id)
    return [_version(row) for row in tx.all(statement, id=assistant_id)]


def search(
    tx: Tx,
    query: Query,
    graphs: Collection[str],
    *,
    sort_by: SortBy = "created_at",
    descending: bool = True,
    limit: int,
    offset: int,
) -> tuple[list[Assistant], int]:
    """One page of the assistants of these graphs that match the query, and the number of all matches."""
    wanted = _wanted(tx, query, graphs)
    order = _order(sort_by, descending)
    statement = wanted.order_by(*order).limit(limit).offset(offset)
    sizes.require_page(tx, statement, _large(assistants), hint=_FEWER)
    page = tx.all(statement)
    past_the_end = not page and offset
    total = offset + len(page) if len(page) < limit and not past_the_end else _count(tx, wanted)
    return [_from_row(row) for row in page], total


def count(tx: Tx, query: Query, graphs: Collection[str]) -> int:
    return _count(tx, _wanted(tx, query, graphs))


def _large(table: Table) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in ("config", "context", "metadata", "name", "description")]


def _wanted(tx: Tx, query: Query, graphs: Collection[str]) -> Select[Any]:
    statement = _ALL.where(assistants.c.graph_id.in_(graphs))
    if query.graph_id is not None:
        statement = statement.where(assistants.c.graph_id == query.graph_id)
    if query.name:
        statement = statement.where(assistants.c.name.icontains(query.name, autoescape=True))
    if query.metadata:
        statement = statement.where(contains(assistants.c.metadata, query.metadata, tx.dialect))
    if query.visible is not None:
        statement = statement.where(is_visible(assistants, query.visible, tx.dialect))
    return statement


def _order(sort_by: SortBy, descending: bool) -> list[ColumnElement[Any]]:
    column: ColumnElement[Any] = assistants.c[sort_by]
    first = func.lower(column) if sort_by in ("name", "graph_id") else column
    order = (first, assistants.c.assistant_id)
    return [part.desc() if descending else part for part in order]


def _count(tx: Tx, wanted: Select[Any]) -> int:
    row = tx.first(wanted.with_only_columns(func.count()))
    return int(row[0]) if row else 0


def _content(assistant: Assistant, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}": getattr(assistant, name) for name in _CONTENT}


def _assistant(row: Row[Any] | None) -> Assistant | None:
    return None if row is None else _from_row(row)


def _from_row(row: Row[Any]) -> Assistant:
    return Assistant(updated_at=row.updated_at, owner=row.owner, **_shared(row))


def _version(row: Row[Any]) -> AssistantVersion:
    return AssistantVersion(**_shared(row))


def _shared(row: Row[Any]) -> dict[str, Any]:
    facts = {"id": row.assistant_id, "version": row.version, "created_at": row.created_at}
    return facts | {name: getattr(row, name) for name in _CONTENT}
