"""The transaction that ends an attempt: run, thread, answers, webhook and promotion of the next run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.runs import webhooks
from assent.runs.checkpoints.backlog import Write, store_all
from assent.threads.model.frames import Frame, Stream
from assent.threads.model.runs import Outcome, Run, RunStatus
from assent.threads.model.threads import Thread, ThreadStatus
from assent.threads.rows import answers, frames, holds, runs, threads
from assent.threads.rows.state import checkpoints
from assent.threads.rows.state.checkpoints import Attempt


def finish(
    tx: Tx,
    run: Run,
    attempt: Attempt,
    outcome: Outcome,
    rest: Sequence[Write] = (),
    *,
    shown: bool,
    last: tuple[Stream, Sequence[Frame]] | None = None,
    gated: bool = False,
) -> None:
    """Records the outcome if `attempt` is current, else raises `Fenced`. `rest`: checkpoints that are not stored yet.
    `last`: the final frames of the stream, if followers read them from the table. `gated`: the graph contains the
    gate."""
    before = threads.lock(tx, run.thread_id, values=outcome.unread)
    store_all(tx, rest)
    outcome = _as_before(run, outcome, before) if outcome.unread else outcome
    runs.end(tx, attempt, outcome.status, outcome.error)
    if last is not None:
        frames.append(tx, *last)
    if outcome.pending:
        active = {other.id for other in runs.active(tx, run.thread_id)}
        answers.settle_ended(tx, run.thread_id, {question["id"] for question in outcome.pending}, active)
    if gated or outcome.status is not RunStatus.SUCCESS:
        thread_items.cut_off_by(tx, run)
    if run.answers and not gated:
        thread_items.unobserved(tx, run.thread_id, [question["id"] for question in outcome.pending])
    if outcome.rolled_back:
        checkpoints.remove_of_run(tx, run.thread_id, run.id)
        runs.remove(tx, run.id)
        waits = _restore(tx, run)
    else:
        waits = _record(tx, run.thread_id, outcome, shown=shown)
        if waits or outcome.next or (before and (before.waits or before.next)):
            thread_items.follow(tx, _waiting(_asker(tx, run, outcome), outcome, gated=gated))
            waits = waits or (bool(outcome.next) and holds.is_stopped(tx, run.thread_id))
    webhooks.announce(tx, run, outcome)
    following = runs.promote(tx, run.thread_id, waits=waits)
    if following is not None and not waits:
        threads.set_status(tx, run.thread_id, ThreadStatus.BUSY)
    elif run.temporary and not waits:
        thread_items.remove_thread(tx, run.thread_id)


def give_up(tx: Tx, run: Run, attempt: Attempt, outcome: Outcome, *, last: tuple[Stream, Sequence[Frame]]) -> None:
    """Ends the run with only its status and error, if the outcome cannot be stored, and frees the thread."""
    thread = threads.lock(tx, run.thread_id, values=False)
    runs.end(tx, attempt, outcome.status, outcome.error)
    frames.append(tx, *last)
    following = runs.promote(tx, run.thread_id, waits=thread is not None and runs.is_held(tx, thread))
    threads.set_status(tx, run.thread_id, ThreadStatus.ERROR if following is None else ThreadStatus.BUSY)


def _as_before(run: Run, outcome: Outcome, thread: Thread | None) -> Outcome:
    """The outcome with the state of the thread's row, including its earlier questions and the breakpoint that the run
    was to pass."""
    if thread is None:
        return outcome
    state = {"values": thread.values, "interrupts": thread.interrupts or {}, "next": tuple(thread.next or ())}
    stopped = () if run.passes is None or thread.waits else state["next"]
    return replace(outcome, **state, stopped=stopped)


def _record(tx: Tx, thread_id: str, outcome: Outcome, *, shown: bool) -> bool:
    """Writes the thread's row. Returns whether the thread waits for an answer."""
    threads.set_state(
        tx,
        thread_id,
        status=_status(outcome),
        values=outcome.values,
        interrupts=outcome.interrupts,
        error=outcome.error,
        next=list(outcome.next),
        shown=shown,
        ends_turn=outcome.status is RunStatus.SUCCESS and not outcome.pending and not outcome.next,
    )
    return bool(outcome.pending)


def _asker(tx: Tx, run: Run, outcome: Outcome) -> Run:
    """The run that asks: this one, or an earlier one if this run was refused."""
    head = checkpoints.latest(tx, run.thread_id, "") if outcome.refused else None
    if head is None:
        return run
    asked = checkpoints.askers(tx, run.thread_id, "", head.checkpoint_id)
    earlier = next((asked[task] for task in outcome.interrupts if asked.get(task)), None)
    return (runs.get(tx, earlier) if earlier else None) or run


def _waiting(run: Run, outcome: Outcome, *, gated: bool) -> thread_items.Waiting:
    """The thread's questions. A successful run with upcoming nodes and no question has stopped at a breakpoint."""
    stopped = outcome.status is RunStatus.SUCCESS and not outcome.pending
    return thread_items.Waiting(
        run.thread_id,
        outcome.pending,
        graph_id=run.graph_id,
        assistant_id=run.assistant_id,
        values=outcome.values,
        run=run,
        gated=gated,
        upcoming=outcome.next if stopped else outcome.stopped,
        notes=outcome.notes,
        by=run.actor,
    )


def _status(outcome: Outcome) -> ThreadStatus:
    if outcome.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return ThreadStatus.ERROR
    return ThreadStatus.INTERRUPTED if outcome.pending or outcome.next else ThreadStatus.IDLE


def _restore(tx: Tx, run: Run) -> bool:
    """Restores status and questions after a rollback, from the row, which has the state before the run. Withdraws the
    run's answers. Returns whether the thread is held by a question or breakpoint."""
    thread = threads.get(tx, run.thread_id)
    if thread is None:
        return False
    answers.settle(tx, run.id, {question["id"] for question in thread.pending})
    before = runs.last_begun(tx, thread.id)
    if run.answers:
        thread_items.follow(
            tx,
            thread_items.Waiting(
                thread.id,
                thread.pending,
                graph_id=run.graph_id,
                assistant_id=run.assistant_id,
                values=thread.values,
                run=before,
                upcoming=() if thread.waits else thread.next or (),
                by=run.actor,
            ),
        )
    stopped = thread.waits or bool(thread.next)
    threads.set_status(tx, thread.id, ThreadStatus.INTERRUPTED if stopped else ThreadStatus.IDLE)
    return runs.is_held(tx, thread)
