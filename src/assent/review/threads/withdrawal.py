"""Withdrawal of decisions that have not taken effect. A decision takes effect when the run that delivers it begins.
Stopping that run earlier reopens the question, and requires the right to decide it."""

from __future__ import annotations

from typing import Any

from assent.errors import Conflict
from assent.identity.model.access import Principal
from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import DeliveryStatus
from assent.review import thread_items
from assent.review.decisions.undo import reopen, still_asked
from assent.review.dialects.breakpoint import NAME as BREAKPOINT
from assent.review.model.decisions import Decision
from assent.review.model.items import Item
from assent.review.rows import decisions, items
from assent.review.threads.answers import require_right_to_stop, require_withdrawal
from assent.threads.model.runs import Run, RunStatus
from assent.threads.model.threads import Thread, ThreadStatus
from assent.threads.rows import answers, runs, threads


def delivering_run(tx: Tx, item: Item) -> Run | None:
    """The run that delivers the decision of the item and has not begun."""
    active = runs.active(tx, item.thread_id) if item.thread_id is not None else []
    unbegun = [run for run in active if is_unbegun(run)]
    return next((run for run in unbegun if item.id in [answered.id for answered in _answered(tx, run)]), None)


def require_stoppable(tx: Tx, caller: Principal, run: Run) -> None:
    """Requires that the caller is the author of the run's decision, or may decide the item. Also holds for a run that
    its worker returned to the queue."""
    sent = deliveries.get(tx, run.id) if _waits(run) else None
    for item in _concerned(tx, run):
        decision = decisions.closing(tx, item.id)
        if decision is None or decision.actor != caller.actor:
            require_right_to_stop(tx, caller, item)
        if sent is not None and sent.status is DeliveryStatus.SENDING:
            raise Conflict("the decision is being delivered to the run", hint="try again", item=item.id)


def require_removable(tx: Tx, caller: Principal, thread: Thread) -> None:
    """Requires the right to end the questions and stop the decisions of the thread, which the caller has locked."""
    require_withdrawal(tx, caller, thread)
    for run in runs.active(tx, thread.id):
        require_stoppable(tx, caller, run)


def stop(tx: Tx, caller: Principal, run: Run) -> None:
    """Withdraws the run's answers as the caller. Call it before the run is cancelled or removed."""
    require_stoppable(tx, caller, run)
    for item, decision in withdraw_answers(tx, caller, run):
        details = {"decision": decision.id, "of": decision.actor, "run": run.id, "status": item.status}
        events.append(tx, caller, "item.decision_stopped", item.subject, details)


def withdraw_answers(tx: Tx, caller: Principal, run: Run) -> list[tuple[Item, Decision]]:
    """Reopens the items that the run answers, on a locked thread. Returns them with the decisions that had closed them.
    A run that has begun keeps its answers."""
    if not is_unbegun(run):
        return []
    asked = [item for item in _answered(tx, run) if still_asked(tx, item)]
    answers.settle(tx, run.id, answers.of_run(tx, run.id))
    deliveries.recall(tx, run.id)  # or the retry of a crashed sender would insert the run again
    closed = [(item, decision) for item in asked if (decision := decisions.closing(tx, item.id)) is not None]
    reopened = [(reopen(tx, item, decision), decision) for item, decision in closed]
    _ask_again(tx, caller, run, asked)
    return reopened


def promote_next(tx: Tx, thread_id: str) -> None:
    """Promotes the next run after one left the queue without running, or sets the thread's resting status."""
    thread = threads.get(tx, thread_id)
    if thread is None:
        return
    head = runs.promote(tx, thread_id, waits=runs.is_held(tx, thread))
    if head is not None:
        threads.set_status(tx, thread_id, ThreadStatus.BUSY)
    elif not runs.active(tx, thread_id):
        stopped = thread.waits or bool(thread.next)
        threads.set_status(tx, thread_id, ThreadStatus.INTERRUPTED if stopped else ThreadStatus.IDLE)


def is_unbegun(run: Run) -> bool:
    """Whether the run delivers an answer that has not taken effect."""
    return _waits(run) and run.attempt == 0


def _waits(run: Run) -> bool:
    return run.answers and run.status is RunStatus.PENDING


def _answered(tx: Tx, run: Run) -> list[Item]:
    """The items that a pending run answers, locked."""
    if not _waits(run):
        return []
    answered = [
        items.latest_of_interrupt(tx, run.thread_id, interrupt_id) for interrupt_id in answers.of_run(tx, run.id)
    ]
    if run.passes is not None:
        breakpoints = [item for item in items.of_thread(tx, run.thread_id) if item.dialect == BREAKPOINT]
        answered.append(max(breakpoints, key=lambda item: item.created_at, default=None))
    return [locked for item in answered if item is not None and (locked := items.lock(tx, item.id)) is not None]


def _concerned(tx: Tx, run: Run) -> list[Item]:
    """The items that the run answers, and the item in doubt whose settlement it delivers."""
    answered = {item.id: item for item in _answered(tx, run)}
    sent = deliveries.get(tx, run.id) if _waits(run) else None
    item = items.get(tx, sent.subject.removeprefix("item:")) if sent is not None else None
    return list({**({item.id: item} if item else {}), **answered}.values())


def _ask_again(tx: Tx, caller: Principal, run: Run, asked: list[Item]) -> None:
    """Creates items for the questions that were not decided, such as expired ones. The others are reopened already."""
    thread = threads.get(tx, run.thread_id)
    if thread is None:
        return
    first = asked[0] if asked else None
    facts: dict[str, Any] = {
        "run": runs.get(tx, first.run_id) if first and first.run_id else None,
        "asker": first.requester if first else None,
        "gated": any(item.gated for item in asked),
        "upcoming": (thread.next or ()) if run.passes is not None and not thread.waits else (),
    }
    thread_items.follow(tx, thread_items.Waiting.of(thread, thread.pending, thread.values, by=caller.actor, **facts))
