"""The secrets of a thread, collected from all its items, and those of them that an author knows.

The text of an author is masked for the secrets that the author may see. Masking others would tell the author which of
their guesses is one, and no author can repeat a secret without knowing it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from sqlalchemy import Row

from assent.identity.model.access import Kind, Role
from assent.identity.rows import users
from assent.kernel import canonical, jsontext
from assent.kernel.events import Entry
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import Event
from assent.review.dialects import question_of
from assent.review.model import policies as rules
from assent.review.model.items import Item
from assent.review.model.masking import CoverFor, Covering, quoted
from assent.review.model.policies import Decider, Rule
from assent.review.model.questions import Action, Question
from assent.review.model.search.terms import Terms, cover_under, secrets_said
from assent.review.model.secrets import Cover, Text
from assent.review.rows import decisions, items, policies
from assent.threads.model.threads import Thread
from assent.threads.rows import threads

_TYPED = frozenset({"item.commented", "item.recommended", "item.cancelled"})
"""Events with a text of their actor, who need not know the secrets of the item."""


def covering(tx: Tx, thread: Thread, asked: Iterable[Item] | None = None) -> Covering:
    """The masking of the thread: the secrets of its items, under their own terms, and those of any other call under the
    policy in force. `asked` are the thread's items, if the caller has them."""
    return covering_of(tx, items.of_thread(tx, thread.id) if asked is None else asked, thread.graph_id)


def covering_of(tx: Tx, asked: Iterable[Item], graph: str | None = None) -> Covering:
    """The same for these items."""
    known, calls = _gathered(tx, asked)
    return Covering(_cover_for(tx, graph), known, calls)


def asked_with(tx: Tx, item: Item) -> list[Item]:
    """All items of the item's thread; without a thread, only the item itself."""
    return [item] if item.thread_id is None else items.of_thread(tx, item.thread_id)


def known(tx: Tx, item: Item) -> set[str]:
    """The secrets of all items of the item's thread, in all revisions."""
    return _known(tx, items.said_with(tx, item))


def known_on(tx: Tx, thread_id: str) -> set[str]:
    """The same for all items of a thread."""
    return _known(tx, items.said_on(tx, thread_id))


def owns(tx: Tx, actor: str, item: Item) -> bool:
    """Whether the actor's own thread asks this; without a thread, whether the actor does."""
    if item.thread_id is None:
        return actor == item.requester
    thread = threads.get(tx, item.thread_id)
    return thread is not None and thread.owner == actor


def asks_itself(tx: Tx, actor: str, item: Item) -> bool:
    """Whether the item is the actor's own question. An agent that replays another's shared thread is the requester of
    its question, but the call and its secrets are the owner's."""
    return actor == item.requester and owns(tx, actor, item)


def known_items(tx: Tx, item: Item, actor: str) -> list[Item]:
    """The items of the item's thread whose secrets the actor may see: all for the thread's owner; for a person those
    whose rules let them decide, separation of duties aside, because an editor knows what they wrote."""
    asked = asked_with(tx, item)
    return asked if owns(tx, actor, item) else [known for known in asked if _is_decider(tx, actor, known)]


def known_words(tx: Tx, item: Item, actor: str) -> Text:
    """Removes the secrets that the actor may see from a text of the actor."""
    ids = {known.id for known in known_items(tx, item, actor)}
    return Text(_known(tx, (row for row in items.said_with(tx, item) if row.item_id in ids)))


class AuthorWords:
    """The same for many texts about one item: each author is looked up once."""

    def __init__(self, tx: Tx, item: Item, everything: Text) -> None:
        self._of = cache(partial(known_words, tx, item))
        self._everything = everything

    def of(self, actor: str) -> Text:
        return self._of(actor)

    def about(self, event: Event) -> Text:
        """The secrets to remove from an event of the item."""
        return self._of(event.actor) if event.kind in _TYPED else self._everything


def _is_decider(tx: Tx, actor: str, item: Item) -> bool:
    """People of the project's auth handler are not stored here: rules know their identity alone."""
    kind, _, user_id = actor.partition(":")
    if kind != Kind.REVIEWER:
        return False
    user = users.by_id(tx, user_id)
    person = Decider(user.id, user.name, user.role, user.groups) if user else Decider(user_id, user_id, Role.REVIEWER)
    return Terms.from_json(item.policy).refusal(person, started_by="") is None


def learn(tx: Tx, item: Item) -> set[str]:
    """Stores the secrets of the item, and returns the new ones."""
    before = items.secrets_of(tx, item.id)
    fresh = _gathered(tx, [item])[0] - (before or set())
    if fresh or before is None:
        items.set_secrets(tx, item.id, fresh | (before or set()))
    return fresh


def _known(tx: Tx, rows: Iterable[Row[Any]]) -> set[str]:
    return {secret for row in rows for secret in (_read(tx, row.item_id) if row.secrets is None else row.secrets)}


def _read(tx: Tx, item_id: str) -> set[str]:
    """For an item that was created before secrets were stored."""
    item = items.get(tx, item_id)
    return _gathered(tx, [item])[0] if item else set()


def covered(tx: Tx, entries: Iterable[Entry]) -> list[Entry]:
    """Events with a mask over secrets that were found after they were written. The stored events cannot change: their
    hashes form a chain."""
    words = dict[str, AuthorWords]()
    about = cache(partial(_item_of, tx))
    return [(event, _covered(tx, about(event.subject), event, payload, words)) for event, payload in entries]


def _item_of(tx: Tx, subject: str) -> Item | None:
    kind, _, item_id = subject.partition(":")
    return items.get(tx, item_id) if kind == "item" else None


def _covered(tx: Tx, item: Item | None, event: Event, payload: str | None, words: dict[str, AuthorWords]) -> str | None:
    """`words` caches the secrets by thread, or by item without a thread."""
    if item is None or payload is None:
        return payload
    whose = item.thread_id or item.id
    if whose not in words:
        words[whose] = AuthorWords(tx, item, Text(known(tx, item)))
    hidden = words[whose].about(event)
    try:
        details = jsontext.load(payload)
    except ValueError:  # it was altered: the check of the chain reports that
        return hidden.without(payload)
    seen = quoted(details, hidden)
    return payload if seen == details else canonical.text(seen)


def rules_about(tx: Tx, tool: str, graph: str | None) -> list[Rule]:
    """The rules in force that could apply to calls of this tool."""
    return rules.concerning(policies.in_force(tx).parsed(), tool=tool, graph=graph, tenant=tx.tenant)


def _gathered(tx: Tx, asked: Iterable[Item]) -> tuple[set[str], dict[str, Cover]]:
    """The secrets of these items, and the covers of their calls, by call id."""
    secrets, calls = set[str](), dict[str, Cover]()
    for item in asked:
        terms = Terms.from_json(item.policy)
        actions = dict[str, Action]()
        for question in _questions(tx, item):
            for action in question.actions:
                actions[action.key], cover = action, terms.cover(action)
                secrets |= cover.texts(action.args)
                if action.call_id:
                    calls[action.call_id] = cover
        for decision in decisions.of_item(tx, item.id):
            for verdict in decision.verdicts:
                if verdict.key in actions:
                    secrets |= secrets_said(verdict, actions[verdict.key], terms)
    return secrets, calls


def _questions(tx: Tx, item: Item) -> Iterable[Question]:
    """Each revision as the agent asked it and with a reviewer's edits."""
    for revision in items.revisions(tx, item.id):
        yield question_of(item, revision)
        if revision.edits:
            yield question_of(item, replace(revision, edits={}))


def _cover_for(tx: Tx, graph: str | None) -> CoverFor:
    policy, tenant, marks = policies.in_force(tx).parsed(), tx.tenant, tx.marks

    @cache
    def cover_for(tool: str) -> Cover:
        return cover_under(rules.concerning(policy, tool=tool, graph=graph, tenant=tenant), marks(graph, tool))

    return cover_for
