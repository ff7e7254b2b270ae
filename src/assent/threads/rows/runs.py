"""Runs as rows: the order of a thread, the executor of each run, and its current attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, bindparam, delete, func, literal_column, select, update

from assent.kernel.store import sizes
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, runs
from assent.kernel.store.transaction import Tx
from assent.threads.model.runs import Cancel, Run, RunStatus, Strategy, next_in_line
from assent.threads.model.threads import Thread, ThreadStatus
from assent.threads.rows import contributors, holds, threads
from assent.threads.rows.state.checkpoints import Attempt, Fenced

_LARGE = [runs.c[name] for name in ("kwargs", "metadata", "error")]
_ALL = select(runs).where(runs.c.tenant_id == TENANT)
_BY_ID = Prepared(_ALL.where(runs.c.run_id == bindparam("id")))
_OF_THREAD = _ALL.where(runs.c.thread_id == bindparam("thread_id"))
# Must equal the condition of the partial index, or runs that ended long ago would be scanned each time.
_IS_ACTIVE = runs.c.status.in_([literal_column("'pending'"), literal_column("'running'")])
_ACTIVE = Prepared(_OF_THREAD.where(_IS_ACTIVE).order_by(runs.c.position))
_LAST_BEGUN = _OF_THREAD.where(runs.c.attempt > 0).order_by(runs.c.created_at.desc(), runs.c.run_id.desc()).limit(1)
_LAST_POSITION = Prepared(
    select(func.max(runs.c.position)).where(
        runs.c.tenant_id == TENANT, runs.c.thread_id == bindparam("thread_id"), _IS_ACTIVE
    )
)
_THIS = update(runs).where(runs.c.tenant_id == TENANT, runs.c.run_id == bindparam("id"))
_BEGIN = Prepared(
    _THIS.where(runs.c.status == "pending", runs.c.attempt == bindparam("was")).values(
        status="running",
        attempt=runs.c.attempt + 1,
        started_at=bindparam("began"),
        updated_at=bindparam("now"),
    )
)
_BEGIN_AGAIN = _THIS.where(runs.c.status == "running", runs.c.attempt == bindparam("was")).values(
    attempt=runs.c.attempt + 1, updated_at=bindparam("now")
)
_END = Prepared(
    _THIS.where(runs.c.status == "running", runs.c.attempt == bindparam("was")).values(
        status=bindparam("new_status"),
        error=bindparam("new_error"),
        ended_at=bindparam("now"),
        updated_at=bindparam("now"),
    )
)
_HAND_BACK = _THIS.where(runs.c.status == "running", runs.c.attempt == bindparam("was")).values(
    status="pending", lost=runs.c.lost + bindparam("more_lost"), updated_at=bindparam("now")
)
_CANCEL_UNBEGUN = _THIS.where(runs.c.status == "pending", runs.c.attempt == 0).values(
    status="interrupted", cancel=bindparam("how"), ended_at=bindparam("now"), updated_at=bindparam("now")
)
_ASK_TO_STOP = _THIS.where(runs.c.status.in_(("pending", "running"))).values(
    cancel=bindparam("how"), updated_at=bindparam("now")
)
_WAKE = _THIS.values(wake_at=None)
_DELETE = delete(runs).where(runs.c.tenant_id == TENANT, runs.c.run_id == bindparam("id"))
_LEFT_RUNNING = update(runs).where(runs.c.status == "running").values(status="pending", lost=runs.c.lost + 1)
_UNFINISHED = (
    select(runs.c.tenant_id, runs.c.thread_id, runs.c.run_id, runs.c.wake_at)
    .where(runs.c.status == "pending")
    .order_by(runs.c.tenant_id, runs.c.thread_id)
)


def insert_pending(tx: Tx, run_id: str, thread_id: str, **columns: Any) -> None:
    """Appends a run behind the active ones of its thread; without any, the positions start again."""
    now = tx.now()
    last = tx.first(_LAST_POSITION, thread_id=thread_id)
    position = (last[0] if last and last[0] is not None else 0) + 1
    facts = {"run_id": run_id, "thread_id": thread_id, "status": RunStatus.PENDING, "position": position, "attempt": 0}
    tx.insert(runs, **facts, updated_at=now, **({"created_at": now} | columns))


def get(tx: Tx, run_id: str) -> Run | None:
    row = tx.first(_BY_ID, id=run_id)
    return None if row is None else run_of(row)


def active(tx: Tx, thread_id: str) -> list[Run]:
    return [run_of(row) for row in tx.all(_ACTIVE, thread_id=thread_id)]


def page(tx: Tx, thread_id: str, *, status: str | None, limit: int, offset: int) -> list[Run]:
    return [run_of(row) for row in tx.all(_page(status, limit, offset), thread_id=thread_id)]


def require_page(tx: Tx, thread_id: str, *, status: str | None, limit: int, offset: int) -> None:
    """Refuses a page that exceeds the limit of an answer."""
    sizes.require_page(tx, _page(status, limit, offset), _LARGE, hint="use a smaller `limit`", thread_id=thread_id)


def _page(status: str | None, limit: int, offset: int) -> Select[Any]:
    newest_first = _OF_THREAD.order_by(runs.c.created_at.desc(), runs.c.run_id.desc()).limit(limit).offset(offset)
    return newest_first if status is None else newest_first.where(runs.c.status == status)


def last_begun(tx: Tx, thread_id: str) -> Run | None:
    """The newest run that was executed. A delayed or enqueued run has no part in the thread's questions."""
    row = tx.first(_LAST_BEGUN, thread_id=thread_id)
    return None if row is None else run_of(row)


def of_status(tx: Tx, statuses: Sequence[RunStatus]) -> list[Run]:
    return [run_of(row) for row in tx.all(_ALL.where(runs.c.status.in_(statuses)))]


def begin(tx: Tx, run_id: str) -> Run | None:
    """Starts the next attempt of a run, if it is still that run's turn; otherwise returns None."""
    thread = threads.lock_of_run(tx, run_id)
    if thread is None:
        return None
    present = active(tx, thread.id)
    head = next_in_line(_pending(present), waits=is_held(tx, thread), now=tx.now())
    return None if _running(present) or head is None or head.id != run_id else _begun(tx, head)


def is_held(tx: Tx, thread: Thread) -> bool:
    """Whether only an answer may run on the thread: it has a question, or is stopped before a gated breakpoint."""
    return thread.waits or (bool(thread.next) and holds.is_stopped(tx, thread.id))


def begin_again(tx: Tx, attempt: Attempt) -> Run | None:
    """Starts the next attempt after one that was cut off, in the same slot; None where that attempt is not current."""
    begun = tx.change(_BEGIN_AGAIN, id=attempt.run_id, was=attempt.number, now=tx.now())
    return get(tx, attempt.run_id) if begun else None


def promote(tx: Tx, thread_id: str, *, waits: bool, present: Sequence[Run] | None = None) -> Run | None:
    """Hands the thread's next run to the queue, unless one is being executed. `present` are its active runs, if the
    caller has just read them."""
    present = active(tx, thread_id) if present is None else present
    head = None if _running(present) else next_in_line(_pending(present), waits=waits, now=tx.now())
    if head is not None:
        turn = "" if head.answers else f"{tx.tenant} {head.actor}"
        tx.hand_over(head.id, begun=_prepared(tx, head) if tx.take_place() else None, turn=turn)
    return head


def stamp(tx: Tx, run: Run) -> None:
    """Sets the graph and the assistant of the thread to those of a run that begins. A queued or refused run does not
    affect the thread, whose questions belong to the graph before it."""
    thread, current = threads.lock(tx, run.thread_id, values=False), get(tx, run.id)
    if thread is None or current is None or (current.status, current.attempt) != (RunStatus.RUNNING, run.attempt):
        raise Fenced
    threads.set_metadata(tx, thread.id, {**thread.metadata, "graph_id": run.graph_id, "assistant_id": run.assistant_id})


def end(tx: Tx, attempt: Attempt, status: RunStatus, error: dict[str, Any] | None) -> None:
    if not tx.change(_END, id=attempt.run_id, was=attempt.number, new_status=status, new_error=error, now=tx.now()):
        raise Fenced


def hand_back(tx: Tx, attempt: Attempt) -> None:
    """Gives up an attempt without ending the run: another process, or this one after its restart, continues."""
    run = get(tx, attempt.run_id)
    if run is not None:
        resume(tx, run.thread_id, [attempt])


def resume(tx: Tx, thread_id: str, given_up: Sequence[Attempt] = (), *, lost: bool = False) -> None:
    """Continues a thread without an executor: attempts that were given up are followed by the next one, delayed runs
    are scheduled again. Idempotent. `lost`: the attempts ended with their process."""
    thread = threads.lock(tx, thread_id, values=False)
    if thread is None:
        return
    for attempt in given_up:
        tx.change(_HAND_BACK, id=attempt.run_id, was=attempt.number, more_lost=int(lost), now=tx.now())
    for run in active(tx, thread_id):
        if run.wake_at is not None and run.wake_at > tx.now():
            tx.hand_over(run.id, run.wake_at)
    _continue(tx, thread)


def cancel_unbegun(tx: Tx, run: Run, how: Cancel) -> bool:
    """Ends a run that has never started; False where it has."""
    return run.status is RunStatus.PENDING and bool(tx.change(_CANCEL_UNBEGUN, id=run.id, how=how, now=tx.now()))


def ask_to_stop(tx: Tx, run: Run, how: Cancel) -> None:
    """Requests cancellation; if no process executes the run now, its next attempt ends it."""
    tx.change(_ASK_TO_STOP, id=run.id, how=how, now=tx.now())


def wake(tx: Tx, run_id: str) -> None:
    """Adds a delayed run to its thread's order."""
    run = get(tx, run_id)
    thread = threads.lock(tx, run.thread_id, values=False) if run else None
    if run is not None and thread is not None and run.status is RunStatus.PENDING:
        tx.change(_WAKE, id=run_id)
        _continue(tx, thread)


def remove(tx: Tx, run_id: str) -> bool:
    return tx.change(_DELETE, id=run_id) == 1


def recover(tx: Tx) -> list[tuple[str, str, str, datetime | None]]:
    """Makes the running runs of a dead process pending again. Needs a transaction across tenants."""
    tx.change(_LEFT_RUNNING)
    return [(row.tenant_id, row.thread_id, row.run_id, row.wake_at) for row in tx.all(_UNFINISHED)]


def run_of(row: Row[Any]) -> Run:
    return Run(
        id=row.run_id,
        thread_id=row.thread_id,
        assistant_id=row.assistant_id,
        graph_id=row.graph_id,
        status=RunStatus(row.status),
        position=row.position,
        attempt=row.attempt,
        actor=row.actor,
        answers=row.answers,
        passes=row.passes,
        wake_at=row.wake_at,
        cancel=Cancel(row.cancel) if row.cancel else None,
        temporary=row.temporary,
        multitask_strategy=Strategy(row.multitask_strategy),
        metadata=row.metadata,
        kwargs=row.kwargs,
        error=row.error,
        webhook=row.webhook,
        created_at=row.created_at,
        updated_at=row.updated_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        lost=row.lost,
    )


def _continue(tx: Tx, thread: Thread) -> None:
    """Starts the next run, if there is one, and marks the thread busy."""
    if promote(tx, thread.id, waits=is_held(tx, thread)) is not None:
        threads.set_status(tx, thread.id, ThreadStatus.BUSY)


def _prepared(tx: Tx, head: Run) -> Run:
    begun = _begun(tx, head)
    return replace(begun, prepared=tx.prepare(begun))


def _begun(tx: Tx, head: Run) -> Run:
    now = tx.now()
    if not head.answers:  # a queued run belongs to the turn that begins
        contributors.add(tx, head.thread_id, head.actor)
    if head.kwargs.get("checkpoint"):
        contributors.recall(tx, head.thread_id)
    began = head.started_at or now  # of the first attempt
    tx.change(_BEGIN, id=head.id, was=head.attempt, began=began, now=now)
    return replace(head, status=RunStatus.RUNNING, attempt=head.attempt + 1, started_at=began, updated_at=now)


def _running(present: Sequence[Run]) -> bool:
    return any(run.status is RunStatus.RUNNING for run in present)


def _pending(present: Sequence[Run]) -> list[Run]:
    return [run for run in present if run.status is RunStatus.PENDING]
