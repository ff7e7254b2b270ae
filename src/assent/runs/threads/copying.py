"""Copies a thread with its state, history and open questions, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assent.errors import AssentError, Conflict
from assent.identity.model.access import Principal
from assent.kernel.quotas import documents
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.threads import copies
from assent.review.threads.breakpoints import open_breakpoint
from assent.runs.continuation import copy_asker
from assent.runs.threads import states
from assent.runs.threads.states import existing_thread, shown_thread
from assent.threads.model.runs import Outcome, Run
from assent.threads.model.threads import Lifetime, Thinning, Thread, ThreadStatus, Visibility
from assent.threads.rows import contributors, runs, threads
from assent.threads.rows.state import checkpoints, thread_storage

Past = tuple[Any, ...]
_COPIED = ("threads", "thread_values", "checkpoints", "checkpoint_writes", "checkpoint_parts")


def copy(
    tx: Tx,
    thread_id: str,
    caller: Principal,
    copy_id: str,
    more: dict[str, Any],
    visibility: Visibility,
    is_gated: Callable[[str], bool],
    past: Past | None,
) -> tuple[Thread, bool, Run | None]:
    """The copy, whether the original is running (its row then lags behind its checkpoints), and the run that asks on
    the copy. The copy has the same questions and contributors, with the caller as requester. `past` is the fingerprint
    of the data that was checked for secrets."""
    source = threads.lock(tx, thread_id)
    if source is None:
        raise nothing_to_copy(thread_id)
    if past not in (None, _past_of(tx, thread_id)):
        raise Conflict("The thread changed while it was checked for secrets.", hint="try again")
    merged = {**source.metadata, **more}
    documents.require(tx, metadata=merged)
    threads.insert(
        tx,
        copy_id,
        merged,
        config=source.config,
        owner=caller.actor,
        visibility=visibility,
        turn_ended_at=source.turn_ended_at,
    )
    contributors.copy(tx, thread_id, copy_id)
    thread_storage.copy_checkpoints(tx, thread_id, copy_id)
    if source.ttl_minutes is not None:
        threads.set_lifetime(tx, copy_id, Lifetime(source.ttl_minutes, Thinning(source.ttl_strategy or "delete")))
    upcoming = (source.next or ()) if open_breakpoint(tx, source) else ()
    running = source.status is ThreadStatus.BUSY
    asks = running or source.waits or bool(upcoming)
    asker = copy_asker(tx, source, existing_thread(tx, copy_id), caller.actor) if asks else None
    if source.ran and not running:
        threads.set_state(
            tx,
            copy_id,
            status=source.status,
            values=source.values,
            interrupts=source.interrupts or {},
            error=source.error,
            next=source.next or [],
        )
        facts: dict[str, Any] = {
            "run": asker,
            "asker": caller.actor,
            "gated": is_gated(source.graph_id or ""),
            "upcoming": upcoming,
        }
        thread_items.follow(
            tx, thread_items.Waiting.of(existing_thread(tx, copy_id), source.pending, source.values, **facts)
        )
        copies.keep_terms(tx, thread_id, copy_id)
    return shown_thread(tx, copy_id), running, asker


def with_past(tx: Tx, thread_id: str) -> tuple[Thread, Past]:
    source = threads.get(tx, thread_id)
    if source is None:
        raise nothing_to_copy(thread_id)
    return source, _past_of(tx, thread_id)


def _past_of(tx: Tx, thread_id: str) -> Past:
    """A fingerprint that changes when copied data is added."""
    sizes = thread_storage.sizes(tx, thread_id)
    return checkpoints.heads(tx, thread_id), *(sizes.get(name) for name in _COPIED)


def refresh(
    tx: Tx, thread_id: str, copy_id: str, outcome: Outcome, *, actor: str, asker: Run | None, gated: bool
) -> Thread:
    refreshed = states.refresh(tx, copy_id, outcome, actor, run=asker, gated=gated)
    copies.keep_terms(tx, thread_id, copy_id)
    if asker is not None and not outcome.pending:
        runs.remove(tx, asker.id)
    return refreshed


def nothing_to_copy(thread_id: str) -> AssentError:
    return Conflict("Conflict", hint=f"there is no thread {thread_id}")
