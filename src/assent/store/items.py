"""Items as rows. Whoever changes one locks it first; revisions are only ever added."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Table, bindparam, delete, exists, literal_column, select, update

from assent.domain.canonical import Json
from assent.domain.items import Due, Execution, Item, ItemStatus, Revision
from assent.domain.questions import Resolution
from assent.store.prepared import Prepared
from assent.store.tables import TENANT, comments, deliveries, item_links, item_marks, item_revisions, items
from assent.store.transaction import Tx

BELL = "items"
"""Rung by a transaction after which time may have something to do earlier than thought."""

_ALL = select(items).where(items.c.tenant_id == TENANT)
_ONE = _ALL.where(items.c.item_id == bindparam("id"))
_LOCK = _ONE.with_for_update()
_OPEN = _ALL.where(items.c.thread_id == bindparam("thread"), items.c.open).order_by(items.c.created_at)
_OPEN_OF_THREAD = Prepared(_OPEN)
_LOCK_OPEN_OF_THREAD = Prepared(_OPEN.with_for_update())
_OF_THREAD = _ALL.where(items.c.thread_id == bindparam("thread")).order_by(items.c.created_at.desc())
_LATEST_OF_INTERRUPT = (
    _OF_THREAD.where(items.c.interrupt_id == bindparam("interrupt")).order_by(items.c.item_id.desc()).limit(1)
)
_BY_DEDUPE_KEY = _ALL.where(items.c.requester == bindparam("requester"), items.c.dedupe_key == bindparam("key"))
_IN_DOUBT_OF_THREAD = Prepared(
    _ALL.where(items.c.thread_id == bindparam("thread"), items.c.doubt_id.is_not(None), items.c.execution == "in_doubt")
)
_LEFT_IN_DOUBT = _ALL.where(items.c.thread_id == bindparam("thread"), items.c.execution == "in_doubt")
_UNDER_WAY = exists().where(
    deliveries.c.tenant_id == items.c.tenant_id,
    deliveries.c.subject == literal_column("'item:'").concat(items.c.item_id),
    deliveries.c.status.in_([literal_column("'pending'"), literal_column("'sending'")]),
)
_DECIDED_OF_THREAD = Prepared(
    _ALL.where(items.c.thread_id == bindparam("thread"), ~items.c.open, _UNDER_WAY).with_for_update(of=items)
)
_GATED_OF_THREAD = Prepared(
    _ALL.where(
        items.c.thread_id == bindparam("thread"),
        items.c.gated,
        items.c.open | (items.c.execution == "in_doubt") | _UNDER_WAY,
    )
)
_THIS = update(items).where(items.c.tenant_id == TENANT, items.c.item_id == bindparam("this"))
_SET_EXECUTION = _THIS.where(items.c.execution.is_distinct_from(Execution.IN_DOUBT)).values(
    execution=bindparam("new_execution"), updated_at=bindparam("now")
)
_SET_HEARD_OF = _THIS.where(items.c.execution.is_distinct_from(Execution.IN_DOUBT) | items.c.doubt_id.is_(None)).values(
    execution=bindparam("new_execution"), updated_at=bindparam("now")
)
_DUE = (
    select(items.c.tenant_id, items.c.item_id)
    .where(items.c.due_at <= bindparam("now"))
    .order_by(items.c.due_at)
    .limit(bindparam("limit"))
)
_NEXT_DUE = select(items.c.due_at).where(items.c.due_at.is_not(None)).order_by(items.c.due_at).limit(1)
_REVISIONS = (
    select(item_revisions)
    .where(item_revisions.c.tenant_id == TENANT, item_revisions.c.item_id == bindparam("id"))
    .order_by(item_revisions.c.number)
)
_REVISION = _REVISIONS.where(item_revisions.c.number == bindparam("number"))
_COMMENTS = (
    select(comments)
    .where(comments.c.tenant_id == TENANT, comments.c.item_id == bindparam("id"))
    .order_by(comments.c.at, comments.c.comment_id)
)
_LINKS = (
    select(item_links.c.thread_id)
    .where(item_links.c.tenant_id == TENANT, item_links.c.item_id == bindparam("id"))
    .order_by(item_links.c.created_at, item_links.c.thread_id)
)
_UNLINK = delete(item_links).where(
    item_links.c.tenant_id == TENANT,
    item_links.c.item_id == bindparam("id"),
    item_links.c.thread_id == bindparam("thread"),
)
_OWN_MARKS = (
    item_marks.c.tenant_id == TENANT,
    item_marks.c.item_id == bindparam("id"),
    item_marks.c.actor == bindparam("whose"),
)
_MARKS = select(item_marks).where(*_OWN_MARKS)
_FACTS = tuple(name for name in Item.__slots__ if name not in ("id", "status", "resolution", "execution", "due"))


def insert(tx: Tx, item_id: str, revision: Revision, **columns: Any) -> Item:
    now = tx.now()
    tx.insert(
        items,
        item_id=item_id,
        status=ItemStatus.PENDING,
        open=True,
        revision=revision.number,
        hash=revision.hash,
        approvals=0,
        created_at=now,
        updated_at=now,
        **columns,
    )
    add_revision(tx, item_id, revision)
    tx.ring(BELL)
    found = get(tx, item_id)
    assert found is not None
    return found


def add_revision(tx: Tx, item_id: str, revision: Revision) -> None:
    tx.insert(
        item_revisions,
        item_id=item_id,
        number=revision.number,
        hash=revision.hash,
        asked=revision.asked,
        response_schema=revision.response_schema,
        calls=dict(revision.calls),
        edits=dict(revision.edits),
        author=revision.author,
        notes=revision.notes,
        created_at=tx.now(),
    )


def get(tx: Tx, item_id: str) -> Item | None:
    return _found(tx.first(_ONE, id=item_id))


def lock(tx: Tx, item_id: str) -> Item | None:
    return _found(tx.first(_LOCK, id=item_id))


def change(tx: Tx, item: Item, **columns: Any) -> Item:
    """Sets these columns and returns the item as it is now."""
    if isinstance(status := columns.get("status"), ItemStatus):
        columns["open"] = status.open
    if not (columns.keys() <= {"claimed_by", "claimed_until"}):
        columns["updated_at"] = tx.now()
    tx.change(_THIS.values(**columns), this=item.id)
    tx.ring(BELL)
    found = get(tx, item.id)
    assert found is not None
    return found


def set_execution(tx: Tx, item_id: str, execution: Execution, *, heard_of: bool = False) -> bool:
    """False where it stays in doubt: only a person ends that, or the very call that was in doubt is `heard_of` before
    anybody was asked about it."""
    statement = _SET_HEARD_OF if heard_of else _SET_EXECUTION
    return tx.change(statement, this=item_id, new_execution=execution, now=tx.now()) == 1


def open_of_thread(tx: Tx, thread_id: str, *, lock: bool = True) -> list[Item]:
    """Oldest first. Whoever only looks takes no lock, which a transaction that only reads could not."""
    return [item_of(row) for row in tx.all(_LOCK_OPEN_OF_THREAD if lock else _OPEN_OF_THREAD, thread=thread_id)]


def left_in_doubt(tx: Tx, thread_id: str) -> list[Item]:
    """Those with a call that was cut off, whether or not the thread waits to hear about it."""
    return [item_of(row) for row in tx.all(_LEFT_IN_DOUBT, thread=thread_id)]


def in_doubt_of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """Those about which the thread waits to hear how their call has ended."""
    return [item_of(row) for row in tx.all(_IN_DOUBT_OF_THREAD, thread=thread_id)]


def decided_of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """What was decided and is still on its way."""
    return [item_of(row) for row in tx.all(_DECIDED_OF_THREAD, thread=thread_id)]


def gated_of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """What a person has to decide before the thread may be moved, or has decided and can still take back."""
    return [item_of(row) for row in tx.all(_GATED_OF_THREAD, thread=thread_id)]


def latest_of_interrupt(tx: Tx, thread_id: str, interrupt_id: str) -> Item | None:
    return _found(tx.first(_LATEST_OF_INTERRUPT, thread=thread_id, interrupt=interrupt_id))


def by_dedupe_key(tx: Tx, requester: str, key: str) -> Item | None:
    return _found(tx.first(_BY_DEDUPE_KEY, requester=requester, key=key))


def due(tx: Tx, limit: int) -> tuple[list[tuple[str, str]], datetime | None]:
    """Tenant and id of items that time has something to do with now, and when the next one is. Needs a transaction
    across tenants."""
    found = [(row.tenant_id, row.item_id) for row in tx.all(_DUE, now=tx.now(), limit=limit)]
    following = tx.first(_NEXT_DUE)
    return found, following and following[0]


def revisions(tx: Tx, item_id: str) -> list[Revision]:
    return [_revision(row) for row in tx.all(_REVISIONS, id=item_id)]


def revision(tx: Tx, item_id: str, number: int) -> Revision:
    row = tx.first(_REVISION, id=item_id, number=number)
    assert row is not None
    return _revision(row)


def add_comment(tx: Tx, item_id: str, comment_id: str, actor: str, text: str) -> None:
    tx.insert(comments, comment_id=comment_id, item_id=item_id, actor=actor, text=text, at=tx.now())


def comments_of(tx: Tx, item_id: str) -> Sequence[Row[Any]]:
    return tx.all(_COMMENTS, id=item_id)


def link(tx: Tx, item_id: str, thread_id: str) -> bool:
    return tx.insert_new(item_links, item_id=item_id, thread_id=thread_id, created_at=tx.now())


def unlink(tx: Tx, item_id: str, thread_id: str) -> bool:
    return tx.change(_UNLINK, id=item_id, thread=thread_id) == 1


def links_of(tx: Tx, item_id: str) -> list[str]:
    return [row.thread_id for row in tx.all(_LINKS, id=item_id)]


def mark(tx: Tx, item_id: str, actor: str, **columns: Any) -> None:
    """Puts a draft or a snooze of one person on an item."""
    tx.insert_new(item_marks, item_id=item_id, actor=actor, draft=None, snoozed_until=None)
    tx.change(update(item_marks).where(*_OWN_MARKS).values(**columns), id=item_id, whose=actor)


def marks_of(tx: Tx, item_id: str, actor: str) -> tuple[Json, datetime | None]:
    row = tx.first(_MARKS, id=item_id, whose=actor)
    return (None, None) if row is None else (row.draft, row.snoozed_until)


def tables() -> tuple[Table, ...]:
    """Everything that is kept of an item."""
    return (items, item_revisions, item_links, item_marks, comments)


def item_of(row: Row[Any]) -> Item:
    return Item(
        id=row.item_id,
        status=ItemStatus(row.status),
        resolution=Resolution(row.resolution) if row.resolution else None,
        execution=Execution(row.execution) if row.execution else None,
        due=Due(row.due) if row.due else None,
        **{name: getattr(row, name) for name in _FACTS},
    )


def _found(row: Row[Any] | None) -> Item | None:
    return None if row is None else item_of(row)


def _revision(row: Row[Any]) -> Revision:
    return Revision(
        number=row.number,
        asked=row.asked,
        response_schema=row.response_schema,
        calls=row.calls,
        edits=row.edits,
        author=row.author,
        notes=row.notes,
        created_at=row.created_at,
    )
