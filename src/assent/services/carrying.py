"""What a decision sets in motion: what the agent is told, by the outbox, and what it may do, by grants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from assent import dialects
from assent.domain.deliveries import WEBHOOK
from assent.domain.grants import seal
from assent.domain.items import Execution, Item, Revision, as_asked
from assent.domain.questions import Action, Question, Verb, Verdict
from assent.domain.terms import Terms, within
from assent.errors import InDoubt
from assent.store import asking, decisions, deliveries, grants, items, jsontext
from assent.store.transaction import Tx

_AT_ONCE = timedelta()


@dataclass(frozen=True)
class Case:
    """An item with everything that deciding it needs to know. Its questions are read once: there may be hundreds of
    actions in them, and they are looked at for each."""

    item: Item
    revision: Revision
    terms: Terms

    @cached_property
    def question(self) -> Question:
        """As it stands now, with no more verbs than the policy allows."""
        return within(asking.question_of(self.item, self.revision), self.terms)

    @cached_property
    def asked(self) -> Question:
        """As the agent asked it: what its answer has to fit."""
        return asking.question_of(self.item, replace(self.revision, edits={}))


def case_of(tx: Tx, item: Item) -> Case:
    return Case(item, items.revision(tx, item.id, item.revision), Terms.from_json(item.policy))


def send(
    tx: Tx,
    case: Case,
    verdicts: Sequence[Verdict],
    *,
    notes: str | None,
    grace: timedelta,
    decision_id: str,
    kind: str,
) -> str | None:
    """Leaves in the outbox what the agent is to be told."""
    if case.item.held:
        said = [decisions.verdict_to_json(verdict) for verdict in verdicts]
        told = {"decision_id": decision_id, "kind": kind, "actions": said, "notes": notes}
        return call_back(tx, case.item, told, wait=grace)
    value = dialects.encode(case.asked, as_asked(as_revised(verdicts), case.revision))
    return asking.deliver(tx, case.item, str(case.item.interrupt_id), value, wait=grace)


def as_revised(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Who changes something approves the revision that has the change in it."""
    return tuple(Verdict(one.key, Verb.APPROVE) if one.verb is Verb.EDIT else one for one in verdicts)


def call_back(tx: Tx, item: Item, told: dict[str, Any], *, wait: timedelta = _AT_ONCE) -> str | None:
    """To the agent that made the request, where it said how it is woken."""
    if item.callback is None:
        return None
    facts = {"item_id": item.id, "type": item.type, "revision": item.revision, "hash": item.hash}
    said = [{"actor": row.actor, "text": row.text, "at": row.at.isoformat()} for row in items.comments_of(tx, item.id)]
    body = jsontext.dump({"event": "item", **facts, **told, "comments": said})
    return deliveries.add(tx, WEBHOOK, subject=item.subject, target=item.callback, body=body, wait=wait)


def doubts(tx: Tx, case: Case, keys: Collection[str]) -> list[dict[str, str]]:
    """Calls of the thread just like these actions of the case that were cut off, and that nobody has settled yet."""
    thread_id = case.item.thread_id
    actions = asking.question_of(case.item, case.revision).actions if thread_id else ()
    asked = (one for one in actions if one.key in keys and one.known_by)
    found = (grant for one in asked for grant in grants.doubted_like(tx, str(thread_id), one.name, one.args))
    unique = {grant.id: grant for grant in found}.values()
    return [{"item_id": one.item_id, "grant_id": one.id, "tool": one.tool, "call_id": one.call_id} for one in unique]


def require_settled(tx: Tx, case: Case, said: Sequence[Verdict]) -> None:
    """Nobody approves a call without having said what became of the same one before: it may have been made."""
    unsettled = doubts(tx, case, _going(said))
    if unsettled:
        raise InDoubt(item=case.item.id, doubts=unsettled)


def grant(tx: Tx, case: Case, said: Sequence[Verdict], decision_id: str, *, wait: timedelta = _AT_ONCE) -> None:
    """One grant for each call that was agreed to and that the gate can know again by the agent's id for it."""
    going = _going(said)
    for action in asking.question_of(case.item, case.revision).actions:
        if action.key in going and action.known_by and case.item.thread_id:
            _grant(tx, case, action, action.known_by, decision_id, wait)


def _going(said: Sequence[Verdict]) -> set[str]:
    return {one.key for one in said if one.verb in (Verb.APPROVE, Verb.EDIT)}


def _grant(tx: Tx, case: Case, action: Action, call_id: str, decision_id: str, wait: timedelta) -> None:
    item, begins = case.item, tx.now() + wait
    thread_id = str(item.thread_id)
    agreed = seal(
        tenant=tx.tenant,
        thread_id=thread_id,
        item_id=item.id,
        revision=item.revision,
        tool=action.name,
        args=action.args,
        call_id=call_id,
    )
    grants.insert(
        tx,
        item_id=item.id,
        revision=item.revision,
        decision_id=decision_id,
        thread_id=thread_id,
        call_id=call_id,
        tool=action.name,
        hash=agreed,
        not_before=begins,
        expires_at=begins + case.terms.execution_ttl,
    )
    items.set_execution(tx, item.id, Execution.GRANTED)
