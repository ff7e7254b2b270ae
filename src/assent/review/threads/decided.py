"""A decision on its way to its thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import Delivery, Failure
from assent.review.decisions.undo import reopen, still_asked
from assent.review.model.items import Item, ItemStatus
from assent.review.rows import decisions, items
from assent.review.thread_items import SYSTEM
from assent.threads.rows import contributors


def asked_by(tx: Tx, item_id: str) -> Item | None:
    """The item of the decision."""
    return items.get(tx, item_id)


def is_withdrawn(tx: Tx, delivery: Delivery, item_id: str, interrupt_id: str) -> bool:
    """Whether the delivery's decision was withdrawn. A delivery without a decision reports an expired item or a settled
    call in doubt."""
    decision = decisions.sent_by(tx, item_id, delivery.id)
    if decision is not None:
        return not decision.standing
    item = items.get(tx, item_id)
    return item is not None and item.status is ItemStatus.PENDING and item.interrupt_id == interrupt_id


def decider(tx: Tx, item_id: str) -> str:
    decision, item = decisions.closing(tx, item_id), items.get(tx, item_id)
    return decision.actor if decision else item.requester if item else SYSTEM


def note_contribution(tx: Tx, item_id: str, thread_id: str, said: Sequence[Mapping[str, Any]] = ()) -> None:
    """Records the author of the decision, and those of the comments that it delivers, as contributors of the thread."""
    for comment in said:
        contributors.add(tx, thread_id, str(comment["actor"]))
    if (decision := decisions.closing(tx, item_id)) is not None:
        decisions.note_contribution(tx, decision, thread_id)


def fail(tx: Tx, delivery: Delivery, asked: Item | None, reason: str) -> Failure:
    """Fails an undeliverable decision for good. Appends the reason to the timeline, and reopens the item if its thread
    still asks."""
    item = items.lock(tx, asked.id) if asked else None
    if item is not None:
        decision = decisions.sent_by(tx, item.id, delivery.id)
        details = {"decision": decision.id if decision else None, "reason": reason}
        if decision is not None and still_asked(tx, item):
            reopen(tx, item, decision)
            deliveries.recall(tx, delivery.id)
        events.append(tx, SYSTEM, "item.undeliverable", item.subject, details)
    return Failure(reason, final=True)
