"""The views of an item for every surface. Secrets are masked here, so that no surface can forget to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from assent.errors import Forbidden
from assent.identity.model.access import Principal, Scope
from assent.identity.rows import passkeys
from assent.kernel import canonical, jsontext
from assent.kernel.canonical import Json
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import Event
from assent.outbox import deliveries
from assent.review.decisions.comments import name_of
from assent.review.decisions.consequences import Case, case_of, doubts
from assent.review.decisions.rights import is_person, require_right, undo_refusal
from assent.review.decisions.views import decision_view
from assent.review.dialects import feedback, heard_with
from assent.review.model.calls.kinds import cautions_of
from assent.review.model.grants import Grant, GrantStatus, marks_of
from assent.review.model.items import Execution, Item, ItemStatus, Revision
from assent.review.model.masking import quoted
from assent.review.model.policies import Risk
from assent.review.model.questions import TOO_MANY, Action, ItemType, Question, Verb, headline
from assent.review.model.routing import advised
from assent.review.model.search.terms import shown_args
from assent.review.model.secrets import SECRET_NAMES, Text, shown_schema
from assent.review.rows import decisions, grants, items
from assent.review.rows.secrets import asks_itself, covering, covering_of, known_items
from assent.review.threads import elsewhere
from assent.threads.model.runs import RunStatus
from assent.threads.rows import answers, runs, threads
from assent.threads.rows.remote import deployments
from assent.threads.studio import studio_link

View = dict[str, Any]

_LONGEST_ARGUMENTS, _MOST_SHOWN = 400, 20
"""Limits of a list row: characters of one call's arguments, and number of calls."""

_LONGEST_RESULT = 4_000

_RISKS = [risk.value for risk in Risk]


def summary(tx: Tx, item: Item) -> View:
    """One row of a list."""
    now = tx.now()
    return {
        "id": item.id,
        "status": item.status,
        "resolution": item.resolution,
        "revision": item.revision,
        "hash": item.hash,
        "type": item.type,
        "kind": item.kind,
        "dialect": item.dialect,
        "title": item.title,
        "summary": item.summary,
        "gated": item.gated,
        "risk": item.risk,
        "risk_reasons": _risk_reasons(item),
        "confirm": item.policy.get("confirm"),
        "execution": item.execution,
        "requester": item.requester,
        "recipient": item.recipient,
        "routing": advised(item.routing),
        "approvals": {"given": item.approvals, "needed": item.policy["approvals"]},
        "owner": item.owner,
        "claim": _claim(item, now),
        "source": {
            "deployment": item.deployment,
            "graph_id": item.graph_id,
            "assistant_id": item.assistant_id,
            "thread_id": item.thread_id,
            "run_id": item.run_id,
            "interrupt_id": item.interrupt_id,
            "remote": _remote(tx, item) if item.remote else None,
            "elsewhere": _elsewhere(item),
        },
        "entity": {"type": item.entity_type, "id": item.entity_id} if item.entity_id else None,
        "created_at": _at(item.created_at),
        "updated_at": _at(item.updated_at),
        "expires_at": _at(item.expires_at),
        "decided_at": _at(item.decided_at),
        "decided_by": item.decided_by,
        "undo_until": _at(item.undo_until),
        "follows": item.follows,
        "sample": item.sample,
    }


def _elsewhere(item: Item) -> View | None:
    """The deployment and the thread of a gate elsewhere, by the names that its process uses."""
    if item.origin is None:
        return None
    origin = jsontext.load(item.origin)
    return {"deployment": origin["deployment"], "thread_id": origin["thread"]}


def _remote(tx: Tx, item: Item) -> View | None:
    """The thread on its deployment; None once the deployment was removed."""
    thread = elsewhere.thread_of(tx, item)
    deployment = deployments.get(tx, thread.deployment_id) if thread else None
    if thread is None or deployment is None:
        return None
    link = studio_link(deployment, thread.thread_id)
    return {"name": deployment.name, "url": deployment.url, "thread_id": thread.thread_id, "studio": link}


def _risk_reasons(item: Item) -> list[View]:
    """Each reason with its action, the highest risk first. Of an item from before reasons were stored, only its rules
    are known."""
    stored = item.policy.get("risks")
    if stored is None:
        rules = (rule for rule in item.policy["rules"] if rule.get("risk"))
        reasons = [{"action": None, "name": None, "risk": rule["risk"], "rule": rule["name"]} for rule in rules]
    else:
        reasons = [
            {"action": rating["action"], "name": rating["name"], **reason}
            for rating in stored
            for reason in rating["reasons"]
        ]
    return sorted(reasons, key=lambda reason: -_RISKS.index(reason["risk"]))


def with_arguments(tx: Tx, item: Item) -> View:
    """One row of a list, with the first calls and their arguments, truncated, and the number of all calls."""
    case = case_of(tx, item)
    calls = case.question.actions
    brief = [_brief(case, action) for action in calls[:_MOST_SHOWN]]
    return {**summary(tx, item), **_names_of(tx, item), "actions": brief, "calls": len(calls)}


def _names_of(tx: Tx, item: Item) -> View:
    """The names of the people whose ids the summary has."""
    people = {"owner_name": item.owner, "recipient_name": item.recipient}
    return {key: person and name_of(tx, person) for key, person in people.items()}


def _brief(case: Case, action: Action) -> View:
    return {"key": action.key, "name": action.name, "args_text": _args_text(case, action), **_risk(case, action)}


def _args_text(case: Case, action: Action) -> str:
    """In the agent's order, as on the item's page. The arguments of a question are the agent's text; the row's summary
    has it without secrets."""
    if case.question.type is ItemType.QUESTION:
        return case.item.summary
    masked = case.covers[action.key].masked(action.args)
    return headline(json.dumps(masked, ensure_ascii=False, separators=(",", ":")), "", _LONGEST_ARGUMENTS)


def full(tx: Tx, caller: Principal, item: Item, case: Case | None = None) -> View:
    """All details of an item. `case` is the same item, if the caller has it."""
    case = case or case_of(tx, item)
    question, words = case.question, case.words
    refusal = _refusal(tx, caller, case)
    draft, snoozed_until = items.marks_of(tx, item.id, caller.actor)
    return {
        **summary(tx, item),
        "title": words.without(item.title),
        "summary": words.without(item.summary),
        "description": question.description and words.without(question.description),
        "actions": [_action(action, case, words) for action in question.actions],
        "doubts": doubts(tx, case, {action.key for action in question.actions}) if item.status.open else [],
        "problems": [
            {"path": problem.path, "message": words.without(problem.message)} for problem in question.problems
        ],
        "asked": _asked(case, question),
        "policy": {**item.policy, "problems": words.inside(item.policy["problems"])},
        "decisions": [decision_view(tx, decision, case) for decision in decisions.of_item(tx, item.id)],
        "grants": [_grant_view(grant, case) for grant in grants.of_item(tx, item.id)],
        "delivery": _delivery(tx, item),
        **_names_of(tx, item),
        "links": items.links_of(tx, item.id),
        "followed_by": items.following(tx, item),
        "comments": items.size_of_comments(tx, item.id)[0],
        "hears": _hears(case),
        "can": _can(tx, caller, case, let=refusal is None),
        "deciders": _deciders(case),
        "refusal": refusal,
        "failure": _failure(tx, case),
        "draft": None if draft is None else covering_of(tx, known_items(tx, item, caller.actor))(draft),
        "snoozed_until": _at(snoozed_until),
    }


def unmasked(tx: Tx, item: Item) -> list[View]:
    """The arguments that contain a secret, unmasked. The caller of this function records that in the timeline."""
    case = case_of(tx, item)
    secret = [action for action in case.question.actions if case.covers[action.key].holds(action.args)]
    return [{"key": action.key, "name": action.name, "args": action.args} for action in secret]


def revision_view(revision: Revision, case: Case) -> View:
    """A revision of the case as it was asked, independent of later ones."""
    then, words = replace(case, revision=revision), case.words
    question = then.question
    return {
        "revision": revision.number,
        "hash": revision.hash,
        "author": revision.author,
        "notes": revision.notes and words.without(revision.notes),
        "created_at": _at(revision.created_at),
        "title": words.without(question.title),
        "description": question.description and words.without(question.description),
        "actions": [_action(action, then, words) for action in question.actions],
    }


def comment_view(row: Any, words: Text, mentioned: Sequence[str] = ()) -> View:
    """`words` are the secrets that its author knows."""
    facts = {"id": row.comment_id, "actor": row.actor, "text": words.without(row.text), "at": _at(row.at)}
    return {**facts, "mentions": list(mentioned)}


def event_view(event: Event, payload: str | None, words: Text) -> View:
    """The view of an event; the payload is null if it was erased. `words` are the secrets to remove from it."""
    facts = {"seq": event.seq, "at": event.at.isoformat(), "kind": event.kind, "actor": event.actor}
    return {**facts, "payload": None if payload is None else quoted(jsontext.load(payload), words)}


def _action(action: Action, case: Case, words: Text) -> View:
    args = shown_args(case.question, action, case.covers[action.key], words)
    return {
        "key": action.key,
        "name": action.name,
        "args": args,
        "args_text": canonical.text(args),
        "description": action.description and words.without(action.description),
        "allowed": list(action.allowed),
        "schema": words.inside(shown_schema(action.schema)),
        **_risk(case, action),
        "call_id": action.call_id,
        "edited": action.key in case.revision.edits,
    }


def _risk(case: Case, action: Action) -> View:
    """The risk of one action, with its reasons and cautions. Cautions quote the masked arguments."""
    rating = case.ratings.get(action.key)
    given = case.covers[action.key].masked(action.args)
    cautions = cautions_of(action.name, given) if case.question.type is not ItemType.QUESTION else []
    return {
        "risk": rating.risk if rating else None,
        "risk_reasons": [reason.to_json() for reason in rating.reasons] if rating else [],
        "cautions": [{"text": caution.text, "detail": caution.detail, "risk": caution.risk} for caution in cautions],
    }


def _asked(case: Case, question: Question) -> Json:
    """The value as it was raised; left out if it contains a secret, which could be anywhere in it."""
    asked = case.revision.asked
    secret = TOO_MANY in question.problems or case.holds_secrets or SECRET_NAMES.holds(asked)
    return None if secret or case.words.inside(asked) != asked else asked


def _grant_view(grant: Grant, case: Case) -> View:
    """A grant, with the result or error of its call, without secrets."""
    result = _result(grant)
    return {
        "id": grant.id,
        "tool": grant.tool,
        "call_id": grant.call_id,
        "status": grant.status,
        "revision": grant.revision,
        "not_before": _at(grant.not_before),
        "expires_at": _at(grant.expires_at),
        "run_id": grant.run_id,
        "started_at": _at(grant.started_at),
        "ended_at": _at(grant.ended_at),
        "result": result and case.words.without(result),
    }


def _result(grant: Grant) -> str | None:
    """The recorded result or error as text, truncated; None while there is none."""
    kept = grant.result
    if not isinstance(kept, dict) or grant.status not in (GrantStatus.DONE, GrantStatus.FAILED):
        return None
    if "error" in kept:
        return f"{kept['error']}: {kept.get('message')}"[:_LONGEST_RESULT]
    return None if "value" not in kept else _as_text(kept["value"])[:_LONGEST_RESULT]


def _as_text(value: Json) -> str:
    """The content of a tool's message, or the value as JSON."""
    message = value.get("of") if isinstance(value, dict) and value.get("assent") == "message" else None
    data = message.get("data") if isinstance(message, dict) else None
    content = data.get("content") if isinstance(data, dict) else value
    return content if isinstance(content, str) else canonical.text(content)


def _delivery(tx: Tx, item: Item) -> View | None:
    """The latest delivery of the item."""
    delivery = deliveries.latest(tx, item.subject)
    if delivery is None:
        return None
    facts = {
        "id": delivery.id,
        "kind": delivery.kind,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "failure": delivery.failure,
    }
    return {**facts, "due_at": _at(delivery.due_at), "delivered_at": _at(delivery.delivered_at)}


def _can(tx: Tx, caller: Principal, case: Case, *, let: bool) -> list[str]:
    """The operations that the caller could do now, by rights, rules and status."""
    item, may = case.item, set[str]()
    named = let and is_person(caller)
    waits = item.status is ItemStatus.PENDING or (item.status.open and item.held)
    if caller.may(Scope.COMMENTS_WRITE):
        may |= {"comment", "claim", "snooze"}
        may |= {"assign"} if is_person(caller) and item.status.open else set()
    if let and waits:
        may.add("decide")
    if named and case.terms.confirm and passkeys.of_person(tx, caller.id):
        may.add("confirm")
    if named and item.status is ItemStatus.PENDING and (item.held or feedback(case.asked, "notes")):
        may.add("request_revision")
    if named and item.status.open:
        may.add("cancel")
    if item.status.open and caller.actor == item.requester:
        sent_back = item.held and item.status is ItemStatus.REVISION_REQUESTED
        may |= {"cancel", *(("resubmit",) if sent_back else ())}
    if _may_undo(tx, caller, item):
        may.add("undo")
    if case.holds_secrets and (named or asks_itself(tx, caller.actor, item)):
        may.add("reveal")
    if named and item.execution is Execution.IN_DOUBT:
        may.add("settle_doubt")
    return sorted(may | ({"allow_always"} if _may_allow_always(caller, item) else set()))


def _may_allow_always(caller: Principal, item: Item) -> bool:
    return is_person(caller) and caller.may(Scope.POLICY_WRITE) and item.type == ItemType.TOOL and item.called_here


def _hears(case: Case) -> list[str]:
    """The verbs with which comments reach the agent's model. The callback of a request has them with every decision,
    and the gate adds them to the result of a call."""
    allowed = {verb for action in case.question.actions for verb in action.allowed}
    if case.item.held:
        return sorted(allowed)
    by_gate = marks_of(case.revision.asked, case.revision.response_schema) is not None
    return sorted(allowed & (heard_with(case.asked) | ({Verb.APPROVE, Verb.EDIT} if by_gate else set())))


def _deciders(case: Case) -> list[View]:
    """The deciders of each rule; a rule without deciders leaves it to everyone who may decide."""
    return [
        {"rule": rule, "roles": list(who.roles), "people": list(who.people), "groups": list(who.groups)}
        for rule, who in case.terms.deciders.items()
    ]


def _failure(tx: Tx, case: Case) -> View | None:
    """The error of the run that asked this, or that received the answer. If an answer could not be stored, the question
    returns; if the graph refused it, LangGraph accepts no other."""
    run_id = case.item.run_id if case.item.status.open else _answered_by(tx, case.item)
    run = runs.get(tx, run_id) if run_id else None
    if run is None or not run.error or run.status not in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return None
    thread = threads.get(tx, run.thread_id)
    if thread is None:
        return None
    cover = covering(tx, thread)
    cover(thread.values)  # an error may repeat secrets of calls without an item
    return {"run_id": run.id, **{name: cover.text(str(run.error.get(name, ""))) for name in ("error", "message")}}


def _answered_by(tx: Tx, item: Item) -> str | None:
    answer = answers.standing(tx, item.thread_id, item.interrupt_id) if item.thread_id and item.interrupt_id else None
    return answer.run_id if answer else None


def _refusal(tx: Tx, caller: Principal, case: Case) -> str | None:
    """The reason why the caller may not decide it; None if every rule allows it."""
    try:
        require_right(tx, caller, case)
    except Forbidden as error:
        return error.message
    return None


def _may_undo(tx: Tx, caller: Principal, item: Item) -> bool:
    decision = decisions.closing(tx, item.id) if item.undo_until is not None else None
    return decision is not None and undo_refusal(tx, caller, item, decision) is None


def _claim(item: Item, now: datetime) -> View | None:
    """None once the claim has ended."""
    standing = item.claimed_by and item.claimed_until is not None and item.claimed_until > now
    return {"by": item.claimed_by, "until": _at(item.claimed_until)} if standing else None


def _at(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


@dataclass(frozen=True, slots=True)
class ItemPage:
    items: list[View]
    next: str | None
    counts: Mapping[str, int]
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def rows(tx: Tx, listed: Iterable[Item]) -> list[View]:
    return [summary(tx, item) for item in listed]
