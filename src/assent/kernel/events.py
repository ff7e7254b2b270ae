"""The timeline's rows. Append last in a function: it locks the tenant's chain head until the transaction ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any, Protocol

from sqlalchemy import Row, bindparam, delete, func, select, union, update
from sqlalchemy.exc import DBAPIError

from assent.errors import AuditBroken
from assent.kernel import canonical
from assent.kernel.store import faults
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.sizes import text_bytes
from assent.kernel.store.tables import TENANT, event_heads, event_payloads, events
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import ERASED, GENESIS, Event, Head, follow, ranges

LAST_SEQ = 2**63 - 1
BELL = "events"
"""Signalled by every transaction that appends an event, for watchers in this process."""

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
_OF_SUBJECT_BETWEEN = _OF_SUBJECT.where(events.c.seq >= bindparam("first"), events.c.seq < bindparam("before"))
_SIZES_OF_SUBJECT = (
    _ENTRIES.with_only_columns(
        events.c.seq, func.coalesce(text_bytes(event_payloads.c.payload), 0).label("size"), maintain_column_froms=True
    )
    .where(events.c.subject == bindparam("about"), events.c.seq < bindparam("before"))
    .order_by(events.c.seq.desc())
    .limit(bindparam("limit"))
)
_OF_KIND_AFTER = _FROM.where(events.c.subject.like(bindparam("prefix")))
_HASH_AT = select(events.c.hash).where(events.c.tenant_id == TENANT, events.c.seq == bindparam("number"))
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


class Actor(Protocol):
    """A caller with a name for the timeline."""

    @property
    def actor(self) -> str: ...


def append(tx: Tx, actor: Actor | str, kind: str, subject: str, payload: dict[str, Any] | None = None) -> Event:
    """Appends one event to the chain in the caller's transaction, so that the change and its event commit together."""
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
    """Locks the timeline until the transaction ends, for a read and an append that must not interleave."""
    _locked_head(tx)


def head(tx: Tx) -> Head | None:
    row = tx.first(_HEAD)
    if row is not None:
        _require_types(row, {"seq": int, "hash": str})
    return row and Head(row.seq, row.hash)


def hash_at(tx: Tx, seq: int) -> str | None:
    """The hash of one event; None where it is missing."""
    row = tx.first(_HASH_AT, number=seq)
    return None if row is None else str(row.hash)


def strays(tx: Tx) -> list[int]:
    """Payloads without an event. One with the next sequence number would block every append."""
    return [row.seq for row in tx.all(_STRAYS)]


def entries(tx: Tx, *, after: int, limit: int) -> list[Entry]:
    """The chain in order, oldest first, for checking and exporting. AuditBroken where a row has a wrong type: a SQLite
    column accepts any."""
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
    """The newest first, filtered. A kind without a dot includes all below it: `policy` finds `policy.changed`; `text`
    is searched in the payloads."""
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
    """All events of the subject, oldest first."""
    return [_entry(row) for row in tx.all(_OF_SUBJECT, about=subject)]


def newest_of_subject(tx: Tx, subject: str, *, limit: int, before: int | None = None) -> list[Entry]:
    """The last events of the subject, oldest first: as many as fit into an answer, and at least one."""
    before = LAST_SEQ if before is None else before
    sized = tx.all(_SIZES_OF_SUBJECT, about=subject, before=before, limit=limit)
    sums = accumulate(int(row.size) for row in sized)
    fitting = [row.seq for row, so_far in zip(sized, sums, strict=True) if so_far <= tx.limits.answer_bytes]
    if not sized:
        return []
    first = fitting[-1] if fitting else sized[0].seq
    return [_entry(row) for row in tx.all(_OF_SUBJECT_BETWEEN, about=subject, first=first, before=before)]


def after(tx: Tx, seq: int, prefix: str, limit: int) -> list[Entry]:
    """Later events of subjects with the prefix, oldest first."""
    return [_entry(row) for row in tx.all(_OF_KIND_AFTER, after=seq, prefix=f"{prefix}%", limit=limit)]


def tenants(tx: Tx) -> list[str]:
    """All tenants with a timeline, also one whose head is missing. Needs a transaction across tenants."""
    return [row.tenant_id for row in tx.all(_TENANTS)]


def erasable(tx: Tx, *, subject: str | None = None, before: datetime | None = None) -> list[int]:
    """Events with a payload that may be erased; the record of an erasure may not."""
    statement = _ENTRIES.where(event_payloads.c.seq.is_not(None), events.c.kind != ERASED)
    if subject is not None:
        statement = statement.where((events.c.subject == subject) | (events.c.actor == subject))
    if before is not None:
        statement = statement.where(events.c.at < before)
    return [row.seq for row in tx.all(statement.with_only_columns(events.c.seq))]


def erase(tx: Tx, actor: Actor | str, seqs: Iterable[int], *, reason: str) -> int:
    """Deletes these payloads and appends an event about it. The chain still verifies: it holds only their hashes."""
    erased = list(seqs)
    for seq in erased:
        tx.change(_DELETE_PAYLOAD, gone=seq)
    if erased:
        append(tx, actor, ERASED, "events", {"seqs": ranges(erased), "reason": reason})
    return len(erased)


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
