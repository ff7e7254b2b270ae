"""Decisions as rows. They are only ever added; one that was taken back or dismissed says so and stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.domain.items import Item
from assent.domain.questions import Verb, Verdict
from assent.store.tables import TENANT, decisions
from assent.store.transaction import Tx

_OF_ITEM = (
    select(decisions)
    .where(decisions.c.tenant_id == TENANT, decisions.c.item_id == bindparam("item"))
    .order_by(decisions.c.at, decisions.c.decision_id)
)
_CLOSING = _OF_ITEM.where(decisions.c.closes, decisions.c.standing)
_APPROVING = _OF_ITEM.where(decisions.c.standing, decisions.c.revision == bindparam("number"))
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


@dataclass(frozen=True, slots=True)
class Decision:
    id: str
    item_id: str
    revision: int
    hash: str
    kind: str
    verdicts: tuple[Verdict, ...]
    notes: str | None
    actor: str
    via: str
    standing: bool
    closes: bool
    delivery_id: str | None
    at: datetime


def insert(tx: Tx, decision: Decision) -> None:
    columns = {name: getattr(decision, name) for name in Decision.__slots__ if name not in ("id", "verdicts")}
    verdicts = [verdict_to_json(verdict) for verdict in decision.verdicts]
    tx.insert(decisions, decision_id=decision.id, verdicts=verdicts, **columns)


def of_item(tx: Tx, item_id: str) -> list[Decision]:
    return [_decision(row) for row in tx.all(_OF_ITEM, item=item_id)]


def closing(tx: Tx, item_id: str) -> Decision | None:
    """The decision that won."""
    row = tx.first(_CLOSING, item=item_id)
    return None if row is None else _decision(row)


def standing(tx: Tx, item: Item) -> list[Decision]:
    """Those on the current revision that count."""
    return [_decision(row) for row in tx.all(_APPROVING, item=item.id, number=item.revision)]


def dismiss(tx: Tx, item_id: str) -> int:
    """A newer revision, or an undo: what was said before counts no more."""
    return tx.change(_DISMISS_ALL, item=item_id)


def dismiss_closing(tx: Tx, item_id: str) -> int:
    """Decided although a revision was asked for: that one counts no more; what others agreed to does."""
    return tx.change(_DISMISS_CLOSING, item=item_id)


def dismiss_one(tx: Tx, decision_id: str) -> None:
    """Its author has taken it back; what others said still counts."""
    tx.change(_DISMISS_ONE, id=decision_id)


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Only what was said."""
    said = {"key": verdict.key, "verb": verdict.verb, "args": verdict.args}
    said |= {"name": verdict.name, "message": verdict.message}
    return {name: value for name, value in said.items() if value is not None}


def verdicts_from_json(stored: Sequence[Mapping[str, Any]]) -> tuple[Verdict, ...]:
    return tuple(Verdict(**{**one, "verb": Verb(one["verb"])}) for one in stored)


def _decision(row: Row[Any]) -> Decision:
    return Decision(
        id=row.decision_id,
        verdicts=verdicts_from_json(row.verdicts),
        **{name: getattr(row, name) for name in Decision.__slots__ if name not in ("id", "verdicts")},
    )
