"""Deletes threads and their histories, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from assent.identity.model.access import Principal
from assent.identity.model.visibility import Visible
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.threads import open_items
from assent.review.threads.withdrawal import require_removable
from assent.runs import cancellation
from assent.runs.threads.states import existing_thread
from assent.threads.model.runs import Cancel, Run, RunStatus
from assent.threads.model.threads import Lifetime, Thinning, ThreadStatus
from assent.threads.rows import frames, runs, threads
from assent.threads.rows.state import thread_storage


def remove_or_stop(tx: Tx, thread_id: str, caller: Principal) -> tuple[list[Run], list[Run]]:
    """The running runs, which are asked to stop first, or else the active runs of the thread, now deleted."""
    require_removable(tx, caller, existing_thread(tx, thread_id, lock=True))
    active = runs.active(tx, thread_id)
    running = [run for run in active if run.status is RunStatus.RUNNING]
    if not running:
        return [], remove_with_runs(tx, thread_id, caller.actor)
    for run in running:
        cancellation.cancel(tx, run, Cancel.INTERRUPT)
    return running, []


def remove_with_runs(tx: Tx, thread_id: str, actor: str) -> list[Run]:
    """Deletes the thread and closes the streams of its active runs, which are returned."""
    active = runs.active(tx, thread_id)
    for run in active:
        frames.close(tx, run)
    thread_items.remove_thread(tx, thread_id, actor)
    return active


def visible_ids(tx: Tx, thread_ids: Sequence[str], visible: Visible | None) -> list[str]:
    present = [thread for thread_id in thread_ids if (thread := threads.get(tx, thread_id)) is not None]
    return [thread.id for thread in present if thread.shown_to(visible)]


def thin_out(tx: Tx, thread_id: str) -> bool:
    """Deletes the history unless a run is active: a rollback needs the checkpoints before the run."""
    missing = threads.lock(tx, thread_id) is None
    return not missing and not runs.active(tx, thread_id) and thread_storage.keep_latest(tx, thread_id)


def expire(tx: Tx, thread_id: str) -> bool:
    """Deletes the thread, or its history, unless its deadline was extended or a run has started since the search."""
    thread = threads.lock(tx, thread_id)
    if thread is None or thread.status is ThreadStatus.BUSY:
        return False
    if thread.ttl_minutes is None or thread.expires_at is None or thread.expires_at > tx.now():
        return False
    if thread.ttl_strategy == Thinning.KEEP_LATEST:
        renew(tx, thread_id)
        return thin_out(tx, thread_id)
    return not open_items.are_unsettled(tx, thread_id) and thread_items.remove_thread(tx, thread_id)


def renew(tx: Tx, thread_id: str) -> None:
    thread = threads.lock(tx, thread_id)
    if thread is not None and thread.ttl_minutes is not None:
        threads.set_lifetime(tx, thread_id, Lifetime(thread.ttl_minutes, Thinning.KEEP_LATEST))
