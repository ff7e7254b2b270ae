"""Requests made through the API: an agent or a service asks a person, about anything, without a run that waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from assent.dialects import request as dialect
from assent.domain import canonical
from assent.domain.access import Principal
from assent.domain.canonical import Json
from assent.domain.items import Item, ItemStatus, Revision
from assent.domain.questions import Question, Resolution, summary
from assent.domain.terms import Terms, shown, stricter
from assent.errors import Conflict, Forbidden, Invalid, InvalidTransition
from assent.services.carrying import case_of
from assent.services.deciding import found, withdraw
from assent.services.rights import is_person, require_right
from assent.store import asking, items, requests, threads
from assent.store.transaction import Tx

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
        """What is asked, as its revision keeps it."""
        said = {name: getattr(self, name) for name in _PARTS} | {"actions": [dict(one) for one in self.actions]}
        return {name: value for name, value in said.items() if value not in (None, [])}


def create(tx: Tx, caller: Principal, request: Request) -> tuple[Item, bool]:
    """The item, and whether it is new."""
    if request.dedupe_key is not None and (known := _known(tx, caller, request.dedupe_key)):
        return known, False
    question = _question(request.asked())
    if request.expires_at is not None and request.expires_at <= tx.now():
        raise Invalid("expires_at is in the past")
    terms = asking.judged(tx, question, graph_id=None, requester=caller.actor, gated=True)
    item = asking.create(
        tx,
        question,
        Revision(1, request.asked(), author=caller.actor),
        terms,
        type=request.type,
        title=request.title,
        requester=caller.actor,
        recipient=request.recipient,
        entity_type=request.entity.get("type"),
        entity_id=request.entity.get("id"),
        expires_at=request.expires_at,
        dedupe_key=request.dedupe_key,
        callback=request.callback,
    )
    for thread_id in request.thread_ids:
        if threads.get(tx, thread_id) is None:
            raise Invalid(f"thread_ids: there is no thread {thread_id!r}")
        items.link(tx, item.id, thread_id)
    return item, True


def _known(tx: Tx, caller: Principal, key: str) -> Item | None:
    known = items.by_dedupe_key(tx, caller.actor, key)
    if known is None:
        requests.hold(tx, caller.actor, key)
        known = items.by_dedupe_key(tx, caller.actor, key)
    return known


def resubmit(tx: Tx, caller: Principal, item_id: str, changes: Mapping[str, Json]) -> Item:
    """The next revision of a request that was sent back: what is not named stays as it was."""
    item = found(tx, item_id, lock=True)
    if not item.held:
        raise Conflict("what an agent asks in a run is revised by its run")
    _require_own(caller, item)
    if item.status is not ItemStatus.REVISION_REQUESTED:
        facts: dict[str, Any] = {"from": item.status, "to": ItemStatus.PENDING, "allowed": []}
        raise InvalidTransition(f"the item is {item.status}: only what was sent back is resubmitted", **facts)
    before = items.revision(tx, item.id, item.revision)
    asked = {**before.asked, **{name: value for name, value in changes.items() if value is not None}}
    question = _question(asked)
    revision = Revision(item.revision + 1, asked, author=caller.actor)
    now = asking.judged(tx, question, graph_id=None, requester=item.requester, gated=True)
    terms = stricter(Terms.from_json(item.policy), now)
    return asking.revise(
        tx,
        item,
        revision,
        actor=caller.actor,
        kind="item.resubmitted",
        status=item.moved(ItemStatus.PENDING),
        title=question.title,
        summary=summary(shown(question, terms)),
        **asking.bound(terms),
    )


def cancel(tx: Tx, caller: Principal, item_id: str, notes: str | None) -> Item:
    """Taken back by who asked, or closed without a decision by who may decide it: that ends it as well as a no does."""
    item = found(tx, item_id, lock=True)
    _require_own(caller, item)
    if caller.actor != item.requester:
        require_right(tx, caller, case_of(tx, item))
    reason = notes or "it was withdrawn"
    return withdraw(tx, item, Resolution.WITHDRAWN, reason, actor=caller.actor)


def _require_own(caller: Principal, item: Item) -> None:
    if caller.actor != item.requester and not is_person(caller):
        raise Forbidden("only who has asked, or who may decide, can do this", missing=[item.requester], item=item.id)


def _question(asked: Mapping[str, Json]) -> Question:
    """The question, or `Invalid` naming what cannot be asked."""
    _require_actions(asked.get("actions") or ())
    try:
        return dialect.question(asked)
    except canonical.NotJson as error:
        raise Invalid(f"payload: {error}") from None


def _require_actions(actions: Any) -> None:
    if len(actions) > _MOST_ACTIONS:
        raise Invalid(f"actions: at most {_MOST_ACTIONS}")
    keys = [str(one.get("key") or index) for index, one in enumerate(actions)]
    if len(set(keys)) != len(keys):
        raise Invalid("actions: every key may be there once")
    require_schemas(actions)
    for index, one in enumerate(actions):
        unknown = [verb for verb in one.get("allowed") or () if verb not in map(str, dialect.POSSIBLE)]
        if unknown:
            raise Invalid(f"actions[{index}].allowed: {unknown[0]!r} is not one of {', '.join(dialect.POSSIBLE)}")


def require_schemas(actions: Sequence[Mapping[str, Any]]) -> None:
    """Every schema can be kept, in all of its parts: nobody but us checks what a reviewer makes of a request. It takes
    a while the first time; whoever is about to write looks before."""
    for index, one in enumerate(actions):
        if one.get("schema") is None:
            continue
        from assent.domain.schema_flaws import flaw  # what it stands on is large, and few requests bring a schema

        found = flaw(one["schema"])
        if found is not None:
            path = canonical.below(f"actions[{index}].schema", found.path)
            raise Invalid(f"{path}: {found.message}", errors=[{"path": path, "message": found.message}])
