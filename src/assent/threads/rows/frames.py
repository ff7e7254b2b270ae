"""Stream frames as rows: resumable ones for `Last-Event-ID`, and those that other processes read live."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, bindparam, delete, exists, func, or_, select

from assent.kernel.store.tables import TENANT, frames, runs
from assent.kernel.store.transaction import Tx
from assent.threads.model.frames import END, Frame, Stream, frame_id, moment, over, seen_from_thread
from assent.threads.model.runs import Run, RunStatus
from assent.threads.rows import runs as run_rows

_AFTER = (
    select(frames.c.seq, frames.c.event, frames.c.data, frames.c.id, frames.c.at)
    .where(frames.c.tenant_id == TENANT, frames.c.run_id == bindparam("run_id"), frames.c.seq > bindparam("after"))
    .where(frames.c.event != END)
    .order_by(frames.c.seq)
)
_BEGAN = (
    select(runs.c.run_id, runs.c.created_at, runs.c.status, runs.c.kwargs)
    .where(runs.c.tenant_id == TENANT, runs.c.thread_id == bindparam("thread_id"), runs.c.started_at.is_not(None))
    .order_by(runs.c.started_at, runs.c.position)
)
_BEGAN_AT = func.coalesce(runs.c.started_at, runs.c.ended_at)
_OF_THREAD = (
    select(runs.c.run_id, runs.c.created_at, _BEGAN_AT.label("began_at"), runs.c.status)
    .where(runs.c.tenant_id == TENANT, runs.c.thread_id == bindparam("thread_id"), _BEGAN_AT.is_not(None))
    .order_by(_BEGAN_AT, runs.c.run_id)
)
_KEEPS = exists().where(
    runs.c.tenant_id == frames.c.tenant_id,
    runs.c.run_id == frames.c.run_id,
    or_(runs.c.status.in_(("pending", "running")), runs.c.ended_at >= bindparam("before")),
)
_OUTDATED = delete(frames).where(frames.c.at < bindparam("before"), ~_KEEPS)


def append(tx: Tx, stream: Stream, batch: Sequence[Frame]) -> None:
    of_stream = {"thread_id": stream.thread_id, "run_id": stream.run_id, "at": tx.now()}
    for frame in batch:
        facts = {"seq": frame.seq, "id": frame.id, "event": frame.event, "data": frame.data.decode()}
        tx.insert_new(frames, **of_stream, **facts)


def after(tx: Tx, run_id: str, seq: int) -> list[Frame]:
    """The frames to send again. The end is not included: the run's row has it."""
    rows = tx.all(_AFTER, run_id=run_id, after=seq)
    return [Frame(row.seq, row.event, row.data.encode(), row.id, row.at) for row in rows]


def close(tx: Tx, run: Run) -> None:
    """Ends a stream without a writer, for followers in other processes."""
    stream, last = over(tx.tenant, run)
    append(tx, stream, [last])


def of_thread(tx: Tx, thread_id: str, position: tuple[int, int]) -> list[Frame]:
    """The stored frames of a thread's resumable streams after a position, in the order in which its runs began."""
    began = [row for row in tx.all(_BEGAN, thread_id=thread_id) if row.kwargs.get("resumable")]
    then, seq = position
    place = next((n for n, row in enumerate(began) if moment(row.created_at) == then), None)
    if place is None:
        return [frame for row in began if moment(row.created_at) > then for frame in _seen_from_thread(tx, row)]
    first, *later = began[place:]
    rest = [frame for frame in _seen_from_thread(tx, first) if frame.seq > seq]
    return rest + [frame for row in later for frame in _seen_from_thread(tx, row)]


def _seen_from_thread(tx: Tx, run: Row[Any]) -> list[Frame]:
    """With the end, from the run's row: the table has it only where other processes read from there."""
    stored = after(tx, run.run_id, 0)
    if run.status in ("pending", "running"):
        return stored
    seq = stored[-1].seq + 1 if stored else 1
    return [*stored, seen_from_thread(Frame(seq, END, b"", frame_id(run.created_at, seq)), run.run_id)]


class Begun(NamedTuple):
    """A run that has begun, or was cancelled before it could."""

    run_id: str
    created_at: datetime
    began_at: datetime
    status: RunStatus


def begun(tx: Tx, thread_id: str) -> list[Begun]:
    """In the order in which they began."""
    rows = tx.all(_OF_THREAD, thread_id=thread_id)
    return [Begun(row.run_id, row.created_at, row.began_at, RunStatus(row.status)) for row in rows]


def of_run(tx: Tx, run_id: str) -> tuple[Run, list[Frame]] | None:
    """A run as it is now, and its stored frames; None if it was deleted."""
    run = run_rows.get(tx, run_id)
    if run is None:
        return None
    return run, after(tx, run_id, 0) if run.kwargs.get("resumable") else []


def delete_outdated(tx: Tx, before: datetime) -> int:
    """Deletes the frames of runs that ended before this time or were deleted: those of a run together, since events are
    numbered by their place in the run. Needs a transaction across tenants."""
    return tx.change(_OUTDATED, before=before)
