"""Ids of new threads that callers choose."""

from __future__ import annotations

from assent.errors import AlreadyExists
from assent.identity.model.access import Principal
from assent.kernel.store.transaction import Tx
from assent.review.rows import items
from assent.threads.rows.remote import remote_threads


def require_free(tx: Tx, caller: Principal, thread_id: str) -> None:
    """Refuses the id of a thread on another deployment, and of a deleted thread with questions of others: the owner of
    the new thread could end them, answer them, and guess their secrets."""
    asked = items.of_thread(tx, thread_id)
    if remote_threads.by_key(tx, thread_id) is None and all(item.requester == caller.actor for item in asked):
        return
    raise AlreadyExists(
        f"Thread with ID {thread_id} already exists", hint="choose another id: questions of others belong to this one"
    )
