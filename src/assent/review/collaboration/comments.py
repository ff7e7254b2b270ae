"""Comments on an item, for other people and for the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assent.errors import Conflict
from assent.identity.model.access import Principal
from assent.kernel import events
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.quotas import quotas
from assent.kernel.store.transaction import Tx
from assent.review.collaboration import mentions
from assent.review.model.items import Item
from assent.review.rows import items
from assent.review.rows.secrets import known_words
from assent.review.search import item_index

MOST = 1000


def add(
    tx: Tx,
    caller: Principal,
    item: Item,
    text: str,
    *,
    kind: str = "item.commented",
    facts: Mapping[str, Json] | None = None,
) -> dict[str, Any]:
    """`facts` are added to the event in the timeline."""
    quotas.require_storage(tx)
    comment_id = new_id()
    text = known_words(tx, item, caller.actor).without(text)  # the timeline is exported, so it is masked now
    _require_room(tx, item.id, text)
    items.add_comment(tx, item.id, comment_id, caller.actor, text)
    mentioned = mentions.note(tx, item.id, comment_id, text)
    item_index.index(tx, item)
    told = {"comment": comment_id, "text": text, **({"mentions": mentioned} if mentioned else {})}
    events.append(tx, caller, kind, item.subject, {**told, **(facts or {})})
    return {
        "id": comment_id,
        "actor": caller.actor,
        "text": text,
        "at": tx.now().isoformat(),
        "mentions": mentioned,
    }


def _require_room(tx: Tx, item_id: str, text: str) -> None:
    """Opening an item reads all its comments, so together they have the limit of one document."""
    number, size = items.size_of_comments(tx, item_id)
    if number >= MOST:
        raise Conflict(f"the item has {number} comments, the maximum", hint="decide or cancel the item")
    tx.limits.require_document("comments", size + len(text.encode()))
