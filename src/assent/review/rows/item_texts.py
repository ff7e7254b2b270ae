"""The full-text index of items. One statement writes it on both databases; the search in it is each database's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    bindparam,
    cast,
    column,
    exists,
    false,
    literal_column,
    or_,
    select,
    table,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, item_texts, items
from assent.kernel.store.transaction import Tx


@dataclass(frozen=True, slots=True)
class Term:
    """Words that follow each other in a text. The last is the beginning of a word, unless the term is exact."""

    words: tuple[str, ...]
    exact: bool = False


_RARE = 1000
_index = table("item_texts_index", column("rowid"))
_IDS = select(item_texts.c.item_id).where(item_texts.c.tenant_id == TENANT)
_REPLACE = Prepared(
    update(item_texts)
    .where(item_texts.c.tenant_id == TENANT, item_texts.c.item_id == bindparam("item"))
    .where(item_texts.c.lexemes != bindparam("new", type_=item_texts.c.lexemes.type))
    .values(lexemes=bindparam("new", type_=item_texts.c.lexemes.type))
)
_WITHOUT_TEXT = (
    select(items.c.tenant_id, items.c.item_id)
    .where(
        ~exists().where(item_texts.c.tenant_id == items.c.tenant_id, item_texts.c.item_id == items.c.item_id),
        tuple_(items.c.tenant_id, items.c.item_id) > tuple_(bindparam("tenant_id"), bindparam("after")),
    )
    .order_by(items.c.tenant_id, items.c.item_id)
    .limit(bindparam("limit"))
)


def put(tx: Tx, item_id: str, lexemes: list[str]) -> None:
    """Sets the words of an item. Unchanged words cost no write."""
    if tx.change(_REPLACE, item=item_id, new=lexemes) == 0:
        tx.insert_new(item_texts, item_id=item_id, lexemes=lexemes)


def containing(tx: Tx, item_ids: Sequence[str], parts: Iterable[str]) -> list[str]:
    """Those of the items with a word that contains one of these parts."""
    said = cast(item_texts.c.lexemes, Text)
    parts = list(parts)
    if not (parts and item_ids):
        return []
    statement = select(item_texts.c.item_id).where(
        item_texts.c.tenant_id == TENANT,
        item_texts.c.item_id.in_(item_ids),
        or_(*(said.contains(part, autoescape=True) for part in parts)),
    )
    return [row.item_id for row in tx.all(statement)]


def missing(tx: Tx, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
    """Tenant and id of items that are not indexed yet. Needs a transaction across tenants."""
    rows = tx.all(_WITHOUT_TEXT, tenant_id=after[0], after=after[1], limit=limit)
    return [(row.tenant_id, row.item_id) for row in rows]


def matches(tx: Tx, wanted: Sequence[Sequence[Term]]) -> ColumnElement[bool]:
    """Whether an item contains one term of each group.

    Neither database knows in advance how many items match. Few are looked up by their ids; among many, the list is
    walked in its order until the page is full."""
    if tx.dialect == "postgresql":
        query = cast(_query(wanted, any_of=" | ", all_of=" & ", spell=_tsquery), TSQUERY)
        condition = item_texts.c.lexemes.op("@@", is_comparison=True)(query)
        few = tx.all(_IDS.where(condition).limit(_RARE))
    else:
        hits = _hits(_query(wanted, any_of=" OR ", all_of=" AND ", spell=_fts5))
        condition = item_texts.c.text_id.in_(hits)
        few = tx.all(hits.add_columns(TENANT).limit(_RARE))
        if len(few) < _RARE:
            few = tx.all(_IDS.where(item_texts.c.text_id.in_([row.rowid for row in few])))
    if len(few) < _RARE:
        return items.c.item_id.in_([row.item_id for row in few]) if few else false()
    own = (item_texts.c.tenant_id == items.c.tenant_id, item_texts.c.item_id == items.c.item_id)
    return exists().where(*own, condition)


def _hits(query: str) -> Select[Any]:
    return select(_index.c.rowid).where(literal_column("item_texts_index").op("MATCH")(query))


def _query(wanted: Sequence[Sequence[Term]], *, any_of: str, all_of: str, spell: Callable[[Term], str]) -> str:
    return all_of.join(f"({any_of.join(map(spell, terms))})" for terms in wanted)


def _fts5(term: Term) -> str:
    return f'"{" ".join(term.words)}"{"" if term.exact else "*"}'


def _tsquery(term: Term) -> str:
    following = " <-> ".join(f"'{word}'" for word in term.words)
    return f"({following}{'' if term.exact else ':*'})"
