"""Questions of threads on other deployments, and the answers that were sent there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import Delivery, DeliveryStatus, Failure
from assent.review import changes, thread_items
from assent.review.model.items import Execution, Item
from assent.review.model.lifecycle import Doubted, Overtaken
from assent.review.model.questions import Resolution
from assent.review.rows import decisions, items
from assent.review.thread_items import SYSTEM, Waiting
from assent.threads.rows.remote import remote_threads
from assent.threads.rows.remote.remote_threads import RemoteThread


def accepted_answers(tx: Tx, waiting: Waiting) -> dict[str, str]:
    """The questions of a thread that its deployment has accepted an answer to, with the delivery of each answer."""
    asked = {str(question["id"]): question for question in waiting.pending}
    latest = {id: items.latest_of_interrupt(tx, waiting.thread_id, id) for id in asked}
    return {
        id: delivery_id
        for id, item in latest.items()
        if item is not None
        and not item.status.open
        and thread_items.asks_same(tx, item, asked[id])
        and (delivery_id := _accepted(tx, item)) is not None
    }


def _accepted(tx: Tx, item: Item) -> str | None:
    latest = deliveries.page(tx, status=None, subject=item.subject, limit=1, cursor=None).items
    return latest[0].id if latest and latest[0].status is DeliveryStatus.DELIVERED else None


def doubt(tx: Tx, key: str, interrupt_id: str) -> None:
    """The deployment accepted the answer and asks again, without a trace of it: whether it took effect is unknown."""
    latest = items.latest_of_interrupt(tx, key, interrupt_id)
    item = items.lock(tx, latest.id) if latest else None
    if item is not None and item.execution is None:
        told = {"reason": "the deployment accepted the answer, and asks again"}
        changes.apply(tx, SYSTEM, item, Doubted(asked_in=interrupt_id, told=told))


def is_in_doubt(item: Item) -> bool:
    return item.execution is Execution.IN_DOUBT


def thread_of(tx: Tx, item: Item) -> RemoteThread | None:
    """The thread that asks this on its deployment. That of a gate elsewhere is known once it has been seen there."""
    if item.origin is not None:
        return remote_threads.get(tx, item.deployment, str(items.asked_on(item)))
    return remote_threads.by_key(tx, item.thread_id) if item.thread_id else None


def still_asks(tx: Tx, item: Item, thread: RemoteThread, pending: list[Mapping[str, Any]]) -> bool:
    """Whether the thread asks exactly the question that was decided. A gate there compares the rest itself."""
    if item.origin is not None:
        named = (thread.deployment_id, thread.thread_id)
        asked = (thread_items.asked_by_gate(tx, question, *named) for question in pending)
        return any(gated is not None and gated.id == item.id for gated in asked)
    return any(
        str(question["id"]) == item.interrupt_id and thread_items.asks_same(tx, item, question) for question in pending
    )


def key_of_gate(tx: Tx, thread: RemoteThread, pending: Sequence[Mapping[str, Any]]) -> str | None:
    """The id here of the thread, if a gate on it has asked before the thread was seen."""
    named = (thread.deployment_id, thread.thread_id)
    asked = (thread_items.asked_by_gate(tx, question, *named) for question in pending)
    return next((item.thread_id for item in asked if item is not None), None)


def overtaken(tx: Tx, delivery: Delivery, item_id: str, resolution: Resolution, reason: str) -> Failure:
    """The thread went on before the decision reached it."""
    item, decision = items.lock(tx, item_id), decisions.sent_by(tx, item_id, delivery.id)
    if item is not None and decision is not None and decision.standing:
        changes.apply(tx, SYSTEM, item, Overtaken(decision_id=decision.id, resolution=resolution, begun=False))
    return Failure(reason, final=True)


def close_all(tx: Tx, deployment_id: str, resolution: Resolution, actor: str) -> int:
    """Closes the open items of a deployment."""
    present = items.open_of_deployment(tx, deployment_id)
    for item in present:
        thread_items.close(tx, item, resolution, actor)
    return len(present)
