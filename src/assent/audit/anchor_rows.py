"""The last signed head of each tenant: the row lock lets one process sign the next head, and no head twice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, select, update

from assent.kernel.store.tables import TENANT, audit_anchors
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import GENESIS, Head

_LOCK = select(audit_anchors).where(audit_anchors.c.tenant_id == TENANT).with_for_update()
_THIS = update(audit_anchors).where(audit_anchors.c.tenant_id == TENANT)


def lock(tx: Tx) -> tuple[Head, datetime]:
    """Locks and returns the last signed head and its time; other processes wait."""
    row = tx.first(_LOCK)
    if row is None:
        tx.insert_new(audit_anchors, seq=0, hash=GENESIS, at=datetime.fromtimestamp(0, UTC))
        row = tx.first(_LOCK)
    assert row is not None
    return _head(row), row.at


def put(tx: Tx, head: Head) -> None:
    tx.change(_THIS.values(seq=head.seq, hash=head.hash, at=tx.now()))


def _head(row: Row[Any]) -> Head:
    return Head(row.seq, row.hash)
