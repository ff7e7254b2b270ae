"""The consequences of a decision: the message to the agent, through the outbox, and the grants for its calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, cached_property, partial
from typing import Any

from assent.errors import InDoubt, InvalidDecision
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.outbox.model import WEBHOOK
from assent.review import dialects, thread_items
from assent.review.decisions import comments
from assent.review.decisions.comments import Said
from assent.review.model import questions
from assent.review.model.decisions import REVISION_REQUEST, verdict_to_json
from assent.review.model.grants import Passage, Passing, seal
from assent.review.model.items import Item, ItemStatus, Revision, as_asked
from assent.review.model.lifecycle import Message, Permit
from assent.review.model.questions import Action, Question, Verb, Verdict
from assent.review.model.risks import Rating
from assent.review.model.search.terms import Terms, is_secret_answer, ratings_of, secrets_in, secrets_said, within
from assent.review.model.secrets import EVERYTHING, MASK, Cover, Text
from assent.review.rows import grants, items, secrets
from assent.threads.rows import contributors

_AT_ONCE = timedelta()
_RAN = (Passing.GO, Passing.REPEAT)


@dataclass(frozen=True)
class Case:
    """An item with the data that a decision needs. The questions are parsed once: they may have hundreds of actions,
    and each is looked up."""

    item: Item
    revision: Revision
    terms: Terms
    known: Callable[[], Iterable[str]]
    """The secrets of everything that was asked with it, read once, on first use."""

    @cached_property
    def question(self) -> Question:
        """The current question, with only the verbs that the policy allows."""
        return within(dialects.question_of(self.item, self.revision), self.terms)

    @cached_property
    def asked(self) -> Question:
        """The question as the agent asked it: the answer has to fit this one."""
        return dialects.question_of(self.item, replace(self.revision, edits={}))

    @cached_property
    def covers(self) -> dict[str, Cover]:
        """The secret parts of the arguments of each action."""
        return {action.key: self.terms.cover(action) for action in self.question.actions}

    @cached_property
    def ratings(self) -> dict[str, Rating]:
        """The risk of each action that has one, by its key."""
        return ratings_of(self.question, self.terms)

    @cached_property
    def words(self) -> Text:
        """Removes secrets from texts: those of all its actions, as asked and as edited, and of everything that was
        asked with it, because a text about one action may repeat an argument of another."""
        own = secrets_in(self.asked, self.terms) | secrets_in(self.question, self.terms)
        return Text({*self.known(), *own})

    @cached_property
    def _actions(self) -> dict[str, Action]:
        return {action.key: action for action in self.question.actions}

    def with_verdicts(self, verdicts: Sequence[Verdict]) -> Case:
        """The same case, plus the secrets in these verdicts: notes may repeat them."""
        pairs = [(verdict, self._actions[verdict.key]) for verdict in verdicts if verdict.key in self._actions]
        more = {secret for verdict, action in pairs for secret in secrets_said(verdict, action, self.terms)}
        return replace(self, known=cache(lambda: {*self.known(), *more})) if more else self

    @property
    def holds_secrets(self) -> bool:
        actions = (*self.asked.actions, *self.question.actions)
        return any(self.covers[action.key].holds(action.args) for action in actions)

    def masked(self, verdict: Verdict) -> Verdict:
        """The verdict without its secrets."""
        action = self._actions.get(verdict.key)
        if action is not None and is_secret_answer(verdict, action):
            return replace(verdict, args=verdict.args and MASK, message=verdict.message and MASK)
        text = verdict.message and self.words.without(verdict.message)
        cover = EVERYTHING if action is None else self.covers[action.key]  # the action of another revision
        return replace(verdict, args=cover.masked(verdict.args), message=text)


def case_of(tx: Tx, item: Item) -> Case:
    return case_with(tx, item, items.revision(tx, item.id, item.revision), Terms.from_json(item.policy))


def case_with(tx: Tx, item: Item, revision: Revision, terms: Terms) -> Case:
    return Case(item, revision, terms, cache(partial(secrets.known, tx, item)))


def message(
    tx: Tx,
    case: Case,
    verdicts: Sequence[Verdict],
    *,
    notes: str | None,
    grace: timedelta,
    decision_id: str,
    kind: str,
) -> Message | None:
    """The message to the agent: the answer to its interrupt, or the callback of its request."""
    if case.item.held:
        actions = [verdict_to_json(case.masked(verdict)) for verdict in verdicts]
        shown = notes and case.words.without(notes)
        status = _status_after(case, verdicts, kind)
        payload = {"decision_id": decision_id, "kind": kind, "status": status, "actions": actions, "notes": shown}
        if case.item.workspace_run_id is not None:
            return _wake_up(tx, case, payload, wait=grace)
        return callback(tx, case, payload, wait=grace)
    said = comments.said_on(tx, case.item, lambda: case.words)
    answer = as_asked(as_revised(verdicts), case.revision)
    value = _encoded(case, answer, said if kind != REVISION_REQUEST else [])
    told = [comment.to_json() for comment in said]
    return thread_items.resumption(case.item, str(case.item.interrupt_id), value, wait=grace, said=told)


def _encoded(case: Case, answer: tuple[Verdict, ...], said: Sequence[Said]) -> Json:
    """The answer, with the comments where it has a text for them. A schema that refuses the longer text wins."""
    if said:
        with suppress(InvalidDecision):
            return dialects.encode(case.asked, dialects.with_text(case.asked, answer, comments.spelled(said)))
    return dialects.encode(case.asked, answer)


def heard_after(tx: Tx, passage: Passage) -> Passage:
    """With the comments that the result of an approved call tells its agent."""
    item = items.get(tx, passage.grant.item_id) if passage.grant and passage.passing in _RAN else None
    said = comments.said_on(tx, item, lambda: case_of(tx, item).words) if item else []
    for comment in said:
        contributors.add(tx, str(item and item.thread_id), comment.actor)
    return replace(passage, comments=comments.spelled(said)) if said else passage


def _wake_up(tx: Tx, case: Case, told: dict[str, Any], *, wait: timedelta) -> Message | None:
    """The one message to a workspace run elsewhere. A rejected run is cancelled, and not woken."""
    if told["status"] is ItemStatus.REJECTED:
        return None
    response = told["notes"] if told["kind"] == REVISION_REQUEST else None
    run = {"run_id": case.item.workspace_run_id, "responseMarkdown": response}
    return callback(tx, case, {**told, **run}, wait=wait)


def _status_after(case: Case, verdicts: Sequence[Verdict], kind: str) -> ItemStatus:
    if kind == REVISION_REQUEST:
        return ItemStatus.REVISION_REQUESTED
    return ItemStatus(questions.outcome(as_asked(as_revised(verdicts), case.revision)).status)


def as_revised(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Turns an edit into an approval of the revision that contains the edit."""
    return tuple(Verdict(verdict.key, Verb.APPROVE) if verdict.verb is Verb.EDIT else verdict for verdict in verdicts)


def callback(tx: Tx, case: Case, told: dict[str, Any], *, wait: timedelta = _AT_ONCE) -> Message | None:
    """The webhook to the agent that made the request, if it gave a callback."""
    item = case.item
    if item.callback is None:
        return None
    facts = {"item_id": item.id, "type": item.type, "revision": item.revision, "hash": item.hash}
    words = secrets.AuthorWords(tx, item, case.words)
    said = [
        {"actor": row.actor, "text": words.of(row.actor).without(row.text), "at": row.at.isoformat()}
        for row in items.comments_of(tx, item.id)
        if comments.reaches_agent(item, row.actor)
    ]
    body = {"event": "item", **facts, **told, "comments": said}
    return Message(new_id(), WEBHOOK, item.callback, body, wait)


def doubts(tx: Tx, case: Case, keys: Collection[str]) -> list[dict[str, str]]:
    """The thread's calls in doubt with the same tool and arguments as these actions."""
    thread_id = case.item.thread_id
    actions = dialects.question_of(case.item, case.revision).actions if thread_id else ()
    asked = (action for action in actions if action.key in keys and action.known_by)
    matches = (grant for action in asked for grant in grants.doubted_like(tx, str(thread_id), action.name, action.args))
    unique = {grant.id: grant for grant in matches}.values()
    return [
        {"item_id": grant.item_id, "grant_id": grant.id, "tool": grant.tool, "call_id": grant.call_id}
        for grant in unique
    ]


def require_settled(tx: Tx, case: Case, said: Sequence[Verdict]) -> None:
    """Refuses to approve a call while an equal one is in doubt: it may have run."""
    unsettled = doubts(tx, case, _approved_keys(said))
    if unsettled:
        raise InDoubt(item=case.item.id, doubts=unsettled)


def permits(
    tx: Tx, case: Case, said: Sequence[Verdict], decision_id: str, *, wait: timedelta = _AT_ONCE
) -> tuple[Permit, ...]:
    """One grant for each approved call that the gate can identify by the agent's call id. A question from another
    deployment that no gate of ours asked has none."""
    if case.item.remote and case.item.origin is None:
        return ()
    approved = _approved_keys(said)
    actions = dialects.question_of(case.item, case.revision).actions if case.item.thread_id else ()
    identified = ((action, action.known_by) for action in actions if action.key in approved)
    return tuple(_permit(tx, case, action, call_id, decision_id, wait) for action, call_id in identified if call_id)


def _approved_keys(said: Sequence[Verdict]) -> set[str]:
    return {verdict.key for verdict in said if verdict.verb in (Verb.APPROVE, Verb.EDIT)}


def _permit(tx: Tx, case: Case, action: Action, call_id: str, decision_id: str, wait: timedelta) -> Permit:
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
        origin=item.origin,
    )
    expires_at = begins + case.terms.execution_ttl
    return Permit(decision_id, thread_id, call_id, action.name, agreed, begins, expires_at, item.origin)
