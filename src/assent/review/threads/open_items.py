"""The items of a thread that are not settled."""

from __future__ import annotations

from assent.kernel.store.transaction import Tx
from assent.review.model.items import Item
from assent.review.rows import items


def open_items(tx: Tx, thread_id: str) -> list[Item]:
    return items.open_of_thread(tx, thread_id)


def interrupts_of(tx: Tx, thread_id: str) -> set[str]:
    """The interrupt ids of the open items."""
    return {str(item.interrupt_id) for item in items.open_of_thread(tx, thread_id, lock=False)}


def are_unsettled(tx: Tx, thread_id: str) -> bool:
    """Whether the thread has a gated question, an undelivered decision or a call in doubt. These do not expire with the
    thread."""
    gated = any(item.gated for item in items.open_of_thread(tx, thread_id))
    return gated or bool(items.decided_of_thread(tx, thread_id) or items.left_in_doubt(tx, thread_id))


def gated_questions(tx: Tx, thread_id: str) -> dict[str, str]:
    """Interrupt id → item id, of the questions that only a person may answer."""
    waiting = items.open_of_thread(tx, thread_id, lock=False)
    return {str(item.interrupt_id): item.id for item in waiting if item.gated}
