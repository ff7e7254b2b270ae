"""Decisions as rows. They are append-only; a withdrawn or dismissed one is marked and stays."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, and_, bindparam, exists, literal_column, or_, select, update

from assent.kernel.store.tables import TENANT, decisions, deliveries, grants, items, runs
from assent.kernel.store.transaction import Tx
from assent.outbox.model import RESUME, DeliveryStatus
from assent.review.model.decisions import DECISION, Decision, verdict_to_json, verdicts_from_json
from assent.review.model.grants import GrantStatus
from assent.review.model.items import Item, ItemStatus
from assent.threads.rows import contributors

_OF_ITEM = (
    select(decisions)
    .where(decisions.c.tenant_id == TENANT, decisions.c.item_id == bindparam("item"))
    .order_by(decisions.c.at, decisions.c.decision_id)
)
_CLOSING = _OF_ITEM.where(decisions.c.closes, decisions.c.standing)
_APPROVING = _OF_ITEM.where(decisions.c.standing, decisions.c.revision == bindparam("number"))
_CALLED_FOR = (
    exists()
    .where(grants.c.tenant_id == items.c.tenant_id, grants.c.item_id == items.c.item_id)
    .where(grants.c.status == GrantStatus.GRANTED, grants.c.expires_at > bindparam("now"))
)
_ARRIVED = exists().where(runs.c.tenant_id == deliveries.c.tenant_id, runs.c.run_id == deliveries.c.delivery_id)
_UNSENT = (
    exists()
    .where(deliveries.c.tenant_id == decisions.c.tenant_id, deliveries.c.subject == "item:" + items.c.item_id)
    .where(deliveries.c.status != DeliveryStatus.DELIVERED)
    .where(
        or_(
            and_(deliveries.c.status == DeliveryStatus.PENDING, deliveries.c.attempts == 0),
            and_(deliveries.c.kind == RESUME, ~_ARRIVED),
        )
    )
)
_BEHIND_RUN = (
    exists()
    .where(runs.c.tenant_id == items.c.tenant_id, runs.c.thread_id == items.c.thread_id)
    .where(runs.c.status == literal_column("'pending'"), runs.c.attempt == 0, runs.c.answers)
)
_APPROVED_BY = (
    select(decisions.c.item_id)
    .join(items, (items.c.tenant_id == decisions.c.tenant_id) & (items.c.item_id == decisions.c.item_id))
    .where(decisions.c.tenant_id == TENANT, decisions.c.actor == bindparam("whose"), decisions.c.standing)
    .where(decisions.c.kind == DECISION, decisions.c.revision == items.c.revision)
    .distinct()
    .order_by(decisions.c.item_id)
)
_UNUSED_OF = _APPROVED_BY.where(items.c.open | ((items.c.status == ItemStatus.APPROVED) & (_CALLED_FOR | _UNSENT)))
_BEHIND_RUNS_OF = _APPROVED_BY.where(items.c.status == ItemStatus.APPROVED, _BEHIND_RUN)
_DISMISS_ALL = (
    update(decisions)
    .where(decisions.c.tenant_id == TENANT, decisions.c.item_id == bindparam("item"), decisions.c.standing)
    .values(standing=False)
)
_DISMISS_CLOSING = _DISMISS_ALL.where(decisions.c.closes)
_DISMISS_ONE = (
    update(decisions)
    .where(decisions.c.tenant_id == TENANT, decisions.c.decision_id == bindparam("id"))
    .values(standing=False)
)


def insert(tx: Tx, decision: Decision) -> None:
    columns = {name: getattr(decision, name) for name in Decision.__slots__ if name not in ("id", "verdicts")}
    verdicts = [verdict_to_json(verdict) for verdict in decision.verdicts]
    tx.insert(decisions, decision_id=decision.id, verdicts=verdicts, **columns)


def note_contribution(tx: Tx, decision: Decision, thread_id: str) -> None:
    """Called when the decision reaches its agent: a decision undone before that has no influence."""
    if not decision.bare:
        contributors.add(tx, thread_id, decision.actor)


def of_item(tx: Tx, item_id: str) -> list[Decision]:
    return [_decision(row) for row in tx.all(_OF_ITEM, item=item_id)]


def closing(tx: Tx, item_id: str) -> Decision | None:
    """The winning decision."""
    row = tx.first(_CLOSING, item=item_id)
    return None if row is None else _decision(row)


def sent_by(tx: Tx, item_id: str, delivery_id: str) -> Decision | None:
    """The decision that the delivery sends to its agent, including an undone one."""
    return next((decision for decision in of_item(tx, item_id) if decision.delivery_id == delivery_id), None)


def standing(tx: Tx, item: Item) -> list[Decision]:
    """The valid ones on the current revision."""
    return [_decision(row) for row in tx.all(_APPROVING, item=item.id, number=item.revision)]


def unused_of(tx: Tx, actor: str) -> list[str]:
    """Items that this person has approved without effect so far: more approvals are needed, the agent has no answer
    yet, or a granted call has not run."""
    return [row.item_id for row in tx.all(_UNUSED_OF, whose=actor, now=tx.now())]


def behind_runs_of(tx: Tx, actor: str) -> list[str]:
    """Items that this person has approved, on threads where a run with an answer (possibly theirs) has not started."""
    return [row.item_id for row in tx.all(_BEHIND_RUNS_OF, whose=actor)]


def dismiss(tx: Tx, item_id: str) -> int:
    """After a newer revision: earlier decisions do not count."""
    return tx.change(_DISMISS_ALL, item=item_id)


def dismiss_closing(tx: Tx, item_id: str) -> int:
    """Dismisses a revision request that a decision overrides; other approvals still count."""
    return tx.change(_DISMISS_CLOSING, item=item_id)


def dismiss_one(tx: Tx, decision_id: str) -> None:
    """Dismisses a decision that its author withdrew; others still count."""
    tx.change(_DISMISS_ONE, id=decision_id)


def _decision(row: Row[Any]) -> Decision:
    return Decision(
        id=row.decision_id,
        verdicts=verdicts_from_json(row.verdicts),
        **{name: getattr(row, name) for name in Decision.__slots__ if name not in ("id", "verdicts")},
    )
