"""An item as every surface shows it. Secrets are masked here, and nowhere else, so that no surface can forget to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assent.dialects import feedback
from assent.domain import canonical
from assent.domain.access import Principal, Scope
from assent.domain.canonical import Json
from assent.domain.items import Execution, Item, ItemStatus, Revision
from assent.domain.questions import TOO_MANY, Action, Question
from assent.domain.secrets import masked, secret_paths, spelled, without
from assent.errors import Forbidden
from assent.services.carrying import Case, case_of, doubts
from assent.services.decision_views import decision_view
from assent.services.rights import is_person, require_right
from assent.store import decisions, deliveries, grants, items
from assent.store.transaction import Tx

View = dict[str, Any]


def summary(item: Item) -> View:
    """One row of a list."""
    return {
        "id": item.id,
        "status": item.status,
        "resolution": item.resolution,
        "revision": item.revision,
        "hash": item.hash,
        "type": item.type,
        "dialect": item.dialect,
        "title": item.title,
        "summary": item.summary,
        "gated": item.gated,
        "risk": item.risk,
        "execution": item.execution,
        "requester": item.requester,
        "recipient": item.recipient,
        "approvals": {"given": item.approvals, "needed": item.policy["approvals"]},
        "claim": _claim(item),
        "source": {
            "deployment": item.deployment,
            "graph_id": item.graph_id,
            "assistant_id": item.assistant_id,
            "thread_id": item.thread_id,
            "run_id": item.run_id,
            "interrupt_id": item.interrupt_id,
        },
        "entity": {"type": item.entity_type, "id": item.entity_id} if item.entity_id else None,
        "created_at": _at(item.created_at),
        "updated_at": _at(item.updated_at),
        "expires_at": _at(item.expires_at),
        "decided_at": _at(item.decided_at),
        "decided_by": item.decided_by,
        "undo_until": _at(item.undo_until),
        "follows": item.follows,
    }


def full(tx: Tx, caller: Principal, item: Item) -> View:
    """Everything there is to know about it."""
    case = case_of(tx, item)
    question, secrets = case.question, _secrets(case)
    draft, snoozed_until = items.marks_of(tx, item.id, caller.actor)
    return {
        **summary(item),
        "description": without(question.description, secrets),
        "actions": [_action(action, case, secrets) for action in question.actions],
        "doubts": doubts(tx, case, {one.key for one in question.actions}) if item.status.open else [],
        "problems": [{"path": one.path, "message": one.message} for one in question.problems],
        "asked": _asked(case, question),
        "policy": item.policy,
        "decisions": [decision_view(tx, decision) for decision in decisions.of_item(tx, item.id)],
        "grants": [_grant_view(grant) for grant in grants.of_item(tx, item.id)],
        "delivery": _delivery(tx, item),
        "links": items.links_of(tx, item.id),
        "comments": len(items.comments_of(tx, item.id)),
        "can": _can(tx, caller, case),
        "draft": draft,
        "snoozed_until": _at(snoozed_until),
    }


def unmasked(tx: Tx, item: Item) -> list[View]:
    """The arguments that hold a secret, with it. Who calls this has told the timeline."""
    case = case_of(tx, item)
    secret = [action for action in case.question.actions if _paths(action, case)]
    return [{"key": action.key, "name": action.name, "args": action.args} for action in secret]


def revision_view(item: Item, revision: Revision, case: Case) -> View:
    """A revision as it was asked, whatever has come after it."""
    then = Case(item, revision, case.terms)
    question, secrets = then.question, _secrets(then)
    return {
        "revision": revision.number,
        "hash": revision.hash,
        "author": revision.author,
        "notes": revision.notes,
        "created_at": _at(revision.created_at),
        "title": question.title,
        "description": without(question.description, secrets),
        "actions": [_action(action, then, secrets) for action in question.actions],
    }


def comment_view(row: Any) -> View:
    return {"id": row.comment_id, "actor": row.actor, "text": row.text, "at": _at(row.at)}


def _action(action: Action, case: Case, secrets: Collection[str]) -> View:
    args = masked(action.args, _paths(action, case))
    return {
        "key": action.key,
        "name": action.name,
        "args": args,
        "args_text": canonical.text(args),
        "description": without(action.description, secrets),
        "allowed": list(action.allowed),
        "schema": action.schema,
        "risk": case.item.risk,
        "call_id": action.call_id,
        "edited": action.key in case.revision.edits,
    }


def _paths(action: Action, case: Case) -> list[tuple[str, ...]]:
    return secret_paths(action.schema, case.terms.mask)


def _secrets(case: Case) -> set[str]:
    """Of all its actions, as asked and as changed: what an agent says of one may repeat what is asked in another."""
    actions = (*case.asked.actions, *case.question.actions)
    return {secret for action in actions for secret in spelled(action.args, _paths(action, case))}


def _asked(case: Case, question: Question) -> Json:
    """The value as it was raised; left out where it holds a secret, which could stand anywhere in it."""
    secret = TOO_MANY in question.problems or any(_paths(action, case) for action in question.actions)
    return None if secret else case.revision.asked


def _grant_view(grant: Any) -> View:
    return {
        "id": grant.id,
        "tool": grant.tool,
        "call_id": grant.call_id,
        "status": grant.status,
        "revision": grant.revision,
        "not_before": _at(grant.not_before),
        "expires_at": _at(grant.expires_at),
        "run_id": grant.run_id,
    }


def _delivery(tx: Tx, item: Item) -> View | None:
    """The last one: where what was decided is now."""
    latest = deliveries.page(tx, status=None, subject=item.subject, limit=1, cursor=None).items
    if not latest:
        return None
    one = latest[0]
    facts = {"id": one.id, "kind": one.kind, "status": one.status, "attempts": one.attempts, "failure": one.failure}
    return {**facts, "due_at": _at(one.due_at), "delivered_at": _at(one.delivered_at)}


def _can(tx: Tx, caller: Principal, case: Case) -> list[str]:
    """What the caller could do now, as far as rights and status say; a policy may still refuse."""
    item, may = case.item, set[str]()
    decides = is_person(caller)
    named = decides and _is_let(tx, caller, case)
    waits = item.status is ItemStatus.PENDING or (item.status.open and item.held)
    if caller.may(Scope.COMMENTS_WRITE):
        may |= {"comment", "claim", "snooze"}
    if decides and waits:
        may.add("decide")
    if decides and item.status is ItemStatus.PENDING and (item.held or feedback(case.asked, "notes")):
        may.add("request_revision")
    if named and item.status.open:
        may.add("cancel")
    if item.status.open and caller.actor == item.requester:
        sent_back = item.held and item.status is ItemStatus.REVISION_REQUESTED
        may |= {"cancel", *(("resubmit",) if sent_back else ())}
    if _may_undo(tx, caller, item):
        may.add("undo")
    if named and any(_paths(action, case) for action in case.question.actions):
        may.add("reveal")
    if decides and item.execution is Execution.IN_DOUBT:
        may.add("settle_doubt")
    return sorted(may)


def _is_let(tx: Tx, caller: Principal, case: Case) -> bool:
    """Whether every rule of the item lets this person decide it."""
    try:
        require_right(tx, caller, case)
    except Forbidden:
        return False
    return True


def _may_undo(tx: Tx, caller: Principal, item: Item) -> bool:
    decision = decisions.closing(tx, item.id) if item.undo_until is not None and tx.now() < item.undo_until else None
    return decision is not None and decision.actor == caller.actor


def _claim(item: Item) -> View | None:
    return {"by": item.claimed_by, "until": _at(item.claimed_until)} if item.claimed_by else None


def _at(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


@dataclass(frozen=True, slots=True)
class ItemPage:
    items: list[View]
    next: str | None
    counts: Mapping[str, int]


def rows(found: Iterable[Item]) -> list[View]:
    return [summary(item) for item in found]
