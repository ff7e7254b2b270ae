"""The timeline's rows. Append last in a function: it locks the tenant's chain head until the transaction ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, select, union, update
from sqlalchemy.exc import DBAPIError

from assent.domain import canonical
from assent.domain.access import Principal
from assent.domain.timeline import ERASED, GENESIS, Event, Head, follow, ranges
from assent.errors import AuditBroken
from assent.store import faults
from assent.store.paging import Keyset, Page
from assent.store.tables import TENANT, event_heads, event_payloads, events
from assent.store.transaction import Tx

BELL = "events"
"""Rung by every transaction that has something to tell, for those who watch from this process."""

Entry = tuple[Event, str | None]
"""An event with its payload's canonical text, or None where that was erased."""

_HEAD = select(event_heads.c.seq, event_heads.c.hash).where(event_heads.c.tenant_id == TENANT)
_LOCK_HEAD = _HEAD.with_for_update()
_MOVE_HEAD = (
    update(event_heads)
    .where(event_heads.c.tenant_id == TENANT)
    .values(seq=bindparam("new_seq"), hash=bindparam("new_hash"))
)
_ENTRIES = (
    select(events, event_payloads.c.payload)
    .outerjoin(
        event_payloads, (event_payloads.c.tenant_id == events.c.tenant_id) & (event_payloads.c.seq == events.c.seq)
    )
    .where(events.c.tenant_id == TENANT)
)
_FROM = _ENTRIES.where(events.c.seq > bindparam("after")).order_by(events.c.seq).limit(bindparam("limit"))
_OF_SUBJECT = _ENTRIES.where(events.c.subject == bindparam("about")).order_by(events.c.seq)
_OF_KIND_AFTER = _FROM.where(events.c.subject.like(bindparam("prefix")))
_STRAYS = (
    select(event_payloads.c.seq)
    .outerjoin(events, (events.c.tenant_id == event_payloads.c.tenant_id) & (events.c.seq == event_payloads.c.seq))
    .where(event_payloads.c.tenant_id == TENANT, events.c.seq.is_(None))
    .order_by(event_payloads.c.seq)
    .limit(100)
)
_TENANTS = union(select(event_heads.c.tenant_id), select(events.c.tenant_id)).order_by("tenant_id")
_DELETE_PAYLOAD = delete(event_payloads).where(
    event_payloads.c.tenant_id == TENANT, event_payloads.c.seq == bindparam("gone")
)
_TYPES = dict.fromkeys(Event.__slots__[1:], str) | {"seq": int, "at": datetime, "payload": str | None}
_BY_SEQ = Keyset((events.c.seq,), descending=True)


def append(tx: Tx, actor: Principal | str, kind: str, subject: str, payload: dict[str, Any] | None = None) -> Event:
    """Adds one event to the chain in the caller's transaction: what it tells and the telling commit together."""
    name = actor if isinstance(actor, str) else actor.actor
    text = canonical.text(payload or {})
    event = follow(
        _locked_head(tx), tenant=tx.tenant, at=tx.now(), kind=kind, actor=name, subject=subject, payload=text
    )
    tx.insert(events, **_columns(event))
    tx.insert(event_payloads, seq=event.seq, payload=text)
    tx.change(_MOVE_HEAD, new_seq=event.seq, new_hash=event.hash)
    tx.ring(BELL)
    return event


def lock(tx: Tx) -> None:
    """Holds the timeline until the transaction ends: for what must be read and told by one at a time."""
    _locked_head(tx)


def head(tx: Tx) -> Head | None:
    row = tx.first(_HEAD)
    if row is not None:
        _require_types(row, {"seq": int, "hash": str})
    return row and Head(row.seq, row.hash)


def strays(tx: Tx) -> list[int]:
    """Payloads that belong to no event. One with the next number would stop every write that tells of itself."""
    return [row.seq for row in tx.all(_STRAYS)]


def entries(tx: Tx, *, after: int, limit: int) -> list[Entry]:
    """The chain in order, oldest first, for checking and exporting. AuditBroken where a row holds what no event can:
    a SQLite column takes any type."""
    try:
        rows = tx.all(_FROM, after=after, limit=limit)
    except DBAPIError as error:
        raise (faults.translate(error) or AuditBroken(str(error.orig))) from error
    except (OverflowError, TypeError) as error:
        raise AuditBroken(str(error)) from error
    return [_checked_entry(row) for row in rows]


def search(
    tx: Tx,
    *,
    subject: str | None,
    kind: str | None,
    actor: str | None,
    since: datetime | None = None,
    until: datetime | None = None,
    text: str | None = None,
    limit: int,
    cursor: str | None,
) -> Page[Entry]:
    """The newest first, narrowed where asked. A kind without a dot means all below it: `policy` finds `policy.changed`;
    a text is looked for in what the events tell."""
    wanted = {events.c.subject: subject, events.c.actor: actor}
    conditions = [column == value for column, value in wanted.items() if value is not None]
    if kind is not None:
        below = events.c.kind.startswith(f"{kind}.", autoescape=True)
        conditions.append(events.c.kind == kind if "." in kind else (events.c.kind == kind) | below)
    if since is not None:
        conditions.append(events.c.at >= since)
    if until is not None:
        conditions.append(events.c.at < until)
    if text is not None:
        conditions.append(event_payloads.c.payload.icontains(text, autoescape=True))
    return _BY_SEQ.page(tx, _ENTRIES.where(*conditions), _entry, limit=limit, cursor=cursor)


def of_subject(tx: Tx, subject: str) -> list[Entry]:
    """Everything that happened to it, oldest first."""
    return [_entry(row) for row in tx.all(_OF_SUBJECT, about=subject)]


def after(tx: Tx, seq: int, prefix: str, limit: int) -> list[Entry]:
    """What happened to subjects of one kind since, oldest first."""
    return [_entry(row) for row in tx.all(_OF_KIND_AFTER, after=seq, prefix=f"{prefix}%", limit=limit)]


def tenants(tx: Tx) -> list[str]:
    """Every tenant that has a timeline, also one whose head is lost. Needs a transaction across tenants."""
    return [row.tenant_id for row in tx.all(_TENANTS)]


def erasable(tx: Tx, *, subject: str | None = None, before: datetime | None = None) -> list[int]:
    """Events whose payload is still there and may be erased; what tells of an erasure may not."""
    statement = _ENTRIES.where(event_payloads.c.seq.is_not(None), events.c.kind != ERASED)
    if subject is not None:
        statement = statement.where((events.c.subject == subject) | (events.c.actor == subject))
    if before is not None:
        statement = statement.where(events.c.at < before)
    return [row.seq for row in tx.all(statement.with_only_columns(events.c.seq))]


def erase(tx: Tx, actor: Principal | str, seqs: Iterable[int], *, reason: str) -> int:
    """Deletes these payloads and records that it did. The chain still verifies: it holds only their hashes."""
    gone = list(seqs)
    for seq in gone:
        tx.change(_DELETE_PAYLOAD, gone=seq)
    if gone:
        append(tx, actor, ERASED, "events", {"seqs": ranges(gone), "reason": reason})
    return len(gone)


def _locked_head(tx: Tx) -> Head:
    row = tx.first(_LOCK_HEAD)
    if row is None:
        tx.insert_new(event_heads, seq=0, hash=GENESIS)
        row = tx.first(_LOCK_HEAD)
    assert row is not None
    return Head(row.seq, row.hash)


def _columns(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in Event.__slots__ if name != "tenant"}


def _checked_entry(row: Row[Any]) -> Entry:
    _require_types(row, _TYPES)
    return _entry(row)


def _require_types(row: Row[Any], types: Mapping[str, Any]) -> None:
    for name, expected in types.items():
        if not isinstance(getattr(row, name), expected):
            raise AuditBroken(f"{name} is {getattr(row, name)!r}")


def _entry(row: Row[Any]) -> Entry:
    fields = {name: getattr(row, name) for name in Event.__slots__ if name != "tenant"}
    return Event(tenant=row.tenant_id, **fields), row.payload
