"""Crons as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, Select, bindparam, delete, func, select, true, update

from assent.identity.model.visibility import Visible
from assent.identity.rows.visibility import is_visible
from assent.kernel.store import sizes
from assent.kernel.store.containment import contains
from assent.kernel.store.tables import TENANT, Instant, crons
from assent.kernel.store.transaction import Tx
from assent.threads.model.crons import Completion, Cron, Turn
from assent.threads.model.threads import Visibility

BELL = "crons"
"""Signalled by every change of a due time."""

SortBy = Literal["cron_id", "assistant_id", "thread_id", "next_run_date", "end_time", "created_at", "updated_at"]

_ALL = select(crons).where(crons.c.tenant_id == TENANT)
_THIS = _ALL.where(crons.c.cron_id == bindparam("id"))
_LOCK = _THIS.with_for_update()
_TAKE = _THIS.with_for_update(skip_locked=True)
_CHANGE = update(crons).where(crons.c.tenant_id == TENANT, crons.c.cron_id == bindparam("id"))
_REMOVE = delete(crons).where(crons.c.tenant_id == TENANT, crons.c.cron_id == bindparam("id"))
_NOW = bindparam("now", type_=Instant())
_WAITING = select(crons.c.tenant_id, crons.c.cron_id).where(crons.c.enabled == true())
_DUE = _WAITING.where(crons.c.next_run_at <= _NOW).order_by(crons.c.next_run_at).limit(bindparam("most"))
_LATER = _WAITING.where(crons.c.next_run_at > _NOW).with_only_columns(func.min(crons.c.next_run_at).label("at"))
_COLUMNS = {"next_run_date": "next_run_at"}


@dataclass(frozen=True, slots=True)
class Query:
    assistant_id: str | None = None
    thread_id: str | None = None
    enabled: bool | None = None
    owner: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    visible: Visible | None = None


def insert(tx: Tx, cron: Cron) -> None:
    tx.insert(crons, cron_id=cron.id, created_at=cron.created_at, **_content(cron))
    tx.ring(BELL)


def get(tx: Tx, cron_id: str) -> Cron | None:
    return _cron(tx.first(_THIS, id=cron_id))


def lock(tx: Tx, cron_id: str) -> Cron | None:
    return _cron(tx.first(_LOCK, id=cron_id))


def take(tx: Tx, cron_id: str) -> Cron | None:
    """As `lock`; None where another process has locked it."""
    return _cron(tx.first(_TAKE, id=cron_id))


def put(tx: Tx, cron: Cron) -> None:
    tx.change(_CHANGE.values(**_content(cron)), id=cron.id)
    tx.ring(BELL)


def remove(tx: Tx, cron_id: str) -> None:
    tx.change(_REMOVE, id=cron_id)


def fired(tx: Tx, cron: Cron, turn: Turn, run_id: str, problem: str | None) -> None:
    """Its run for this due time has started."""
    facts = {"last_run_id": run_id, "last_due_at": turn.due}
    missed = {"missed": crons.c.missed + turn.missed, "problem": problem}
    tx.change(_CHANGE.values(next_run_at=turn.following, **facts, **missed), id=cron.id)


def passed(tx: Tx, cron: Cron, turn: Turn, problem: str) -> None:
    """Its due times up to now have no run."""
    missed = {"missed": crons.c.missed + turn.missed, "problem": problem}
    tx.change(_CHANGE.values(next_run_at=turn.following, **missed), id=cron.id)


def due(tx: Tx, most: int) -> tuple[list[tuple[str, str]], datetime | None]:
    """The crons of all tenants that are due, and the next due time after now. Needs a transaction across tenants."""
    rows = tx.all(_DUE, now=tx.now(), most=most)
    following = tx.first(_LATER, now=tx.now())
    return [(row.tenant_id, row.cron_id) for row in rows], following.at if following else None


def search(
    tx: Tx, query: Query, *, sort_by: SortBy = "created_at", descending: bool = True, limit: int, offset: int
) -> tuple[list[Cron], int]:
    """One page, and the number of all matches."""
    column = crons.c[_COLUMNS.get(sort_by, sort_by)]
    order = column.desc().nulls_last() if descending else column.asc().nulls_first()
    page = _matching(tx, query).order_by(order, crons.c.cron_id).limit(limit).offset(offset)
    sizes.require_page(tx, page, [crons.c.payload, crons.c.metadata], hint="use a smaller `limit`")
    return [cron for row in tx.all(page) if (cron := _cron(row))], count(tx, query)


def count(tx: Tx, query: Query) -> int:
    row = tx.first(_matching(tx, query).with_only_columns(func.count()))
    return int(row[0]) if row else 0


def _matching(tx: Tx, query: Query) -> Select[Any]:
    statement = _ALL
    for name in ("assistant_id", "thread_id", "enabled", "owner"):
        wanted = getattr(query, name)
        statement = statement if wanted is None else statement.where(crons.c[name] == wanted)
    if query.metadata:
        statement = statement.where(contains(crons.c.metadata, query.metadata, tx.dialect))
    return statement if query.visible is None else statement.where(is_visible(crons, query.visible, tx.dialect))


_SAME = (
    *("assistant_id", "thread_id", "owner", "visibility", "mandate", "schedule", "timezone", "end_time", "enabled"),
    *("on_run_completed", "payload", "metadata", "next_run_at", "updated_at", "missed", "problem"),
)


def _content(cron: Cron) -> dict[str, Any]:
    return {name: getattr(cron, name) for name in _SAME}


def _cron(row: Row[Any] | None) -> Cron | None:
    if row is None:
        return None
    facts = {name: getattr(row, name) for name in (*_SAME, "created_at", "last_run_id", "last_due_at")}
    facts["on_run_completed"] = Completion(row.on_run_completed) if row.on_run_completed else None
    return Cron(id=row.cron_id, **{**facts, "visibility": Visibility(row.visibility)})
