"""Undo: the author withdraws a decision during its grace period, before it takes effect."""

from __future__ import annotations

from dataclasses import replace

from assent.errors import Conflict
from assent.identity.model.access import Principal
from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review import changes, thread_items
from assent.review.decisions.consequences import case_of
from assent.review.decisions.decide import require_item
from assent.review.decisions.rights import counted, undo_refusal
from assent.review.dialects.breakpoint import NAME as BREAKPOINT
from assent.review.model.decisions import Decision
from assent.review.model.items import Item
from assent.review.model.lifecycle import Edited, Recounted, Reopened
from assent.review.model.questions import Verb
from assent.review.rows import decisions, items
from assent.threads.rows import threads


def undo(tx: Tx, caller: Principal, item_id: str) -> Item:
    """Withdraws a decision: by its author, within the grace period, before it takes effect."""
    item = require_item(tx, item_id, lock=True)
    decision = decisions.closing(tx, item.id)
    if decision is None:
        return _take_back(tx, caller, item)
    if refusal := undo_refusal(tx, caller, item, decision):
        raise refusal
    if decision.delivery_id and not deliveries.withdraw(tx, decision.delivery_id):
        raise Conflict("too late to undo: the decision is being delivered")
    if not still_asked(tx, item):
        raise Conflict("too late to undo: the agent no longer asks this")
    reopened = reopen(tx, item, decision)
    restored = _unedited(tx, caller, reopened, decision)
    events.append(tx, caller, "item.undone", item.subject, {"decision": decision.id})
    return restored


def reopen(tx: Tx, item: Item, decision: Decision) -> Item:
    """Reopens the item as if the closing decision had not been made. It must not have taken effect yet."""
    left = [other for other in counted(tx, case_of(tx, item)) if other.id != decision.id]
    return changes.apply(tx, decision.actor, item, Reopened(decision_id=decision.id, approvals=len(left)))


def _take_back(tx: Tx, caller: Principal, item: Item) -> Item:
    """Withdraws one of several required approvals, before the item is decided."""
    own = next((decision for decision in decisions.standing(tx, item) if decision.actor == caller.actor), None)
    if own is None or not item.status.open:
        raise Conflict("there is no decision of yours to undo")
    left = [other for other in counted(tx, case_of(tx, item)) if other.id != own.id]
    changed = changes.apply(tx, caller, item, Recounted(decision_id=own.id, approvals=len(left)))
    restored = _unedited(tx, caller, changed, own)
    events.append(tx, caller, "item.undone", item.subject, {"decision": own.id})
    return restored


def _unedited(tx: Tx, caller: Principal, item: Item, undone: Decision) -> Item:
    """Undoes the edits of the withdrawn decision: the next approver sees the question as it was before. The terms stay
    as strict as the edit made them."""
    current = items.revision(tx, item.id, item.revision)
    changed = current.author == undone.actor and any(verdict.verb is Verb.EDIT for verdict in undone.verdicts)
    if not (changed and current.edits):
        return item
    before = items.revision(tx, item.id, item.revision - 1)
    revision = replace(before, number=item.revision + 1, author=caller.actor, notes="undone")
    return thread_items.revise(tx, item, Edited(revision=revision), actor=caller.actor)


def still_asked(tx: Tx, item: Item) -> bool:
    """Whether the thread still waits at the question; a request waits until it is closed. A thread elsewhere is
    asked just before the decision is sent."""
    if item.held or item.thread_id is None or item.remote:
        return True
    thread = threads.get(tx, item.thread_id)
    if thread is None:
        return False
    if item.dialect == BREAKPOINT:
        return bool(thread.next) and not thread.waits
    return any(question["id"] == item.interrupt_id for question in thread.pending)
