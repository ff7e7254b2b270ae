"""Saved reasons as rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, select

from assent.kernel.store.tables import TENANT, reasons
from assent.kernel.store.transaction import Tx

_ALL = select(reasons).where(reasons.c.tenant_id == TENANT).order_by(func.lower(reasons.c.name), reasons.c.name)
_THIS = (reasons.c.tenant_id == TENANT, reasons.c.reason_id == bindparam("this"))
_ONE = select(reasons).where(*_THIS)
_REMOVE = delete(reasons).where(*_THIS)


@dataclass(frozen=True, slots=True)
class Reason:
    id: str
    name: str
    text: str
    use: str
    created_at: datetime

    @property
    def subject(self) -> str:
        return f"reason:{self.id}"


def all_of_tenant(tx: Tx) -> list[Reason]:
    """By name."""
    return [_reason(row) for row in tx.all(_ALL)]


def get(tx: Tx, reason_id: str) -> Reason | None:
    row = tx.first(_ONE, this=reason_id)
    return None if row is None else _reason(row)


def insert(tx: Tx, reason: Reason) -> bool:
    """False where the name is taken."""
    return tx.insert_new(
        reasons,
        reason_id=reason.id,
        name=reason.name,
        text=reason.text,
        use=reason.use,
        created_at=reason.created_at,
    )


def remove(tx: Tx, reason_id: str) -> None:
    tx.change(_REMOVE, this=reason_id)


def _reason(row: Row[Any]) -> Reason:
    return Reason(row.reason_id, row.name, row.text, row.use, row.created_at)
