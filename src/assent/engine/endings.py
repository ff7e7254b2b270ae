"""The transaction in which an attempt ends: run, thread, answers, webhook and the next run in line, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from assent.domain.frames import Frame, Stream
from assent.domain.runs import Outcome, Run, RunStatus
from assent.domain.threads import ThreadStatus
from assent.store import answers, asking, checkpoints, frames, runs, threads, webhooks
from assent.store.checkpoints import Attempt
from assent.store.transaction import Tx


def finish(
    tx: Tx,
    run: Run,
    attempt: Attempt,
    outcome: Outcome,
    *,
    shown: bool,
    last: tuple[Stream, Sequence[Frame]] | None = None,
    gated: bool = False,
) -> None:
    """Records the outcome if `attempt` still counts, else raises `Fenced` and changes nothing. `last` are the frames
    that end the stream, as far as followers read them from the table. `gated`: its graph has our gate in it."""
    before = threads.lock(tx, run.thread_id, values=False)
    runs.end(tx, attempt, outcome.status, outcome.error)
    if last is not None:
        frames.append(tx, *last)
    answers.settle(tx, run.id, {question["id"] for question in outcome.pending})
    if gated or outcome.status is not RunStatus.SUCCESS:
        asking.cut_off_by(tx, run)
    if outcome.rolled_back:
        checkpoints.remove_of_run(tx, run.thread_id, run.id)
        runs.remove(tx, run.id)
        waits = _restore(tx, run)
    else:
        waits = _record(tx, run.thread_id, outcome, shown=shown)
        if waits or outcome.next or (before and (before.waits or before.next)):
            asking.follow(tx, _waiting(run, outcome, gated=gated))
    webhooks.announce(tx, run, outcome)
    following = runs.promote(tx, run.thread_id, waits=waits)
    if following is not None and not waits:
        threads.set_status(tx, run.thread_id, ThreadStatus.BUSY)
    elif run.temporary and not waits:
        threads.remove(tx, run.thread_id)


def _record(tx: Tx, thread_id: str, outcome: Outcome, *, shown: bool) -> bool:
    """Whether the thread waits for an answer now."""
    threads.set_state(
        tx,
        thread_id,
        status=_status(outcome),
        values=outcome.values,
        interrupts=outcome.interrupts,
        error=outcome.error,
        next=list(outcome.next),
        shown=shown,
    )
    return bool(outcome.pending)


def _waiting(run: Run, outcome: Outcome, *, gated: bool) -> asking.Waiting:
    """A run that came to no end and asked nothing stopped at a breakpoint, unless someone stopped it or it failed."""
    stopped = outcome.status is RunStatus.SUCCESS and not outcome.pending
    return asking.Waiting(
        run.thread_id,
        outcome.pending,
        graph_id=run.graph_id,
        assistant_id=run.assistant_id,
        values=outcome.values,
        run=run,
        gated=gated,
        upcoming=outcome.next if stopped else (),
    )


def _status(outcome: Outcome) -> ThreadStatus:
    if outcome.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return ThreadStatus.ERROR
    return ThreadStatus.INTERRUPTED if outcome.pending or outcome.next else ThreadStatus.IDLE


def _restore(tx: Tx, run: Run) -> bool:
    """A rolled-back run leaves no trace: the row still shows the state before it, and the status and what is asked have
    to follow. An answer that it carried was never given. Whether the thread waits for an answer now."""
    thread = threads.get(tx, run.thread_id)
    if thread is None:
        return False
    answers.settle(tx, run.id, {question["id"] for question in thread.pending})
    before = next(iter(runs.page(tx, thread.id, status=None, limit=1, offset=0)), None)
    if run.answers:
        asking.follow(
            tx,
            asking.Waiting(
                thread.id,
                thread.pending,
                graph_id=run.graph_id,
                assistant_id=run.assistant_id,
                values=thread.values,
                run=before,
                upcoming=() if thread.waits else thread.next or (),
            ),
        )
    stopped = thread.waits or bool(thread.next)
    threads.set_status(tx, thread.id, ThreadStatus.INTERRUPTED if stopped else ThreadStatus.IDLE)
    return thread.waits
