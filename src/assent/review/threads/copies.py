"""The items of a copied thread."""

from __future__ import annotations

from dataclasses import replace

from assent.kernel.store.transaction import Tx
from assent.review import changes
from assent.review.decisions.consequences import case_of
from assent.review.dialects import breakpoint, question_of
from assent.review.model.items import Item
from assent.review.model.lifecycle import Judged
from assent.review.model.search.terms import Terms, stricter
from assent.review.rows import items
from assent.review.search import item_terms, item_words


def keep_terms(tx: Tx, thread_id: str, copy_id: str) -> None:
    """Applies the original's terms to the copy's items where they are stricter. A pending run of the original may have
    named another graph, by which the policy judges the copy."""
    asked = items.gated_of_thread(tx, thread_id)
    for item in items.open_of_thread(tx, copy_id):
        for source in asked:
            if item.interrupt_id == source.interrupt_id or item.dialect == source.dialect == breakpoint.NAME:
                item = _tightened(tx, item, Terms.from_json(source.policy))


def _tightened(tx: Tx, item: Item, before: Terms) -> Item:
    """The item with the stricter terms. Deadlines start now, without escalation."""
    now = Terms.from_json(item.policy)
    if not before.adds_to(now) and before.marks == now.marks:
        return item
    terms = stricter(replace(before, escalated=False, since=None), now)
    question = question_of(item, items.revision(tx, item.id, item.revision))
    times = item_terms.timed(terms, tx.now(), item.expires_at)
    words = item_words.words(question, terms, case_of(tx, item).words)
    facts = {**words, **item_terms.bound(terms), **times}
    tightened = changes.apply(tx, item.requester, item, Judged(facts=facts))
    item_words.learn(tx, tightened)
    return tightened
