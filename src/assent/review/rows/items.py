"""Items as rows. A change locks the row first; revisions are append-only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Row, Table, Update, bindparam, delete, func, literal_column, null, select, update

from assent.kernel import jsontext
from assent.kernel.canonical import Json
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.sizes import text_bytes
from assent.kernel.store.tables import (
    NEVER,
    TENANT,
    comments,
    item_links,
    item_marks,
    item_revisions,
    item_texts,
    items,
    mentions,
)
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Due, Execution, Item, ItemStatus, Revision
from assent.review.model.policies import Risk
from assent.review.model.questions import Resolution
from assent.threads.rows.holds import UNDER_WAY

BELL = "items"
"""Rung by a transaction that may bring a deadline forward."""

COLUMNS = [column for column in items.c if column is not items.c.secrets]
"""The columns of an item. Its secrets are read separately, where a text is masked."""

RISK_RANKS = {risk.value: rank for rank, risk in enumerate(Risk, start=1)}
_ALL = select(*COLUMNS).where(items.c.tenant_id == TENANT)
_ONE = _ALL.where(items.c.item_id == bindparam("id"))
_LOCK = _ONE.with_for_update()
_OPEN = _ALL.where(items.c.thread_id == bindparam("thread"), items.c.open).order_by(items.c.created_at)
_OPEN_OF_THREAD = Prepared(_OPEN)
_LOCK_OPEN_OF_THREAD = Prepared(_OPEN.with_for_update())
_OPEN_OF_DEPLOYMENT = (
    _ALL.where(items.c.deployment == bindparam("deployment"), items.c.open).order_by(items.c.item_id).with_for_update()
)
_CLAIMED_BY = _ALL.where(items.c.claimed_by == bindparam("whose"), items.c.open).order_by(items.c.item_id)
_ROUTED_TO = _ALL.where(items.c.recipient == bindparam("whose"), items.c.routing.is_not(null()), items.c.open).order_by(
    items.c.item_id
)
_OWNED_BY = _ALL.where(items.c.owner == bindparam("whose"), items.c.open).order_by(items.c.item_id)
_OF_THREAD = _ALL.where(items.c.thread_id == bindparam("thread")).order_by(items.c.created_at.desc())
_LATEST_OF_INTERRUPT = (
    _OF_THREAD.where(items.c.interrupt_id == bindparam("interrupt"))
    .where(items.c.origin.is_not_distinct_from(bindparam("where_from")))
    .order_by(items.c.item_id.desc())
    .limit(1)
)
_BY_DEDUPE_KEY = _ALL.where(items.c.requester == bindparam("requester"), items.c.dedupe_key == bindparam("key"))
_OF_ORIGIN = (
    select(items.c.thread_id).where(items.c.tenant_id == TENANT, items.c.origin == bindparam("where_from")).limit(1)
)
_OPEN_OF_GATES = (
    _ALL.where(items.c.deployment == bindparam("deployment"), items.c.origin.is_not(None), items.c.open)
    .order_by(items.c.item_id)
    .with_for_update()
)
_BY_WORKSPACE_RUN = _ALL.where(items.c.workspace_run_id == bindparam("run"))
_WORKSPACE_REVIEW_BY = (
    _ALL.where(items.c.type == "workspace_review", items.c.run_id == bindparam("run"))
    .order_by(items.c.created_at.desc(), items.c.item_id.desc())
    .limit(1)
)
_IN_DOUBT_OF_THREAD = Prepared(
    _ALL.where(items.c.thread_id == bindparam("thread"), items.c.doubt_id.is_not(None), items.c.execution == "in_doubt")
)
_OF_THREAD = _ALL.where(items.c.thread_id == bindparam("thread"))
_SAID = select(items.c.item_id, items.c.title, items.c.summary, items.c.secrets).where(items.c.tenant_id == TENANT)
_FOLLOWING = (
    select(items.c.item_id)
    .where(items.c.tenant_id == TENANT, items.c.thread_id == bindparam("thread"), items.c.follows == bindparam("id"))
    .order_by(items.c.created_at, items.c.item_id)
)
_SAID_ON = Prepared(_SAID.where(items.c.thread_id == bindparam("thread")))
_SAID_IN = Prepared(_SAID.where(items.c.item_id == bindparam("id")))
_LEFT_IN_DOUBT = _ALL.where(items.c.thread_id == bindparam("thread"), items.c.execution == "in_doubt")
_DECIDED_OF_THREAD = Prepared(
    _ALL.where(items.c.thread_id == bindparam("thread"), ~items.c.open, UNDER_WAY).with_for_update(of=items)
)
_GATED_OF_THREAD = Prepared(
    _ALL.where(
        items.c.thread_id == bindparam("thread"),
        items.c.gated,
        items.c.open | (items.c.execution == "in_doubt") | UNDER_WAY,
    )
)
_STOPPED_EVER = (
    select(items.c.item_id)
    .where(items.c.tenant_id == TENANT, items.c.graph_id == bindparam("graph"), items.c.dialect == "breakpoint")
    .limit(1)
)
_THIS = update(items).where(items.c.tenant_id == TENANT, items.c.item_id == bindparam("this"))
_GRANTED_OF_THREAD = Prepared(
    _ALL.where(
        items.c.thread_id == bindparam("thread"), ~items.c.open, items.c.execution == literal_column("'granted'")
    ).with_for_update()
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
_SIZE_OF_COMMENTS = select(func.count().label("number"), func.sum(text_bytes(comments.c.text)).label("size")).where(
    comments.c.tenant_id == TENANT, comments.c.item_id == bindparam("id")
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
_FIELDS = tuple(name for name in Item.__slots__ if name not in ("id", "created_at", "updated_at"))
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
        kind=columns["type"],
        **_ranked({"risk": None, "expires_at": None, **columns}),
    )
    add_revision(tx, item_id, revision)
    _ring(tx, columns)
    item = get(tx, item_id)
    assert item is not None
    return item


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
    return _item_or_none(tx.first(_ONE, id=item_id))


def lock(tx: Tx, item_id: str) -> Item | None:
    return _item_or_none(tx.first(_LOCK, id=item_id))


def change(tx: Tx, item: Item, **columns: Any) -> Item:
    """Sets these columns and returns the item as it is now."""
    if isinstance(status := columns.get("status"), ItemStatus):
        columns["open"] = status.open
    if not (columns.keys() <= {"claimed_by", "claimed_until", "owner"}):
        columns["updated_at"] = tx.now()
    ranked = _ranked(columns)
    tx.change(_setting(frozenset(ranked)), this=item.id, **{f"new_{name}": value for name, value in ranked.items()})
    _ring(tx, columns)
    changed = get(tx, item.id)
    assert changed is not None
    return changed


@lru_cache(maxsize=64)
def _setting(names: frozenset[str]) -> Update:
    return _THIS.values({name: bindparam(f"new_{name}", type_=items.c[name].type) for name in sorted(names)})


def _ring(tx: Tx, columns: Mapping[str, Any]) -> None:
    if columns.get("due_at") is not None:
        tx.ring(BELL)


def _ranked(columns: dict[str, Any]) -> dict[str, Any]:
    """With the columns that only order lists: they follow from risk, expiry and thread."""
    ranked = dict(columns)
    if "risk" in columns:
        ranked["risk_rank"] = RISK_RANKS.get(columns["risk"] or "", 0)
    if "expires_at" in columns:
        ranked["ends_at"] = columns["expires_at"] or NEVER
    if "thread_id" in columns:
        ranked["of_thread"] = columns["thread_id"] or ""
    return ranked


def save(tx: Tx, before: Item, after: Item) -> Item:
    """Stores the fields that differ. `before` is the item as it was locked."""
    changed = {name: getattr(after, name) for name in _FIELDS if getattr(after, name) != getattr(before, name)}
    return change(tx, before, **changed) if changed else before


def granted_of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """Those with a grant that was possibly not used."""
    return [item_of(row) for row in tx.all(_GRANTED_OF_THREAD, thread=thread_id)]


def said_with(tx: Tx, item: Item) -> Sequence[Row[Any]]:
    """Id, title, summary and secrets of all items of the item's thread; without a thread, of the item itself."""
    return said_on(tx, item.thread_id) if item.thread_id is not None else tx.all(_SAID_IN, id=item.id)


def said_on(tx: Tx, thread_id: str) -> Sequence[Row[Any]]:
    return tx.all(_SAID_ON, thread=thread_id)


def secrets_of(tx: Tx, item_id: str) -> set[str] | None:
    """None if the secrets of the item are not stored yet."""
    row = tx.first(_SAID_IN, id=item_id)
    return None if row is None or row.secrets is None else set(row.secrets)


def set_secrets(tx: Tx, item_id: str, secrets: Iterable[str]) -> None:
    tx.change(_THIS.values(secrets=sorted(secrets)), this=item_id)


def set_words(tx: Tx, item_id: str, *, title: str, summary: str) -> None:
    """Updates the texts for lists, without changing `updated_at`."""
    tx.change(_THIS.values(title=title, summary=summary), this=item_id)


def set_kind(tx: Tx, item: Item, kind: str) -> Item:
    """Updates the type that people see, without changing `updated_at`."""
    if kind == item.kind:
        return item
    tx.change(_THIS.values(kind=kind), this=item.id)
    return replace(item, kind=kind)


def open_of_thread(tx: Tx, thread_id: str, *, lock: bool = True) -> list[Item]:
    """Oldest first. `lock=False` is for read-only transactions, which cannot lock."""
    return [item_of(row) for row in tx.all(_LOCK_OPEN_OF_THREAD if lock else _OPEN_OF_THREAD, thread=thread_id)]


def open_of_deployment(tx: Tx, deployment_id: str) -> list[Item]:
    return [item_of(row) for row in tx.all(_OPEN_OF_DEPLOYMENT, deployment=deployment_id)]


def of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """All items of the thread, open and closed."""
    return [item_of(row) for row in tx.all(_OF_THREAD, thread=thread_id)]


def claimed_by(tx: Tx, actor: str) -> list[Item]:
    return [item_of(row) for row in tx.all(_CLAIMED_BY, whose=actor)]


def routed_to(tx: Tx, actor: str) -> list[Item]:
    """The open workspace reviews in the list of this person."""
    return [item_of(row) for row in tx.all(_ROUTED_TO, whose=actor)]


def owned_by(tx: Tx, actor: str) -> list[Item]:
    """The open items of this owner."""
    return [item_of(row) for row in tx.all(_OWNED_BY, whose=actor)]


def left_in_doubt(tx: Tx, thread_id: str) -> list[Item]:
    """Those with an interrupted call, whether or not the thread waits for its outcome."""
    return [item_of(row) for row in tx.all(_LEFT_IN_DOUBT, thread=thread_id)]


def in_doubt_of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """Those with an interrupted call whose outcome the thread waits for."""
    return [item_of(row) for row in tx.all(_IN_DOUBT_OF_THREAD, thread=thread_id)]


def decided_of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """Decided items whose answer is still being delivered."""
    return [item_of(row) for row in tx.all(_DECIDED_OF_THREAD, thread=thread_id)]


def gated_of_thread(tx: Tx, thread_id: str) -> list[Item]:
    """Gated items that are undecided, in doubt, or still being delivered: the thread may not be moved past them."""
    return [item_of(row) for row in tx.all(_GATED_OF_THREAD, thread=thread_id)]


def has_stopped(tx: Tx, graph_id: str) -> bool:
    """Whether any thread of the graph has ever stopped at a breakpoint."""
    return tx.first(_STOPPED_EVER, graph=graph_id) is not None


def latest_of_interrupt(tx: Tx, thread_id: str, interrupt_id: str, origin: str | None = None) -> Item | None:
    """`origin`: that of the gate elsewhere that asks."""
    row = tx.first(_LATEST_OF_INTERRUPT, thread=thread_id, interrupt=interrupt_id, where_from=origin)
    return _item_or_none(row)


def by_dedupe_key(tx: Tx, requester: str, key: str) -> Item | None:
    return _item_or_none(tx.first(_BY_DEDUPE_KEY, requester=requester, key=key))


def thread_of_origin(tx: Tx, origin: str) -> str | None:
    """The thread here of a gate elsewhere that has asked before."""
    row = tx.first(_OF_ORIGIN, where_from=origin)
    return None if row is None else row.thread_id


def open_of_gates(tx: Tx, deployment_id: str, thread_id: str) -> list[Item]:
    """Those that gates ask on this thread of the deployment."""
    linked = (item_of(row) for row in tx.all(_OPEN_OF_GATES, deployment=deployment_id))
    return [item for item in linked if asked_on(item) == thread_id]


def asked_on(item: Item) -> str | None:
    """The thread of a gate elsewhere, by the name that its process uses."""
    return None if item.origin is None else str(jsontext.load(item.origin)["thread"])


def by_workspace_run(tx: Tx, run_id: str) -> Item | None:
    """The item that reviews the work of this run."""
    return _item_or_none(tx.first(_BY_WORKSPACE_RUN, run=run_id))


def workspace_review_by(tx: Tx, run_id: str) -> Item | None:
    """The latest workspace review that this run asked for: a run that continues another may revise its review."""
    return _item_or_none(tx.first(_WORKSPACE_REVIEW_BY, run=run_id))


def due(tx: Tx, limit: int) -> tuple[list[tuple[str, str]], datetime | None]:
    """Tenant and id of the items with a passed deadline, and the time of the next one. Needs a transaction across
    tenants."""
    due_items = [(row.tenant_id, row.item_id) for row in tx.all(_DUE, now=tx.now(), limit=limit)]
    following = tx.first(_NEXT_DUE)
    return due_items, following and following[0]


def postpone(tx: Tx, item_id: str, by: timedelta) -> None:
    """Does not read the item: this is for an item that cannot be parsed."""
    tx.change(_THIS.values(due_at=tx.now() + by), this=item_id)


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


def size_of_comments(tx: Tx, item_id: str) -> tuple[int, int]:
    """The number of comments, and their total bytes."""
    row = tx.first(_SIZE_OF_COMMENTS, id=item_id)
    return (int(row.number), int(row.size or 0)) if row else (0, 0)


def link(tx: Tx, item_id: str, thread_id: str) -> bool:
    return tx.insert_new(item_links, item_id=item_id, thread_id=thread_id, created_at=tx.now())


def unlink(tx: Tx, item_id: str, thread_id: str) -> bool:
    return tx.change(_UNLINK, id=item_id, thread=thread_id) == 1


def following(tx: Tx, item: Item) -> list[str]:
    """The items of the same thread that follow this one, oldest first."""
    return (
        [] if item.thread_id is None else [row.item_id for row in tx.all(_FOLLOWING, thread=item.thread_id, id=item.id)]
    )


def links_of(tx: Tx, item_id: str) -> list[str]:
    return [row.thread_id for row in tx.all(_LINKS, id=item_id)]


def mark(tx: Tx, item_id: str, actor: str, **columns: Any) -> None:
    """Sets one person's draft, snooze or last shown revision of an item."""
    tx.insert_new(item_marks, item_id=item_id, actor=actor, draft=None, snoozed_until=None, shown_revision=None)
    tx.change(update(item_marks).where(*_OWN_MARKS).values(**columns), id=item_id, whose=actor)


def marks_of(tx: Tx, item_id: str, actor: str) -> tuple[Json, datetime | None]:
    row = tx.first(_MARKS, id=item_id, whose=actor)
    return (None, None) if row is None else (row.draft, row.snoozed_until)


def shown_revision(tx: Tx, item_id: str, actor: str) -> int | None:
    row = tx.first(_MARKS, id=item_id, whose=actor)
    return None if row is None else row.shown_revision


def tables() -> tuple[Table, ...]:
    """All tables with rows of an item."""
    return (items, item_revisions, item_texts, item_links, item_marks, comments, mentions)


def item_of(row: Row[Any]) -> Item:
    return Item(
        id=row.item_id,
        status=ItemStatus(row.status),
        resolution=Resolution(row.resolution) if row.resolution else None,
        execution=Execution(row.execution) if row.execution else None,
        due=Due(row.due) if row.due else None,
        **{name: getattr(row, name) for name in _FACTS},
    )


def _item_or_none(row: Row[Any] | None) -> Item | None:
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
