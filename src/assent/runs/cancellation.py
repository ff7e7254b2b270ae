"""Cancels runs: at once if they have not begun, otherwise by a request to stop."""

from __future__ import annotations

from collections.abc import Sequence

from assent.kernel.store.transaction import Tx
from assent.runs import webhooks
from assent.threads.model.runs import Cancel, Cancelled, Outcome, Run, RunStatus
from assent.threads.rows import frames, runs


def cancel(tx: Tx, run: Run, how: Cancel) -> bool:
    """Ends a run that has not begun (True), or requests that it stops (False)."""
    if not runs.cancel_unbegun(tx, run, how):
        runs.ask_to_stop(tx, run, how)
        return False
    webhooks.announce(tx, run, Outcome(RunStatus.INTERRUPTED, rolled_back=how is Cancel.ROLLBACK))
    frames.close(tx, run)
    if how is Cancel.ROLLBACK:
        runs.remove(tx, run.id)
    return True


def interrupt(tx: Tx, run: Run) -> bool:
    return cancel(tx, run, Cancel.INTERRUPT)


def cancel_all(tx: Tx, wanted: Sequence[Run], how: Cancel) -> Cancelled:
    over = [run for run in wanted if cancel(tx, run, how)]
    return Cancelled(tuple(run for run in wanted if run not in over), tuple(over))
