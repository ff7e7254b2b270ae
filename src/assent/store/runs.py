"""Runs as rows: the order of a thread, who executes what, and which attempt of it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, literal_column, select, update

from assent.domain.runs import Cancel, Cancelled, Outcome, Run, RunStatus, Strategy, next_in_line
from assent.domain.threads import Thread, ThreadStatus
from assent.store import frames, threads, webhooks
from assent.store.checkpoints import Attempt, Fenced
from assent.store.prepared import Prepared
from assent.store.tables import TENANT, runs
from assent.store.transaction import Tx

_ALL = select(runs).where(runs.c.tenant_id == TENANT)
_BY_ID = Prepared(_ALL.where(runs.c.run_id == bindparam("id")))
_OF_THREAD = _ALL.where(runs.c.thread_id == bindparam("thread_id"))
# As its index says it, word for word, or the runs that ended long ago would be looked at each time.
_IS_ACTIVE = runs.c.status.in_([literal_column("'pending'"), literal_column("'running'")])
_ACTIVE = Prepared(_OF_THREAD.where(_IS_ACTIVE).order_by(runs.c.position))
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
        started_at=bindparam("now"),
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
    status="pending", updated_at=bindparam("now")
)
_CANCEL_UNBEGUN = _THIS.where(runs.c.status == "pending", runs.c.attempt == 0).values(
    status="interrupted", cancel=bindparam("how"), ended_at=bindparam("now"), updated_at=bindparam("now")
)
_ASK_TO_STOP = _THIS.where(runs.c.status.in_(("pending", "running"))).values(
    cancel=bindparam("how"), updated_at=bindparam("now")
)
_WAKE = _THIS.values(wake_at=None)
_DELETE = delete(runs).where(runs.c.tenant_id == TENANT, runs.c.run_id == bindparam("id"))
_LEFT_RUNNING = update(runs).where(runs.c.status == "running").values(status="pending")
_UNFINISHED = (
    select(runs.c.tenant_id, runs.c.thread_id, runs.c.run_id, runs.c.wake_at)
    .where(runs.c.status == "pending")
    .order_by(runs.c.tenant_id, runs.c.thread_id)
)


def insert_pending(tx: Tx, run_id: str, thread_id: str, **columns: Any) -> None:
    """Puts a run behind those of its thread that have not ended; where there are none, the count begins again."""
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
    statement = _OF_THREAD.order_by(runs.c.created_at.desc(), runs.c.run_id.desc()).limit(limit).offset(offset)
    if status is not None:
        statement = statement.where(runs.c.status == status)
    return [run_of(row) for row in tx.all(statement, thread_id=thread_id)]


def of_status(tx: Tx, statuses: Sequence[RunStatus]) -> list[Run]:
    return [run_of(row) for row in tx.all(_ALL.where(runs.c.status.in_(statuses)))]


def begin(tx: Tx, run_id: str) -> Run | None:
    """Starts the next attempt of a run, if it is still that run's turn; otherwise None, and nobody starts it now."""
    run = get(tx, run_id)
    thread = threads.lock(tx, run.thread_id, values=False) if run else None
    if run is None or thread is None:
        return None
    present = active(tx, run.thread_id)
    head = next_in_line(_pending(present), waits=thread.waits, now=tx.now())
    return None if _running(present) or head is None or head.id != run_id else _begun(tx, head)


def begin_again(tx: Tx, attempt: Attempt) -> Run | None:
    """Follows an attempt that was cut off by the next one, in the same place; None where it does not count any more."""
    begun = tx.change(_BEGIN_AGAIN, id=attempt.run_id, was=attempt.number, now=tx.now())
    return get(tx, attempt.run_id) if begun else None


def promote(tx: Tx, thread_id: str, *, waits: bool, present: Sequence[Run] | None = None) -> Run | None:
    """Hands the thread's next run to the queue, unless one is being executed. `present` are its active runs, for who
    has just read them."""
    present = active(tx, thread_id) if present is None else present
    head = None if _running(present) else next_in_line(_pending(present), waits=waits, now=tx.now())
    if head is not None:
        tx.hand_over(head.id, begun=_begun(tx, head) if tx.take_place() else None)
    return head


def end(tx: Tx, attempt: Attempt, status: RunStatus, error: dict[str, Any] | None) -> None:
    if not tx.change(_END, id=attempt.run_id, was=attempt.number, new_status=status, new_error=error, now=tx.now()):
        raise Fenced


def hand_back(tx: Tx, attempt: Attempt) -> None:
    """Gives up an attempt without ending the run: someone else, or this process after its restart, goes on."""
    run = get(tx, attempt.run_id)
    if run is not None:
        resume(tx, run.thread_id, [attempt])


def resume(tx: Tx, thread_id: str, given_up: Sequence[Attempt] = ()) -> None:
    """Goes on with a thread that nobody is at: attempts that were given up can be followed by the next one, delayed
    runs are timed again. What is in order already stays so."""
    thread = threads.lock(tx, thread_id, values=False)
    if thread is None:
        return
    for attempt in given_up:
        tx.change(_HAND_BACK, id=attempt.run_id, was=attempt.number, now=tx.now())
    for run in active(tx, thread_id):
        if run.wake_at is not None and run.wake_at > tx.now():
            tx.hand_over(run.id, run.wake_at)
    _go_on(tx, thread)


def cancel(tx: Tx, run: Run, how: Cancel) -> bool:
    """Ends a run that has never started (True), or asks one that has to stop (False): its next attempt, if nobody is
    at it now, ends it as well."""
    if run.status is RunStatus.PENDING and tx.change(_CANCEL_UNBEGUN, id=run.id, how=how, now=tx.now()):
        webhooks.announce(tx, run, Outcome(RunStatus.INTERRUPTED, rolled_back=how is Cancel.ROLLBACK))
        frames.close(tx, run)
        if how is Cancel.ROLLBACK:
            remove(tx, run.id)
        return True
    tx.change(_ASK_TO_STOP, id=run.id, how=how, now=tx.now())
    return False


def cancel_all(tx: Tx, wanted: Sequence[Run], how: Cancel) -> Cancelled:
    over = [run for run in wanted if cancel(tx, run, how)]
    return Cancelled(tuple(run for run in wanted if run not in over), tuple(over))


def wake(tx: Tx, run_id: str) -> None:
    """A delayed run joins its thread's order like any other."""
    run = get(tx, run_id)
    thread = threads.lock(tx, run.thread_id, values=False) if run else None
    if run is not None and thread is not None and run.status is RunStatus.PENDING:
        tx.change(_WAKE, id=run_id)
        _go_on(tx, thread)


def remove(tx: Tx, run_id: str) -> bool:
    return tx.change(_DELETE, id=run_id) == 1


def recover(tx: Tx) -> list[tuple[str, str, str, datetime | None]]:
    """What a process that died left behind: its runs are pending again. Needs a transaction across tenants."""
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
    )


def _go_on(tx: Tx, thread: Thread) -> None:
    """The next run's turn, if there is one: then the thread is busy."""
    if promote(tx, thread.id, waits=thread.waits) is not None:
        threads.set_status(tx, thread.id, ThreadStatus.BUSY)


def _begun(tx: Tx, head: Run) -> Run:
    now = tx.now()
    tx.change(_BEGIN, id=head.id, was=head.attempt, now=now)
    return replace(head, status=RunStatus.RUNNING, attempt=head.attempt + 1, started_at=now, updated_at=now)


def _running(present: Sequence[Run]) -> bool:
    return any(run.status is RunStatus.RUNNING for run in present)


def _pending(present: Sequence[Run]) -> list[Run]:
    return [run for run in present if run.status is RunStatus.PENDING]
