"""The outbox: rows are written in the transaction of their cause, so nothing is lost and nothing untrue is sent.

A sender claims due rows for the length of a lease. A sender that dies loses its claim: when the lease is over, by the
database's clock, the row is due again, and a late result of the dead sender is refused by the fence, because its claim
is no longer the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)

from assent.identity.model.visibility import OpenTo
from assent.identity.rows.visibility import is_visible
from assent.kernel.ids import new_id
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, deliveries, items, runs, threads
from assent.kernel.store.transaction import Tx
from assent.outbox.model import GATE_ANSWER, RESUME, Delivery, DeliveryStatus, Due, Failure, NotCarried, delay_after

BELL = "deliveries"
"""Rung by a transaction that adds a delivery, for the sender of this process, with those that are due at its commit."""

_OF_RUN = and_(
    runs.c.tenant_id == deliveries.c.tenant_id,
    deliveries.c.subject.startswith("run:"),
    runs.c.run_id == func.substr(deliveries.c.subject, len("run:") + 1),
)
_OF_ITEM = and_(
    items.c.tenant_id == deliveries.c.tenant_id,
    deliveries.c.subject.startswith("item:"),
    items.c.item_id == func.substr(deliveries.c.subject, len("item:") + 1),
)
_OWNER = func.coalesce(
    select(runs.c.actor).where(_OF_RUN, ~runs.c.answers).scalar_subquery(),
    select(items.c.requester).where(_OF_ITEM).scalar_subquery(),
)
_ALL = select(deliveries, _OWNER.label("owner")).where(deliveries.c.tenant_id == TENANT)
_BY_ID = _ALL.where(deliveries.c.delivery_id == bindparam("id"))
_FREE = (
    deliveries.c.due_at.is_not(None),
    deliveries.c.kind.in_(bindparam("kinds", expanding=True)),
    deliveries.c.target.not_in(bindparam("busy", expanding=True)),
)
_DUE = (
    select(deliveries)
    .where(*_FREE, deliveries.c.due_at <= bindparam("now"))
    .order_by(deliveries.c.due_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
_NEXT = select(func.min(deliveries.c.due_at)).where(*_FREE)
_ONE = (deliveries.c.tenant_id == TENANT, deliveries.c.delivery_id == bindparam("id"))
_CLAIM = (
    update(deliveries)
    .where(deliveries.c.tenant_id == bindparam("owner"), deliveries.c.delivery_id == bindparam("id"))
    .values(
        status=DeliveryStatus.SENDING,
        attempts=deliveries.c.attempts + 1,
        attempted_at=bindparam("now"),
        due_at=bindparam("until"),
    )
)
_SETTLE = (
    update(deliveries)
    .where(*_ONE, deliveries.c.status == DeliveryStatus.SENDING)
    .where(deliveries.c.attempts == bindparam("attempt"), deliveries.c.due_at == bindparam("claimed_until"))
    .values(
        status=bindparam("new_status"),
        due_at=bindparam("new_due"),
        delivered_at=bindparam("arrived"),
        failure=bindparam("new_failure"),
        body=bindparam("new_body"),
        attempts=deliveries.c.attempts - bindparam("uncounted", value=0, type_=deliveries.c.attempts.type),
    )
)
_DUE_NOW = Prepared(
    select(deliveries)
    .where(*_ONE, deliveries.c.status == DeliveryStatus.PENDING, deliveries.c.attempts == 0)
    .where(deliveries.c.due_at <= bindparam("now"))
)
_ARRIVE = Prepared(
    update(deliveries)
    .where(*_ONE, deliveries.c.status == DeliveryStatus.PENDING, deliveries.c.attempts == 0)
    .values(
        status=DeliveryStatus.DELIVERED,
        attempts=1,
        attempted_at=bindparam("now"),
        delivered_at=bindparam("now"),
        due_at=None,
        body=bindparam("new_body"),
    )
)
_RETRY = (
    update(deliveries)
    .where(*_ONE, deliveries.c.status == DeliveryStatus.FAILED)
    .values(status=DeliveryStatus.PENDING, attempts=0, due_at=bindparam("now"))
)
_SEND_AGAIN = (
    update(deliveries)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.subject == bindparam("about"))
    .where(deliveries.c.kind == GATE_ANSWER, deliveries.c.status == DeliveryStatus.DELIVERED)
    .values(status=DeliveryStatus.PENDING, attempts=0, delivered_at=None, due_at=bindparam("now"))
)
_HASTEN = (
    update(deliveries)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.target == bindparam("at"))
    .where(deliveries.c.status == DeliveryStatus.PENDING, deliveries.c.attempts > 0)
    .values(due_at=bindparam("now"))
)
_HAS_NO_RUN = ~exists().where(runs.c.tenant_id == deliveries.c.tenant_id, runs.c.run_id == deliveries.c.delivery_id)
_BODIES_UNDER_WAY = (
    select(deliveries.c.body)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.subject == bindparam("about"))
    .where(deliveries.c.status != DeliveryStatus.DELIVERED)
    .where(_HAS_NO_RUN)
)
_RESUMING = (
    select(deliveries.c.delivery_id)
    .join_from(items, deliveries, deliveries.c.subject == literal("item:").concat(items.c.item_id))
    .where(items.c.tenant_id == TENANT, items.c.thread_id == bindparam("thread"))
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.kind == RESUME, _HAS_NO_RUN)
    .where(deliveries.c.status.in_([DeliveryStatus.PENDING, DeliveryStatus.SENDING]))
    .order_by(deliveries.c.created_at, deliveries.c.delivery_id)
    .limit(1)
)
_LATEST = (
    select(deliveries)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.subject == bindparam("about"))
    .order_by(deliveries.c.created_at.desc(), deliveries.c.delivery_id.desc())
    .limit(1)
)
_UNDER_WAY = _BODIES_UNDER_WAY.with_only_columns(deliveries.c.delivery_id).limit(1)
_WITHDRAW = delete(deliveries).where(*_ONE, deliveries.c.status == DeliveryStatus.PENDING, deliveries.c.attempts == 0)
_RECALL = delete(deliveries).where(*_ONE, deliveries.c.status != DeliveryStatus.DELIVERED)
_RELEASE = (
    update(deliveries)
    .where(deliveries.c.status == DeliveryStatus.SENDING)
    .values(status=DeliveryStatus.PENDING, due_at=bindparam("now"))
)
_PRUNE = delete(deliveries).where(deliveries.c.due_at.is_(None), deliveries.c.attempted_at < bindparam("before"))
_ORDER = Keyset((deliveries.c.created_at, deliveries.c.delivery_id), descending=True)


def add(
    tx: Tx,
    kind: str,
    *,
    subject: str,
    target: str,
    body: str,
    wait: timedelta = timedelta(),
    delivery_id: str | None = None,
) -> str:
    """Adds a delivery, sent after this transaction has committed and `wait` is over."""
    delivery_id = delivery_id or new_id()
    tx.insert(
        deliveries,
        delivery_id=delivery_id,
        kind=kind,
        subject=subject,
        target=target,
        body=body,
        status=DeliveryStatus.PENDING,
        attempts=0,
        due_at=tx.now() + wait,
        created_at=tx.now(),
    )
    tx.ring(BELL, *(() if wait else (Due(tx.tenant, delivery_id, kind),)))
    return delivery_id


def arrive(tx: Tx, delivery_id: str, carry: Callable[[Tx, Delivery], bool]) -> Delivery | None:
    """Carries a delivery that nobody has attempted, and records its arrival, in this transaction. None if it is not due
    any more; raises `NotCarried`, which undoes everything, if it has to be attempted by a claim. The row is changed
    last, so that the locks of `carry` come first, as in other transactions."""
    row = tx.first(_DUE_NOW, id=delivery_id, now=tx.now())
    if row is None:
        return None
    delivery = _delivery(row)
    kept = delivery.body if delivery.kind == GATE_ANSWER else ""
    if not carry(tx, delivery) or not tx.change(_ARRIVE, id=delivery_id, now=tx.now(), new_body=kept):
        raise NotCarried(delivery_id)
    return replace(delivery, status=DeliveryStatus.DELIVERED, attempts=1)


def claim(
    tx: Tx, *, leases: Mapping[str, timedelta], busy: Collection[str], limit: int
) -> tuple[list[Delivery], timedelta | None]:
    """Claims due deliveries for the lease of their kind; also returns the time until the next one is due. Skips targets
    in `busy`. Needs a transaction across tenants."""
    now = tx.now()
    chosen = {"kinds": list(leases), "busy": list(busy)}
    due = [_delivery(row) for row in tx.all(_DUE, now=now, limit=limit, **chosen)]
    for delivery in due:
        tx.change(_CLAIM, owner=delivery.tenant, id=delivery.id, now=now, until=now + leases[delivery.kind])
    claimed = [
        replace(
            delivery,
            status=DeliveryStatus.SENDING,
            attempts=delivery.attempts + 1,
            attempted_at=now,
            due_at=now + leases[delivery.kind],
        )
        for delivery in due
    ]
    following = tx.first(_NEXT, **chosen)
    return claimed, None if following is None or following[0] is None else following[0] - now


def settle(tx: Tx, claimed: Delivery, failure: Failure | None, *, dice: float) -> bool:
    """Records the result of an attempt; False where the claim was lost meanwhile, and nothing is changed."""
    kept = claimed.body if claimed.kind == GATE_ANSWER else ""
    new: dict[str, Any] = {"arrived": tx.now(), "new_due": None, "new_failure": None, "new_body": kept}
    status = DeliveryStatus.DELIVERED
    if failure is not None:
        delay = delay_after(claimed.attempts, failure, dice=dice)
        status = DeliveryStatus.FAILED if delay is None else DeliveryStatus.PENDING
        due = None if delay is None else tx.now() + delay
        new = {"arrived": None, "new_due": due, "new_failure": failure.reason, "new_body": claimed.body}
        new["uncounted"] = 0 if failure.attempted else 1
    fence = {"id": claimed.id, "attempt": claimed.attempts, "claimed_until": claimed.due_at}
    return tx.change(_SETTLE, **fence, new_status=status, **new) == 1


def hand_back(tx: Tx, claimed: Delivery) -> None:
    """Gives up an attempt that this process will not finish: the next sender makes another."""
    fence = {"id": claimed.id, "attempt": claimed.attempts, "claimed_until": claimed.due_at}
    unchanged = {"arrived": None, "new_failure": claimed.failure, "new_body": claimed.body}
    tx.change(_SETTLE, **fence, new_status=DeliveryStatus.PENDING, new_due=tx.now(), **unchanged)


def release_all(tx: Tx) -> int:
    """Releases the claims of a dead process, where no other process can exist. Needs a transaction across tenants."""
    return tx.change(_RELEASE, now=tx.now())


def retry(tx: Tx, delivery_id: str) -> bool:
    """Resets the attempts of a delivery that failed for good; the first one is due now."""
    tx.ring(BELL)
    return tx.change(_RETRY, id=delivery_id, now=tx.now()) == 1


def send_again(tx: Tx, subject: str) -> None:
    """Its kept answers were delivered before their thread was known."""
    if tx.change(_SEND_AGAIN, about=subject, now=tx.now()):
        tx.ring(BELL)


def hasten(tx: Tx, target: str) -> None:
    """The target can be reached again: its failed deliveries are due now."""
    if tx.change(_HASTEN, at=target, now=tx.now()):
        tx.ring(BELL)


def under_way(tx: Tx, subject: str) -> bool:
    """Whether a delivery about the subject is still outstanding, including failed ones, which can be retried. Once the
    resumed run exists, its delivery counts as arrived, even if not recorded yet."""
    return tx.first(_UNDER_WAY, about=subject) is not None


def resuming(tx: Tx, thread_id: str) -> str | None:
    """The id of the first answer on its way to the thread. The run that it will start has the same id."""
    row = tx.first(_RESUMING, thread=thread_id)
    return None if row is None else str(row.delivery_id)


def bodies_under_way(tx: Tx, subject: str) -> list[str]:
    """The bodies of the deliveries of `under_way`."""
    return [row.body for row in tx.all(_BODIES_UNDER_WAY, about=subject)]


def withdraw(tx: Tx, delivery_id: str) -> bool:
    """Deletes a delivery without attempts."""
    return tx.change(_WITHDRAW, id=delivery_id) == 1


def recall(tx: Tx, delivery_id: str) -> bool:
    """Deletes a delivery that has not arrived, also where a sender has claimed it. Only for kinds whose carrier checks,
    in the transaction of the arrival, that the delivery still exists."""
    return tx.change(_RECALL, id=delivery_id) == 1


def get(tx: Tx, delivery_id: str, *, visible: OpenTo | None = None) -> Delivery | None:
    row = tx.first(_limited(tx, _BY_ID, visible), id=delivery_id)
    return None if row is None else _delivery(row)


def latest(tx: Tx, subject: str) -> Delivery | None:
    row = tx.first(_LATEST, about=subject)
    return None if row is None else _delivery(row)


def page(
    tx: Tx,
    *,
    status: DeliveryStatus | None,
    subject: str | None,
    limit: int,
    cursor: str | None,
    visible: OpenTo | None = None,
) -> Page[Delivery]:
    """The newest first, filtered."""
    statement = _limited(tx, _ALL, visible)
    for column, value in ((deliveries.c.status, status), (deliveries.c.subject, subject)):
        statement = statement if value is None else statement.where(column == value)
    return _ORDER.page(tx, statement, _delivery, limit=limit, cursor=cursor)


def prune(tx: Tx, before: datetime) -> int:
    """Removes deliveries that were settled before that time. Needs a transaction across tenants."""
    return tx.change(_PRUNE, before=before)


def _limited(tx: Tx, statement: Select[Any], visible: OpenTo | None) -> Select[Any]:
    """Only deliveries about runs and items of threads that are open to the actor, and about the actor's own requests. A
    delivery whose run or item was deleted has no owner."""
    if visible is None:
        return statement
    is_open = is_visible(threads, visible, tx.dialect)
    own = exists().where(_OF_ITEM, items.c.thread_id.is_(None), items.c.requester == visible.actor)
    return statement.where(or_(_on_thread(runs, _OF_RUN, is_open), _on_thread(items, _OF_ITEM, is_open), own))


def _on_thread(table: Table, about: ColumnElement[bool], is_open: ColumnElement[bool]) -> ColumnElement[bool]:
    same = and_(threads.c.tenant_id == table.c.tenant_id, threads.c.thread_id == table.c.thread_id)
    return exists().where(about, same, is_open).correlate(deliveries)


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        id=row.delivery_id,
        tenant=row.tenant_id,
        kind=row.kind,
        subject=row.subject,
        target=row.target,
        body=row.body,
        status=DeliveryStatus(row.status),
        attempts=row.attempts,
        due_at=row.due_at,
        attempted_at=row.attempted_at,
        delivered_at=row.delivered_at,
        failure=row.failure,
        created_at=row.created_at,
        owner=getattr(row, "owner", None),
    )
