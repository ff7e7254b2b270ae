"""Records which revision of an item each caller was shown: an answer without a hash applies to that revision only.

An answer names calls, and a model chooses their ids. So an answer from a caller who was shown nothing is accepted only
if nothing else was ever asked under the same ids.
"""

from __future__ import annotations

from assent.identity.model.access import Principal
from assent.kernel.store.transaction import Tx
from assent.review.decisions.consequences import case_of
from assent.review.item_views import View
from assent.review.model.items import Item
from assent.review.rows import items


def note(tx: Tx, caller: Principal, shown: View) -> None:
    """Records that the caller is shown this revision."""
    if items.shown_revision(tx, shown["id"], caller.actor) != shown["revision"]:
        items.mark(tx, shown["id"], caller.actor, shown_revision=shown["revision"])


def is_meant(tx: Tx, caller: Principal, asked: View) -> bool:
    """Whether an answer of the caller can only apply to the present question."""
    shown = items.shown_revision(tx, asked["id"], caller.actor)
    if shown is not None:
        return bool(shown == asked["revision"])
    return asked["revision"] == 1 and not asked["follows"] and not _was_asked_before(tx, asked)


def _was_asked_before(tx: Tx, asked: View) -> bool:
    others = (item for item in items.of_thread(tx, asked["source"]["thread_id"]) if item.id != asked["id"])
    names = _names(asked["type"], {action["call_id"] for action in asked["actions"]})
    return any(names & _names_of(tx, item) for item in others)


def _names_of(tx: Tx, item: Item) -> set[str]:
    return _names(item.type, {action.call_id for action in case_of(tx, item).question.actions})


def _names(type: str, call_ids: set[str | None]) -> set[str]:
    """The names that an answer can use. An answer to a form or a sign-in has none, so its type is used."""
    return {str(call_id) for call_id in call_ids} if type not in ("form", "oauth") else {type}
