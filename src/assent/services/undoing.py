"""Thinking again: a decision is taken back by who made it, before anything came of it."""

from __future__ import annotations

from dataclasses import replace

from assent.dialects.breakpoint import NAME as BREAKPOINT
from assent.domain.access import Principal
from assent.domain.items import Item, ItemStatus
from assent.domain.questions import Verb
from assent.domain.terms import Terms, next_due
from assent.errors import Conflict, Forbidden
from assent.services.deciding import found
from assent.store import asking, decisions, deliveries, events, grants, items, threads
from assent.store.decisions import Decision
from assent.store.transaction import Tx


def undo(tx: Tx, caller: Principal, item_id: str) -> Item:
    """Takes a decision back: its author, within the grace, before anything came of it."""
    item = found(tx, item_id, lock=True)
    decision = decisions.closing(tx, item.id)
    if decision is None:
        return _take_back(tx, caller, item)
    if decision.actor != caller.actor:
        raise Forbidden("only who has decided can take it back", missing=[decision.actor])
    if item.undo_until is None or tx.now() >= item.undo_until or decision.revision != item.revision:
        raise Conflict("it is too late to take this back")
    if decision.delivery_id and not deliveries.withdraw(tx, decision.delivery_id):
        raise Conflict("it is too late to take this back: it is on its way")
    if not _still_asked(tx, item):
        raise Conflict("it is too late to take this back: the agent does not ask it any more")
    grants.revoke_of_item(tx, item.id)
    decisions.dismiss_one(tx, decision.id)
    plan = Terms.from_json(item.policy).schedule(item.created_at, item.expires_at)
    due_at, due = next_due(plan, tx.now())
    reopened = items.change(
        tx,
        item,
        status=ItemStatus.PENDING,
        resolution=None,
        approvals=len(decisions.standing(tx, item)),
        decided_at=None,
        decided_by=None,
        undo_until=None,
        execution=None,
        due_at=due_at,
        due=due,
    )
    restored = _unedited(tx, caller, reopened, decision)
    events.append(tx, caller, "item.undone", item.subject, {"decision": decision.id})
    return restored


def _take_back(tx: Tx, caller: Principal, item: Item) -> Item:
    """One of several who had to agree thinks again, before enough have."""
    own = next((one for one in decisions.standing(tx, item) if one.actor == caller.actor), None)
    if own is None or not item.status.open:
        raise Conflict("there is no decision to take back")
    decisions.dismiss_one(tx, own.id)
    changed = items.change(tx, item, approvals=len(decisions.standing(tx, item)))
    restored = _unedited(tx, caller, changed, own)
    events.append(tx, caller, "item.undone", item.subject, {"decision": own.id})
    return restored


def _unedited(tx: Tx, caller: Principal, item: Item, undone: Decision) -> Item:
    """What its author changed goes with the decision: whoever approves next finds what was asked before, and not what
    someone has thought better of. It stays as strict as the change has made it."""
    current = items.revision(tx, item.id, item.revision)
    changed = current.author == undone.actor and any(one.verb is Verb.EDIT for one in undone.verdicts)
    if not (changed and current.edits):
        return item
    before = items.revision(tx, item.id, item.revision - 1)
    revision = replace(before, number=item.revision + 1, author=caller.actor, notes="undone")
    return asking.revise(tx, item, revision, actor=caller.actor, kind="item.edited")


def _still_asked(tx: Tx, item: Item) -> bool:
    """Whether the thread still stands where it asked; a request asks until it is closed."""
    if item.held or item.thread_id is None:
        return True
    thread = threads.get(tx, item.thread_id)
    if thread is None:
        return False
    if item.dialect == BREAKPOINT:
        return bool(thread.next) and not thread.waits
    return any(question["id"] == item.interrupt_id for question in thread.pending)
