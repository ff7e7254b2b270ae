"""Records what was seen on the threads of a deployment, many in one transaction: questions become items, and items
whose question is gone are closed. Only the process with the lease of the deployment writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assent.kernel.quotas import quotas
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.model.questions import Resolution
from assent.review.thread_items import Waiting
from assent.review.threads import elsewhere
from assent.threads.model.deployments import Deployment
from assent.threads.rows.remote import deployments, remote_threads
from assent.threads.rows.remote.remote_threads import RemoteThread


class LeaseLost(Exception):
    """Another process follows this deployment now."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A thread with the questions that need an item. `doubted` are those whose answer was accepted and lost. Not
    `settled`: an answer is under way there."""

    thread: RemoteThread
    pending: Sequence[Mapping[str, Any]]
    doubted: tuple[str, ...] = ()
    gone: Resolution | None = None


def record(tx: Tx, deployment: Deployment, who: str, batch: Sequence[Observed]) -> list[RemoteThread]:
    """Only the process with the lease writes: one that was delayed must not write an outdated state. Returns the
    threads as recorded."""
    if not deployments.is_led(tx, deployment.id, who):
        raise LeaseLost
    if any(entry.pending for entry in batch):
        quotas.require_item(tx)
    entries = [_with_key_of_gate(tx, entry) for entry in batch]
    for entry in entries:
        if not remote_threads.save(tx, entry.thread):
            raise LeaseLost  # another process has recorded it meanwhile
        for interrupt_id in entry.doubted:
            elsewhere.doubt(tx, entry.thread.key, interrupt_id)
        thread_items.follow(tx, _waiting(deployment, entry))
    return [entry.thread for entry in entries]


def _with_key_of_gate(tx: Tx, entry: Observed) -> Observed:
    """A gate on a new thread may have asked before the thread was seen: its items are those of the thread."""
    thread = entry.thread
    known = remote_threads.get(tx, thread.deployment_id, thread.thread_id)
    key = known.key if known else elsewhere.key_of_gate(tx, thread, entry.pending) or thread.key
    return entry if key == thread.key else replace(entry, thread=replace(thread, key=key))


def _waiting(deployment: Deployment, entry: Observed) -> Waiting:
    return Waiting(
        entry.thread.key,
        entry.pending,
        graph_id=entry.thread.graph_id,
        assistant_id=entry.thread.assistant_id,
        asker=deployment.actor,
        deployment=deployment.id,
        far_id=entry.thread.thread_id,
        gone=entry.gone,
    )
