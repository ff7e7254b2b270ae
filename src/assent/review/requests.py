"""Requests through the API: an agent or a service asks a person about anything, without a waiting run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from assent.errors import Conflict, Forbidden, Invalid, InvalidTransition
from assent.identity.model.access import Principal
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.kernel.quotas import quotas
from assent.kernel.store import idempotency
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.decisions.consequences import case_of
from assent.review.decisions.decide import require_item, withdraw
from assent.review.decisions.rights import is_person, require_right
from assent.review.dialects import request as dialect
from assent.review.model.items import TRANSITIONS, Item, ItemStatus, Revision
from assent.review.model.lifecycle import Resubmitted
from assent.review.model.questions import Question, Resolution
from assent.review.model.search.terms import Terms, stricter
from assent.review.rows import items
from assent.review.search import item_terms, item_words
from assent.threads.rows import contributors
from assent.threads.visible_threads import sees_thread

_PARTS = ("type", "title", "description", "payload", "actions")
_MOST_ACTIONS = 100


@dataclass(frozen=True, slots=True)
class Request:
    type: str
    title: str
    description: str | None = None
    payload: Json = None
    actions: tuple[Mapping[str, Any], ...] = ()
    recipient: str | None = None
    entity: Mapping[str, str] = field(default_factory=dict)
    thread_ids: tuple[str, ...] = ()
    expires_at: datetime | None = None
    dedupe_key: str | None = None
    callback: str | None = None

    def asked(self) -> dict[str, Json]:
        """The content of its revision."""
        parts = {name: getattr(self, name) for name in _PARTS} | {"actions": [dict(action) for action in self.actions]}
        return {name: value for name, value in parts.items() if value not in (None, [])}


def create(tx: Tx, caller: Principal, request: Request) -> tuple[Item, bool]:
    """The item, and whether it is new."""
    if request.dedupe_key is not None and (existing := _known(tx, caller, request.dedupe_key)):
        return existing, False
    quotas.require_storage(tx)
    quotas.require_item(tx)
    question = replace(_question(request.asked()), title=request.title)
    if request.expires_at is not None and request.expires_at <= tx.now():
        raise Invalid("expires_at is in the past")
    terms = item_terms.judged(tx, question, graph_id=None, requester=caller.actor, gated=True)
    item = thread_items.create(
        tx,
        question,
        Revision(1, request.asked(), author=caller.actor),
        terms,
        type=request.type,
        requester=caller.actor,
        recipient=request.recipient,
        entity_type=request.entity.get("type"),
        entity_id=request.entity.get("id"),
        expires_at=request.expires_at,
        dedupe_key=request.dedupe_key,
        callback=request.callback,
    )
    for thread_id in request.thread_ids:
        if not sees_thread(tx, caller, thread_id):
            raise Invalid(f"thread_ids: thread {thread_id!r} not found")
        items.link(tx, item.id, thread_id)
    return item, True


def _known(tx: Tx, caller: Principal, key: str) -> Item | None:
    item = items.by_dedupe_key(tx, caller.actor, key)
    if item is None:
        idempotency.hold(tx, caller.actor, key)
        item = items.by_dedupe_key(tx, caller.actor, key)
    return item


def resubmit(tx: Tx, caller: Principal, item_id: str, changes: Mapping[str, Json]) -> Item:
    """The next revision of a request that was sent back: omitted fields keep their values."""
    item = require_item(tx, item_id, lock=True)
    if not item.held:
        raise Conflict("only a request can be resubmitted; an item of a run is revised by its run")
    _require_own(caller, item)
    if item.workspace_run_id is not None:
        raise Conflict("this is a workspace review", hint="send its next review: POST /api/workspace-reviews")
    if item.status is not ItemStatus.REVISION_REQUESTED:
        allowed = list(TRANSITIONS[item.status])
        facts: dict[str, Any] = {"from": item.status, "to": ItemStatus.PENDING, "allowed": allowed}
        raise InvalidTransition(
            f"the item is {item.status}: only a request that was sent back can be resubmitted", **facts
        )
    before = items.revision(tx, item.id, item.revision)
    asked = {**before.asked, **{name: value for name, value in changes.items() if value is not None}}
    question = _question(asked)
    revision = Revision(item.revision + 1, asked, author=caller.actor)
    now = item_terms.judged(tx, question, graph_id=None, requester=item.requester, gated=True)
    terms = stricter(Terms.from_json(item.policy), now)
    facts = {**item_words.words(question, terms, case_of(tx, item).words), **item_terms.bound(terms)}
    revised = thread_items.revise(tx, item, Resubmitted(revision=revision, facts=facts), actor=caller.actor)
    item_words.learn(tx, revised)
    return revised


def cancel(tx: Tx, caller: Principal, item_id: str, notes: str | None) -> Item:
    """Withdrawn by its requester, or closed without a decision by a person who may decide it."""
    item = require_item(tx, item_id, lock=True)
    _require_own(caller, item)
    if caller.actor != item.requester:
        require_right(tx, caller, case_of(tx, item))
    if notes and item.thread_id is not None:  # the agent receives the notes, and may act on them
        contributors.add(tx, item.thread_id, caller.actor)
    reason = notes or "it was withdrawn"
    return withdraw(tx, item, Resolution.WITHDRAWN, reason, actor=caller.actor)


def _require_own(caller: Principal, item: Item) -> None:
    if caller.actor != item.requester and not is_person(caller):
        raise Forbidden(
            "only the requester, or a person who may decide, can do this", missing=[item.requester], item=item.id
        )


def _question(asked: Mapping[str, Json]) -> Question:
    """The question; raises `Invalid` for an invalid part."""
    _require_actions(asked.get("actions") or ())
    try:
        return dialect.question(asked)
    except canonical.NotJson as error:
        raise Invalid(f"payload: {error}") from None


def _require_actions(actions: Any) -> None:
    if len(actions) > _MOST_ACTIONS:
        raise Invalid(f"actions: at most {_MOST_ACTIONS}")
    keys = [str(action.get("key") or index) for index, action in enumerate(actions)]
    if len(set(keys)) != len(keys):
        raise Invalid("actions: keys must be unique")
    require_schemas(actions)
    for index, action in enumerate(actions):
        unknown = [verb for verb in action.get("allowed") or () if verb not in map(str, dialect.POSSIBLE)]
        if unknown:
            raise Invalid(f"actions[{index}].allowed: {unknown[0]!r} is not one of {', '.join(dialect.POSSIBLE)}")


def require_schemas(actions: Sequence[Mapping[str, Any]]) -> None:
    """Requires that every part of each schema can be enforced: no other code validates a reviewer's edits of a request.
    Slow the first time, so callers run it before their transaction."""
    for index, action in enumerate(actions):
        if action.get("schema") is None:
            continue
        from assent.review.model.schemas.flaws import flaw  # slow to import, and few requests have a schema

        problem = flaw(action["schema"])
        if problem is not None:
            path = canonical.below(f"actions[{index}].schema", problem.path)
            raise Invalid(f"{path}: {problem.message}", errors=[{"path": path, "message": problem.message}])
