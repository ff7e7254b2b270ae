"""People who shaped the current turn of a thread by more than a bare approval: by messages, edits, notes, updates of
the state, steers, metadata, the configuration of an assistant. Where a policy separates duties, they may not decide on
its results.

Programs never decide, so their contributions are not recorded. A separate table needs no lock on the thread: a decision
locks the item, and the thread's own writers lock the thread first.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import bindparam, delete, insert, select, update

from assent.identity.model.access import Kind
from assent.kernel.store.tables import TENANT, contributors, threads
from assent.kernel.store.transaction import Tx

_FOR_GOOD = datetime(9999, 1, 1, tzinfo=UTC)
"""The time of a contribution that lasts beyond every turn."""

_ALL = select(contributors.c.actor).where(
    contributors.c.tenant_id == TENANT, contributors.c.thread_id == bindparam("thread")
)
_REMOVE = delete(contributors).where(
    contributors.c.tenant_id == TENANT, contributors.c.thread_id == bindparam("thread")
)
_AGAIN = (
    update(contributors)
    .where(contributors.c.tenant_id == TENANT, contributors.c.thread_id == bindparam("thread"))
    .where(contributors.c.actor == bindparam("who"), contributors.c.at < bindparam("now"))
    .values(at=bindparam("now"))
)
_ALL_AGAIN = (
    update(contributors)
    .where(contributors.c.tenant_id == TENANT, contributors.c.thread_id == bindparam("thread"))
    .where(contributors.c.at < bindparam("now"))
    .values(at=bindparam("now"))
)
_OF_TURN = (
    select(contributors.c.actor)
    .outerjoin(  # a thread on another deployment has no row, and its turns do not end here
        threads,
        (threads.c.tenant_id == contributors.c.tenant_id) & (threads.c.thread_id == contributors.c.thread_id),
    )
    .where(contributors.c.tenant_id == TENANT, contributors.c.thread_id == bindparam("thread"))
    .where(threads.c.turn_ended_at.is_(None) | (contributors.c.at >= threads.c.turn_ended_at))
)
_COPY = insert(contributors).from_select(
    ["tenant_id", "thread_id", "actor", "at"],
    select(
        contributors.c.tenant_id,
        bindparam("target", type_=contributors.c.thread_id.type),
        contributors.c.actor,
        contributors.c.at,
    ).where(contributors.c.tenant_id == TENANT, contributors.c.thread_id == bindparam("thread")),
)


def add(tx: Tx, thread_id: str, actor: str, *, lasting: bool = False) -> None:
    """`lasting`: the contribution shapes every later turn as well, as metadata does."""
    if not actor.startswith(f"{Kind.REVIEWER}:"):
        return
    at = _FOR_GOOD if lasting else tx.now()
    if not tx.insert_new(contributors, thread_id=thread_id, actor=actor, at=at):
        tx.change(_AGAIN, thread=thread_id, who=actor, now=at)


def add_to_assistant(tx: Tx, assistant_id: str, actor: str) -> None:
    """Adds a contributor to the configuration of an assistant. These rows share the table with threads, whose ids are
    UUIDs."""
    add(tx, _assistant(assistant_id), actor, lasting=True)


def add_those_of_assistant(tx: Tx, assistant_id: str, thread_id: str) -> None:
    """Adds the assistant's contributors to the thread of its run."""
    for row in tx.all(_ALL, thread=_assistant(assistant_id)):
        add(tx, thread_id, row.actor, lasting=True)


def remove_those_of_assistant(tx: Tx, assistant_id: str) -> None:
    tx.change(_REMOVE, thread=_assistant(assistant_id))


def _assistant(assistant_id: str) -> str:
    return f"assistant:{assistant_id}"


def recall(tx: Tx, thread_id: str) -> None:
    """The thread returns to an older checkpoint: everyone who ever contributed has a part in its results."""
    tx.change(_ALL_AGAIN, thread=thread_id, now=tx.now())


def of_turn(tx: Tx, thread_id: str) -> set[str]:
    """The contributors since the thread's last completed turn; on a thread of another deployment, all of them."""
    return {row.actor for row in tx.all(_OF_TURN, thread=thread_id)}


def copy(tx: Tx, thread_id: str, target: str) -> None:
    tx.change(_COPY, thread=thread_id, target=target)
