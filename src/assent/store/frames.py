"""Stream frames that outlive their connection, for `Last-Event-ID`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, select

from assent.domain.frames import Frame, frame_id
from assent.domain.runs import Run
from assent.store.tables import TENANT, frames, runs
from assent.store.transaction import Tx

_AFTER = (
    select(frames.c.seq, frames.c.event, frames.c.data)
    .where(frames.c.tenant_id == TENANT, frames.c.run_id == bindparam("run_id"), frames.c.seq > bindparam("after"))
    .order_by(frames.c.seq)
)
_ORPHANED = delete(frames).where(
    frames.c.run_id.not_in(select(runs.c.run_id).where(runs.c.tenant_id == frames.c.tenant_id))
)


def append(tx: Tx, run_id: str, batch: Sequence[Frame]) -> None:
    rows = [{"run_id": run_id, "seq": frame.seq, "event": frame.event, "data": frame.data.decode()} for frame in batch]
    for row in rows:
        tx.insert_new(frames, **row)


def after(tx: Tx, run: Run, seq: int) -> list[Frame]:
    rows = tx.all(_AFTER, run_id=run.id, after=seq)
    return [Frame(row.seq, row.event, row.data.encode(), frame_id(run.created_at, row.seq)) for row in rows]


def delete_orphaned(tx: Tx) -> int:
    """Frames of runs that are gone. Needs a transaction across tenants."""
    return tx.change(_ORPHANED)
