"""The questions of a thread that should have an item and have none: their run was paused by an earlier version, or the
rows are lost."""

from __future__ import annotations

from collections.abc import Iterator

from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.dialects.breakpoint import NAME as BREAKPOINT
from assent.review.rows import grants, items
from assent.threads.model.runs import RunStatus
from assent.threads.model.threads import Thread
from assent.threads.rows import runs

STOP = "breakpoint"
"""Stands for the breakpoint that a thread has stopped at; it has no interrupt id before its item."""


def missing_items(tx: Tx, thread: Thread) -> list[str]:
    """The interrupt ids of the questions without an item. An answer that is on its way counts as one."""
    if runs.active(tx, thread.id):
        return []
    return [*_unasked(tx, thread), *([STOP] if stopped_at(tx, thread) and not _has_stop(tx, thread) else [])]


def stopped_at(tx: Tx, thread: Thread) -> list[str]:
    """The nodes that the thread has stopped before at a breakpoint. A cancelled run has next nodes, too."""
    last = None if thread.waits or not thread.next else runs.last_begun(tx, thread.id)
    return list(thread.next or ()) if last is not None and last.status is RunStatus.SUCCESS else []


def _unasked(tx: Tx, thread: Thread) -> Iterator[str]:
    asked = {item.interrupt_id for item in items.open_of_thread(tx, thread.id, lock=False)}
    for question in thread.pending:
        interrupt_id = str(question["id"])
        if interrupt_id in asked or grants.is_doubt(tx, thread.id, interrupt_id):
            continue
        latest = items.latest_of_interrupt(tx, thread.id, interrupt_id)
        if latest is None or not thread_items.is_answered(tx, latest):
            yield interrupt_id


def _has_stop(tx: Tx, thread: Thread) -> bool:
    stops = [item for item in items.of_thread(tx, thread.id) if item.dialect == BREAKPOINT]
    return any(item.status.open or thread_items.is_answered(tx, item) for item in stops)
