"""The texts of items in lists. They contain no secret of the thread, including secrets that were learned later."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from sqlalchemy import Row

from assent.kernel.store.transaction import Tx
from assent.review.model import titles
from assent.review.model.items import Item
from assent.review.model.questions import Question, summary
from assent.review.model.search.terms import Terms, secrets_in, shown
from assent.review.model.secrets import Text
from assent.review.rows import items, secrets
from assent.review.search import item_index


def words(question: Question, terms: Terms, known: Text | None = None) -> dict[str, str]:
    """The title and summary of a question for lists, without its secrets and the `known` ones, and the names of its
    calls if a template gives the title. A column cannot store NUL: a symbol replaces it. The question itself is stored
    unchanged."""
    seen, own, others = shown(question, terms), Text(secrets_in(question, terms)), known or Text()
    title = titles.title_of(seen, {action.key: terms.titles(action) for action in question.actions})
    texts = {"title": title or seen.title, "summary": summary(seen), "called": seen.title if title else ""}
    texts = {name: others.without(own.without(text)) for name, text in texts.items()}
    return {name: text.replace("\0", "\N{SYMBOL FOR NULL}") for name, text in texts.items()}


def learn(tx: Tx, item: Item) -> None:
    """The item may have new secrets: removes them from the list texts of everything asked with it."""
    fresh = secrets.learn(tx, item)
    if fresh:
        _mask(tx, items.said_with(tx, item), fresh)


class Learned:
    """The secrets of a thread during `follow`: the earlier ones are read once, on first use."""

    def __init__(self, tx: Tx, thread_id: str) -> None:
        self._tx = tx
        self._thread_id = thread_id
        self.fresh = set[str]()

    @cached_property
    def before(self) -> Text:
        return Text(secrets.known_on(self._tx, self._thread_id))

    def apply(self) -> None:
        """Earlier items may repeat a secret that was found just now."""
        if self.fresh:
            _mask(self._tx, items.said_on(self._tx, self._thread_id), self.fresh)


def _mask(tx: Tx, rows: Iterable[Row[Any]], fresh: Iterable[str]) -> None:
    hide, rows = Text(fresh).without, list(rows)
    for row in rows:
        title, summary = hide(row.title), hide(row.summary)
        if (title, summary) != (row.title, row.summary):
            items.set_words(tx, row.item_id, title=title, summary=summary)
    item_index.index_again(tx, [row.item_id for row in rows], fresh)
