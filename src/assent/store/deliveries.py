"""The outbox: written beside what it tells, so that nothing is lost and nothing is told that did not happen.

A sender claims what is due for the length of a lease. Whoever dies with a claim loses it: when the lease is over, by
the database's clock, the row is due again, and what the dead one might still say about it is refused, because the
claim it made is not the last one any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, bindparam, delete, exists, func, select, update

from assent.domain.deliveries import Delivery, DeliveryStatus, Failure, delay_after
from assent.domain.ids import new_id
from assent.store.paging import Keyset, Page
from assent.store.tables import TENANT, deliveries, runs
from assent.store.transaction import Tx

BELL = "deliveries"
"""Rung by a transaction that leaves something to send, for the sender of this process."""

_ALL = select(deliveries).where(deliveries.c.tenant_id == TENANT)
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
    )
)
_RETRY = (
    update(deliveries)
    .where(*_ONE, deliveries.c.status == DeliveryStatus.FAILED)
    .values(status=DeliveryStatus.PENDING, attempts=0, due_at=bindparam("now"))
)
_BODIES_UNDER_WAY = (
    select(deliveries.c.body)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.subject == bindparam("about"))
    .where(deliveries.c.status != DeliveryStatus.DELIVERED)
    .where(~exists().where(runs.c.tenant_id == deliveries.c.tenant_id, runs.c.run_id == deliveries.c.delivery_id))
)
_UNDER_WAY = _BODIES_UNDER_WAY.with_only_columns(deliveries.c.delivery_id).limit(1)
_WITHDRAW = delete(deliveries).where(*_ONE, deliveries.c.status == DeliveryStatus.PENDING, deliveries.c.attempts == 0)
_RELEASE = (
    update(deliveries)
    .where(deliveries.c.status == DeliveryStatus.SENDING)
    .values(status=DeliveryStatus.PENDING, due_at=bindparam("now"))
)
_PRUNE = delete(deliveries).where(deliveries.c.due_at.is_(None), deliveries.c.attempted_at < bindparam("before"))
_ORDER = Keyset((deliveries.c.created_at, deliveries.c.delivery_id), descending=True)


def add(tx: Tx, kind: str, *, subject: str, target: str, body: str, wait: timedelta = timedelta()) -> str:
    """Leaves something to be sent after this transaction has committed, and not before `wait` is over."""
    delivery_id = new_id()
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
    tx.ring(BELL)
    return delivery_id


def claim(
    tx: Tx, *, leases: Mapping[str, timedelta], busy: Collection[str], limit: int
) -> tuple[list[Delivery], timedelta | None]:
    """What is due and now this sender's, for as long as the lease of its kind, and how long it is until something else
    is. Targets in `busy` are passed over. Needs a transaction across tenants."""
    now = tx.now()
    chosen = {"kinds": list(leases), "busy": list(busy)}
    due = [_delivery(row) for row in tx.all(_DUE, now=now, limit=limit, **chosen)]
    for one in due:
        tx.change(_CLAIM, owner=one.tenant, id=one.id, now=now, until=now + leases[one.kind])
    claimed = [
        replace(
            one,
            status=DeliveryStatus.SENDING,
            attempts=one.attempts + 1,
            attempted_at=now,
            due_at=now + leases[one.kind],
        )
        for one in due
    ]
    following = tx.first(_NEXT, **chosen)
    return claimed, None if following is None or following[0] is None else following[0] - now


def settle(tx: Tx, claimed: Delivery, failure: Failure | None, *, dice: float) -> bool:
    """Records how an attempt ended; False where the claim was lost meanwhile, and nothing is changed."""
    new: dict[str, Any] = {"arrived": tx.now(), "new_due": None, "new_failure": None, "new_body": ""}
    status = DeliveryStatus.DELIVERED
    if failure is not None:
        delay = delay_after(claimed.attempts, failure, dice=dice)
        status = DeliveryStatus.FAILED if delay is None else DeliveryStatus.PENDING
        due = None if delay is None else tx.now() + delay
        new = {"arrived": None, "new_due": due, "new_failure": failure.reason, "new_body": claimed.body}
    fence = {"id": claimed.id, "attempt": claimed.attempts, "claimed_until": claimed.due_at}
    return tx.change(_SETTLE, **fence, new_status=status, **new) == 1


def hand_back(tx: Tx, claimed: Delivery) -> None:
    """Gives up an attempt that this process will not finish: whoever looks next makes another."""
    fence = {"id": claimed.id, "attempt": claimed.attempts, "claimed_until": claimed.due_at}
    kept = {"arrived": None, "new_failure": claimed.failure, "new_body": claimed.body}
    tx.change(_SETTLE, **fence, new_status=DeliveryStatus.PENDING, new_due=tx.now(), **kept)


def release_all(tx: Tx) -> int:
    """Claims of a process that died, where no other one can be alive. Needs a transaction across tenants."""
    return tx.change(_RELEASE, now=tx.now())


def retry(tx: Tx, delivery_id: str) -> bool:
    """A delivery that failed for good gets all its attempts again, the first one now."""
    tx.ring(BELL)
    return tx.change(_RETRY, id=delivery_id, now=tx.now()) == 1


def under_way(tx: Tx, subject: str) -> bool:
    """Whether something about it has still to arrive; what has failed for good can be retried. Where the run that
    carries it is there, it has arrived, also if that is not written down yet."""
    return tx.first(_UNDER_WAY, about=subject) is not None


def bodies_under_way(tx: Tx, subject: str) -> list[str]:
    """What carries the answers that `under_way` speaks of."""
    return [row.body for row in tx.all(_BODIES_UNDER_WAY, about=subject)]


def withdraw(tx: Tx, delivery_id: str) -> bool:
    """Takes back what nobody has begun to send."""
    return tx.change(_WITHDRAW, id=delivery_id) == 1


def get(tx: Tx, delivery_id: str) -> Delivery | None:
    row = tx.first(_BY_ID, id=delivery_id)
    return None if row is None else _delivery(row)


def page(
    tx: Tx, *, status: DeliveryStatus | None, subject: str | None, limit: int, cursor: str | None
) -> Page[Delivery]:
    """The newest first, narrowed where asked."""
    statement: Select[Any] = _ALL
    for column, value in ((deliveries.c.status, status), (deliveries.c.subject, subject)):
        statement = statement if value is None else statement.where(column == value)
    return _ORDER.page(tx, statement, _delivery, limit=limit, cursor=cursor)


def prune(tx: Tx, before: datetime) -> int:
    """Removes what was settled before that time. Needs a transaction across tenants."""
    return tx.change(_PRUNE, before=before)


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
    )
