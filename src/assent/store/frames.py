"""Stream frames as rows: what outlives its connection for `Last-Event-ID`, and what other processes read live."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, exists, select

from assent.domain.frames import END, Frame, Stream
from assent.store.tables import TENANT, frames, runs
from assent.store.transaction import Tx

_AFTER = (
    select(frames.c.seq, frames.c.event, frames.c.data, frames.c.id)
    .where(frames.c.tenant_id == TENANT, frames.c.run_id == bindparam("run_id"), frames.c.seq > bindparam("after"))
    .where(frames.c.event != END)
    .order_by(frames.c.seq)
)
_GOES_ON = exists().where(
    runs.c.tenant_id == frames.c.tenant_id,
    runs.c.run_id == frames.c.run_id,
    runs.c.status.in_(("pending", "running")),
)
_OUTDATED = delete(frames).where(frames.c.at < bindparam("before"), ~_GOES_ON)


def append(tx: Tx, stream: Stream, batch: Sequence[Frame]) -> None:
    of_stream = {"thread_id": stream.thread_id, "run_id": stream.run_id, "at": tx.now()}
    for frame in batch:
        facts = {"seq": frame.seq, "id": frame.id, "event": frame.event, "data": frame.data.decode()}
        tx.insert_new(frames, **of_stream, **facts)


def after(tx: Tx, run_id: str, seq: int) -> list[Frame]:
    """What a client is sent again. The end is none of it: the run's row tells that."""
    rows = tx.all(_AFTER, run_id=run_id, after=seq)
    return [Frame(row.seq, row.event, row.data.encode(), row.id) for row in rows]


def delete_outdated(tx: Tx, before: datetime) -> int:
    """Frames written before this, of runs that have ended or are gone. Needs a transaction across tenants."""
    return tx.change(_OUTDATED, before=before)
