"""Keeps the full-text index of items up to date, in the transaction of each change. No secret of a thread is indexed,
including secrets that were learned later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from assent.kernel.background import Repeating, each
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.dialects import question_of
from assent.review.model.calls.kinds import kind_of
from assent.review.model.items import Item
from assent.review.model.questions import ItemType, Question
from assent.review.model.search import search_words
from assent.review.model.search.terms import Terms, secrets_in
from assent.review.model.secrets import Text
from assent.review.rows import item_texts, items, secrets

_AT_ONCE = 100


def index(tx: Tx, item: Item) -> Item:
    """Writes the words of the item, and the type that people see. Returns the item with that type."""
    revision, terms = items.revision(tx, item.id, item.revision), Terms.from_json(item.policy)
    question, asked = question_of(item, revision), question_of(item, replace(revision, edits={}))
    known = Text({*secrets.known(tx, item), *secrets_in(asked, terms), *secrets_in(question, terms)})
    comments = items.comments_of(tx, item.id)
    kinds = _kinds(item, question)
    actors = (item.requester, item.recipient, item.owner, item.decided_by, *(row.actor for row in comments))
    signs = (
        *(search_words.of_type(kind) for kind in (item.type, *kinds)),
        *(search_words.of_actor(actor) for actor in actors if actor),
    )
    said = (item.title, item.summary, *_named(item), *(row.text for row in comments))
    texts = (known.without(text) for text in (*said, *_asked(question, terms, known)))
    item_texts.put(tx, item.id, search_words.indexed(signs, texts))
    return items.set_kind(tx, item, kinds[0] if kinds else item.type)


def index_again(tx: Tx, item_ids: Iterable[str], fresh: Iterable[str]) -> None:
    """These secrets were found just now: indexes the items again that may contain them."""
    parts = {word for secret in fresh for word in search_words.words_of(secret)}
    for item_id in item_texts.containing(tx, list(item_ids), sorted(parts)):
        item = items.get(tx, item_id)
        if item is not None:
            index(tx, item)


def _kinds(item: Item, question: Question) -> list[str]:
    """The types that the calls are shown as."""
    if item.type != ItemType.TOOL:
        return []
    kinds = (kind_of(action.name, action.args) for action in question.actions)
    return list(dict.fromkeys(kind for kind in kinds if kind))


def _named(item: Item) -> Iterator[str]:
    yield from filter(None, (item.graph_id, item.entity_type, item.entity_id, item.recipient))


def _asked(question: Question, terms: Terms, known: Text) -> Iterator[str]:
    for action in question.actions:
        yield action.name
        yield from search_words.texts_in(known.inside(terms.cover(action).masked(action.args)))
    yield from (action.description for action in question.actions if action.description)
    if question.description:
        yield question.description


class Backfill:
    """Indexes the items of earlier versions, in small transactions beside the running server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.running = Repeating("search index", self._run)

    async def open(self) -> None:
        self.running.start()

    async def close(self) -> None:
        await self.running.stop()

    async def fill(self) -> int:
        """Indexes all items that are not indexed yet. Returns their number."""
        filled, after = 0, ("", "")
        while batch := await self._store.read(None, item_texts.missing, after, _AT_ONCE):
            await each("search index", batch, self._index)
            filled, after = filled + len(batch), batch[-1]
        return filled

    async def _index(self, missing: tuple[str, str]) -> None:
        tenant, item_id = missing
        await self._store.write(tenant, _index_one, item_id)

    async def _run(self) -> None:
        """Once: every later change indexes its item."""
        await self.fill()


def _index_one(tx: Tx, item_id: str) -> None:
    item = items.lock(tx, item_id)
    if item is not None:
        index(tx, item)
