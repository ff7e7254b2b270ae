"""Retracts the unused approvals of a person who has lost the right to decide.

If the item needs more approvals, this one is dismissed. If the item is approved and the decision is not delivered, or
its run has not begun, the item is reopened and the run cancelled. If the decision was delivered and the call not made,
its grant is revoked, and the gate asks again. Calls that have begun and rejections are unchanged. The person's standing
approvals and claims end as well, and pending items have no owner. Restored rights restore none of this.
"""

from __future__ import annotations

from typing import Protocol

from assent.identity.model.access import Principal, Scope
from assent.identity.model.users import User
from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review import changes
from assent.review.collaboration import owners
from assent.review.decisions.consequences import Case, case_of
from assent.review.decisions.rights import counted, may_still_decide
from assent.review.decisions.undo import reopen, still_asked
from assent.review.dialects.assistant.clarification import NAME as CLARIFICATION
from assent.review.model.decisions import Decision
from assent.review.model.items import Item
from assent.review.model.lifecycle import Recalled, Recounted
from assent.review.model.routing import Reason, Route, marked
from assent.review.rows import decisions, inboxes, items, policies
from assent.review.threads.withdrawal import delivering_run, promote_next, withdraw_answers
from assent.threads.model.runs import Run
from assent.threads.rows import runs, threads


class Cancel(Protocol):
    """Cancels a run that has not begun."""

    def __call__(self, tx: Tx, run: Run, /) -> object: ...


class Retraction:
    def __init__(self, cancel: Cancel) -> None:
        self._cancel = cancel

    def hold(self, tx: Tx, user: User) -> None:
        """Locks the rows that `retract` may change in the order of a decision: threads, items, then the person."""
        unused = _unused_of(tx, user)
        present = [item for item_id in unused if (item := items.get(tx, item_id)) is not None]
        for thread_id in sorted({item.thread_id for item in present if item.thread_id is not None}):
            threads.lock(tx, thread_id, values=False)
        for item_id in unused:
            items.lock(tx, item_id)

    def retract(self, tx: Tx, caller: Principal, user: User) -> None:
        """`user` has the current rights of the person."""
        for item_id in _unused_of(tx, user):
            item = items.lock(tx, item_id)
            answer = item is not None and item.dialect == CLARIFICATION and not item.gated  # an answer, not a decision
            if item is not None and not answer:
                _retract_from(tx, caller, user, case_of(tx, item), self._cancel)
        if not user.may(Scope.POLICY_WRITE):
            _end_standing_approvals(tx, caller, user)
        if not user.may(Scope.DECIDE):
            _release_claims(tx, caller, user)
            _hand_over(tx, caller, user)
            owners.release_all(tx, caller, user)

    def forget(self, tx: Tx, user: User) -> None:
        """Removes the person's saved views of the inbox."""
        inboxes.remove_all(tx, user.actor)


def _unused_of(tx: Tx, user: User) -> list[str]:
    """The ids of items with unused approvals, including those of runs that have not begun."""
    waiting = [item for item_id in decisions.behind_runs_of(tx, user.actor) if (item := items.get(tx, item_id))]
    carried = {item.id for item in waiting if delivering_run(tx, item) is not None}
    return sorted(carried.union(decisions.unused_of(tx, user.actor)))


def _retract_from(tx: Tx, caller: Principal, user: User, case: Case, cancel: Cancel) -> None:
    if may_still_decide(tx, user.actor, case):
        return
    item = case.item
    own = next((decision for decision in decisions.standing(tx, item) if decision.actor == user.actor), None)
    if own is None:  # retracted together with another answer of the same run
        return
    if not item.status.open and (run := delivering_run(tx, item)) is not None:
        return _stop(tx, caller, run, own, cancel)
    changed = _recounted(tx, case, own) if item.status.open else _recalled(tx, item, own)
    _append_event(tx, caller, changed, own)


def _append_event(tx: Tx, caller: Principal, item: Item, own: Decision) -> None:
    details = {"decision": own.id, "of": own.actor, "approvals": item.approvals, "status": item.status}
    events.append(tx, caller, "item.approval_retracted", item.subject, details)


def _stop(tx: Tx, caller: Principal, run: Run, own: Decision, cancel: Cancel) -> None:
    """Cancels a run that has not begun and reopens its items."""
    for item, closing in withdraw_answers(tx, caller, run):
        lost = own if own.item_id == item.id else closing
        decisions.dismiss_one(tx, lost.id)
        _append_event(tx, caller, item, lost)
    cancel(tx, run)
    promote_next(tx, run.thread_id)


def _recounted(tx: Tx, case: Case, own: Decision) -> Item:
    left = [decision for decision in counted(tx, case) if decision.id != own.id]
    return changes.apply(tx, own.actor, case.item, Recounted(decision_id=own.id, approvals=len(left)))


def _recalled(tx: Tx, item: Item, own: Decision) -> Item:
    """Reopens the item if its decision is undelivered, otherwise revokes its grant."""
    closing = decisions.closing(tx, item.id) or own
    if still_asked(tx, item) and _is_unsent(tx, item, closing):
        decisions.dismiss_one(tx, own.id)
        return reopen(tx, item, closing)
    return changes.apply(tx, own.actor, item, Recalled())


def _is_unsent(tx: Tx, item: Item, closing: Decision) -> bool:
    """Whether the decision is undelivered and its delivery is now stopped. A run on this server gets it in a
    transaction that checks the decision; an external address may already have read it."""
    if closing.delivery_id is None:
        return False
    if item.held or runs.get(tx, closing.delivery_id) is not None:
        return deliveries.withdraw(tx, closing.delivery_id)
    return deliveries.recall(tx, closing.delivery_id)


def _end_standing_approvals(tx: Tx, caller: Principal, user: User) -> None:
    for row in policies.approvals_of(tx, user.actor):
        policies.revoke_approval(tx, row.approval_id)
        subject = f"item:{row.item_id}" if row.item_id else "policy"
        events.append(tx, caller, "approval.revoked", subject, {"approval": row.approval_id})


def _release_claims(tx: Tx, caller: Principal, user: User) -> None:
    for item in items.claimed_by(tx, user.actor):
        items.change(tx, item, claimed_by=None, claimed_until=None)
        events.append(tx, caller, "item.unclaimed", item.subject)


def _hand_over(tx: Tx, caller: Principal, user: User) -> None:
    """The workspace reviews in the person's own list go to the operators."""
    for item in items.routed_to(tx, user.actor):
        unrouted = {**(item.routing or {}), "kind": Route.UNROUTED, "reason": Reason.PAIR}
        items.change(tx, item, recipient=None, routing=unrouted, title=marked(item.title))
        events.append(tx, caller, "item.rerouted", item.subject, {"from": user.actor, "to": None})
